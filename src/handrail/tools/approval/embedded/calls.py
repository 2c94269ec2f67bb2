"""Read Perl, Ruby, JavaScript, PHP, Lua and others by the calls they make: lists of functions, and their arguments."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence

from ..shell.values import UNKNOWN
from .host import Host
from .tokens import Token, tokens

_NETWORK = re.compile(r"(?i)\b(?:socket|fsockopen|net\.connect|TCPSocket|net\.Socket|IO::Socket|pfsockopen|stream_socket_client|connect)\b")
_SHELL_PATH = re.compile(r"/bin/(?:ba|z|da|k|a)?sh|\bsh -i|cmd\.exe|\bbash -i|powershell")
_LOOPS = re.compile(r"\b(?:while|loop|for|redo|until|forever|setInterval|\*\s*times)\b|fork\s+while|fork\s*;\s*fork")
_FETCHES = re.compile(r"(?i)\b(?:get|file_get_contents|fetch|URI\.open|URI\.parse|Net::HTTP|LWP|https?\.get|axios|open-uri|curl_exec|readLines\(url|HTTP\.get|urlopen|request)\b")
_ENVIRONMENT = re.compile(r"process\.env\b(?!\.)|\bENV\.(?:to_h|to_a|inspect|map)|%ENV|\$_ENV|getenv\(\s*\)|/\.ssh/|/\.aws/|/etc/shadow|\.env['\"]|id_rsa")
_SENDS = re.compile(r"(?i)\b(?:fetch|axios|https?\.request|Net::HTTP|curl_exec|LWP|HTTP::Tiny|post|request|http\.post|sendBeacon)\b")

_SHELL = {
    "perl": "system exec popen IPC::Run::run readpipe",
    "ruby": "system exec spawn popen IO.popen Open3.capture2 Open3.capture2e Open3.capture3 Open3.popen3 Open3.popen2 Kernel.system Kernel.exec Kernel.spawn PTY.spawn Process.spawn",
    "javascript": "execSync exec child_process.exec child_process.execSync shell.exec execa.command execaCommandSync $ Bun.$ zx.$",
    "php": "system exec shell_exec passthru popen proc_open pcntl_exec",
    "lua": "os.execute io.popen",
    "r": "system system2 shell",
    "tcl": "exec spawn open",
    "julia": "run",
    "groovy": "execute",
    "swift": "",
    "elixir": "System.cmd System.shell os.cmd",
    "osascript": "",
    "scheme": "system system*",
    "haskell": "callCommand system",
    "scala": "",
    "octave": "system shell_cmd unix dos",
}
_ARGV = {
    "javascript": "spawn spawnSync execFile execFileSync child_process.spawn child_process.spawnSync child_process.execFile child_process.execFileSync Bun.spawn Bun.spawnSync Deno.run Deno.Command execa execaSync fork",
    "elixir": "System.cmd",
}
_TREE = (
    "rmtree remove_tree rm_rf rm_r rmSync rmdirSync rm rmdir removeSync remove rimraf rimrafSync FileUtils.rm_rf FileUtils.rm_r FileUtils.remove_dir FileUtils.remove_entry FileUtils.remove_entry_secure fs.rm fs.rmSync fs.rmdir "
    "fs.rmdirSync fs.removeSync fs.remove fs.emptyDirSync Deno.remove Deno.removeSync File::Path::rmtree File::Path::remove_tree delete_directory File.rm_rf File.rm_rf! fsPromises.rm fs.promises.rm del.sync unlink_recursive"
).split()
_FILE = (
    "unlink unlinkSync fs.unlink fs.unlinkSync File.delete File.unlink FileUtils.rm FileUtils.rm_f FileUtils.remove Dir.rmdir Dir.delete Dir.unlink os.remove file.remove truncateSync fs.truncateSync fs.promises.unlink fsPromises.unlink "
    "Pathname.delete File.rm File.rm! Deno.truncateSync ftruncate truncate"
).split()
_WRITES = (
    "writeFile writeFileSync appendFile appendFileSync fs.writeFile fs.writeFileSync fs.appendFile fs.appendFileSync fs.promises.writeFile fsPromises.writeFile file_put_contents File.write IO.write File.binwrite createWriteStream "
    "fs.createWriteStream Deno.writeTextFile Deno.writeTextFileSync Deno.writeFile Bun.write write_file spew outputFileSync fs.outputFileSync writeLines cat.file File.write! symlinkSync fs.symlinkSync symlink"
).split()
_READS = "readFile readFileSync fs.readFile fs.readFileSync fs.promises.readFile file_get_contents readfile File.read IO.read File.readlines fs.createReadStream Deno.readTextFile Deno.readTextFileSync Bun.file file slurp readLines IO.readlines File.foreach File.read!".split()
_OPENS = "open fopen io.open File.open File.new fs.openSync openSync IO.open sysopen Deno.open Deno.openSync".split()
_COPIES = "copyFileSync fs.copyFileSync renameSync fs.renameSync rename copy FileUtils.cp FileUtils.mv FileUtils.cp_r File.rename fs.rename fs.copyFile fs.cpSync cpSync fs.moveSync File::Copy::copy File::Copy::move File.cp File.cp! move".split()
_CHMOD = "chmod chmodSync fs.chmodSync fs.chmod File.chmod FileUtils.chmod FileUtils.chmod_R Sys.chmod".split()
_EVAL = "eval Function vm.runInNewContext vm.runInThisContext assert create_function instance_eval class_eval loadstring load dostring require_once include".split()
_SQL = "query exec execute do prepare executeSql run all multi_query mysqli_query pg_query mysql_query raw $queryRawUnsafe $executeRawUnsafe $executeRaw db.exec exec_query".split()
_MONGO = "dropDatabase dropCollection deleteMany drop flushall flushAll flushdb flushDb flushAllSync".split()
_KILL = "kill process.kill Process.kill posix_kill".split()
_HOME = re.compile(r"\$ENV\{['\"]?HOME['\"]?\}|#\{(?:ENV\[['\"]HOME['\"]\]|Dir\.home)\}|\$\{(?:process\.env\.HOME|os\.homedir\(\))\}")
_HOME_NAMES = frozenset(("os.homedir", "process.env.HOME", "Dir.home"))
_MAPS_UNLINK = re.compile(r"\bunlink\s*\(?\s*(?:<|glob\b)|array_(?:map|walk)\s*\(\s*['\"](?:unlink|rmdir)|\bforEach\s*\(\s*(?:fs\.)?(?:unlink|rm)\w*\s*\)")
_CHAIN = re.compile(r"\.|->|::|\?\.")


def judge(host: Host, text: str) -> None:
    language = host.language
    if language in ("osascript", "tcl"):
        _apple(host, text) if language == "osascript" else _tcl(host, text)
        return
    if _NETWORK.search(text) and (_SHELL_PATH.search(text) or re.search(r"(?:exec|spawn|system|popen)\w*\W+['\"](?:ba|z|da)?sh\b", text)):
        host.find("rce.reverse_shell")
        return
    text = _HOME.sub("~", text)
    found = tokens(language, text)
    if any(_is_fork(token) for token in found) and _LOOPS.search(text):
        host.find("proc.fork_bomb")
    if _ENVIRONMENT.search(text) and _SENDS.search(text):
        host.find("exfil.send")
    if _MAPS_UNLINK.search(text):
        host.find("code.delete")
    for place, token in enumerate(found):
        if token.kind == "command":
            host.shell(_interpolated(token.text))
        elif token.kind == "name":
            _call(host, text, found, place)


def _is_fork(token: Token) -> bool:
    return token.kind == "name" and token.text in ("fork", "pcntl_fork", "Process.fork", "Kernel.fork", "cluster.fork")


def _interpolated(text: str) -> str:
    """`#{x}` and `$x` inside a string are not known."""
    return re.sub(r"[#$]\{[^}]*\}", UNKNOWN, text)


def _call(host: Host, text: str, found: Sequence[Token], place: int) -> None:
    token = found[place]
    chain = _CHAIN.split(token.text)
    name = token.text.replace("->", ".").lstrip("&") if len(chain) > 1 else token.text
    last = chain[-1].rstrip("!?")
    arguments, parenthesised = _arguments(host.language, found, place + 1)
    if arguments is None:
        return
    names = {name, last} if len(chain) == 1 or _qualified(host.language, chain) else {name}
    if host.language == "javascript" and last in ("rm", "rmdir", "unlink", "remove") and re.search(r"['\"](?:node:)?fs(?:/promises|-extra)?['\"]", text):
        names.add(f"fs.{last}")
    _act(host, text, names, last, arguments, parenthesised=parenthesised)


def _qualified(language: str, chain: Sequence[str]) -> bool:
    """Whether the last part alone says what is called: not for `/x/.exec(y)` or `db.rm`."""
    first = chain[0].lower().lstrip("$")
    return first in ("fs", "child_process", "cp", "fileutils", "file", "os", "io", "kernel", "process", "deno", "bun", "dir", "fse", "shelljs", "shell", "open3", "path", "this", "promises", "fsp", "proc", "exec") or language in ("php",)


def _act(host: Host, text: str, names: set[str], last: str, arguments: list[str | None], *, parenthesised: bool) -> None:
    first = arguments[0] if arguments else None
    language = host.language
    known = [argument for argument in arguments if argument is not None]
    if names.intersection(_ARGV.get(language, "").split()):
        _run(host, arguments)
    elif names.intersection(_SHELL.get(language, "").split()):
        _shell(host, arguments, parenthesised=parenthesised)
    elif names.intersection(_TREE) and arguments and not (last in ("rm", "rmdir", "remove") and names == {last}):
        host.delete(first, tree=True)
    elif names.intersection(_FILE) and arguments:
        _delete(host, text, known)
    elif names.intersection(_WRITES) and first:
        host.write(first)
    elif names.intersection(_READS) and first:
        host.read(first)
    elif names.intersection(_OPENS) and known:
        _open(host, known)
    elif names.intersection(_COPIES) and len(known) > 1:
        host.run("mv" if last in ("rename", "renameSync", "mv", "move", "moveSync") else "cp", known[0], known[1])
    elif names.intersection(_CHMOD) and known:
        host.run("chmod", _mode(known), known[-1] if not known[-1].isdigit() else known[0])
    elif names.intersection(_EVAL) and arguments and last in ("eval", "Function", "assert", "loadstring", "create_function"):
        _evaluate(host, text, first)
    elif names.intersection(_KILL) and arguments:
        _kill(host, arguments)
    elif last in _MONGO and (last not in ("drop", "deleteMany") or not known):
        host.find("sql.destructive")
    elif last in _SQL and first:
        host.sql(first)


def _shell(host: Host, arguments: list[str | None], *, parenthesised: bool) -> None:
    known = [argument for argument in arguments if argument is not None]
    if not arguments:
        return
    if arguments[0] is None:
        if parenthesised:
            host.find("code.exec_computed")
        return
    if len(known) > 1 and host.language in ("perl", "ruby", "r", "elixir", "tcl", "scheme") and not known[1].startswith(("r", "w")):
        _run(host, arguments)
    else:
        host.shell(_interpolated(arguments[0]))


def _run(host: Host, arguments: list[str | None]) -> None:
    if not arguments or arguments[0] is None:
        if arguments:
            host.find("code.exec_computed")
        return
    words = [UNKNOWN if argument is None else _interpolated(argument) for argument in arguments]
    host.run(*words)


def _delete(host: Host, text: str, known: list[str]) -> None:
    if known:
        for path in known:
            host.delete(path, tree=False)
    elif re.search(r"\b(?:glob|readdir\w*|readdirSync|Dir\[|entries|children|opendir|scandir|list\.files|forEach|each|map|walk)\b|Dir\[|<\*", text):
        host.find("code.delete")


def _open(host: Host, known: list[str]) -> None:
    """`open(F, ">path")`, `fopen("path", "w")`, `File.open("path", "a")`."""
    if host.language == "perl":
        joined = known[0] if len(known) == 1 else known[0] + known[1]
        match = re.match(r"\s*(\+?>{1,2}|\+<|<|\|)?\s*(.*)", joined)
        if known[0].strip().startswith("|") or known[0].strip().endswith("|"):
            host.shell(joined.strip("|- "))
        elif match and match[2]:
            host.write(match[2].strip()) if match[1] and match[1] != "<" else host.read(match[2].strip())
        return
    mode = known[1] if len(known) > 1 else "r"
    host.write(known[0]) if set(mode) & set("wax+") and len(mode) < 6 else host.read(known[0])


def _mode(known: list[str]) -> str:
    number = next((item for item in known if item.isdigit() or item.startswith("0o")), UNKNOWN)
    return number.removeprefix("0o")


def _evaluate(host: Host, text: str, first: str | None) -> None:
    if _FETCHES.search(text):
        host.find("rce.download_to_shell")
    elif first is not None:
        host.depth += 1
        if host.depth < 4:
            judge(host, first)
        host.depth -= 1
    else:
        host.find("code.exec_computed")


def _kill(host: Host, arguments: list[str | None]) -> None:
    known = {argument for argument in arguments if argument is not None}
    if known & {"-1", "1"}:
        host.find("proc.kill_all")
    elif None in arguments or known & {"9", "KILL", "SIGKILL", "-9"}:
        host.find("proc.kill_force")


def _arguments(language: str, found: Sequence[Token], place: int) -> tuple[list[str | None] | None, bool]:
    """The arguments after a name: strings and numbers folded, None for what is not known; None when it is no call."""
    if place >= len(found):
        return None, False
    parenthesised = found[place].text == "(" and found[place].kind == "sign"
    bare = language in ("perl", "ruby", "tcl", "lua", "osascript", "haskell", "scheme")
    if not parenthesised and not (bare and (found[place].kind in ("string", "name", "number") or found[place].text in ("[", "<"))):
        return None, False
    arguments: list[str | None] = []
    pieces: list[str | None] = []
    depth = 0
    for token in found[place + 1 if parenthesised else place :]:
        if token.kind == "sign" and token.text in "([{":
            depth += token.text != "["
            continue
        if token.kind == "sign" and token.text in ")]}":
            if token.text != "]" and depth == 0:
                break
            depth -= token.text != "]"
            continue
        if (token.kind == "end" and depth == 0 and not parenthesised) or token.text == ";":
            break
        if token.text == "," or (language == "tcl" and pieces):
            arguments.append(_folded(pieces))
            pieces = [] if token.text == "," else [token.text]
        elif token.kind in ("string", "number"):
            pieces.append(token.text)
        elif token.kind == "name":
            pieces.append("~" if token.text in _HOME_NAMES else None)
        if len(arguments) > 64:
            break
    if pieces:
        arguments.append(_folded(pieces))
    return arguments, parenthesised


def _folded(pieces: list[str | None]) -> str | None:
    if not pieces or all(piece is None for piece in pieces):
        return None
    strings = [piece for piece in pieces if piece is not None]
    if len(pieces) == 2 and pieces[0] is None:
        return _from_base64(strings[0]) or strings[0]
    return "".join(UNKNOWN if piece is None else piece for piece in pieces)


def _from_base64(text: str) -> str | None:
    if len(text) < 8 or len(text) % 4 or not re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", text):
        return None
    try:
        decoded = base64.b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return decoded if decoded.isprintable() else None


def _tcl(host: Host, text: str) -> None:
    """Tcl and expect: `exec rm x`, `spawn ssh h`; the words are the command's own."""
    for match in re.finditer(r"(?:^|[;\n{\[])\s*(?:exec|spawn|open\s+[\"{]\|)\s*(?:-\w+\s+)*([^;\n\]}]+)", text):
        host.shell(match[1].strip().strip('"'))
    for match in re.finditer(r"\bfile\s+delete\s+(?:-force\s+)?(?:--\s+)?(\S+)", text):
        host.delete(match[1], tree=True)
    for match in re.finditer(r"\bopen\s+(\S+)\s+[wa]", text):
        host.write(match[1])


def _apple(host: Host, text: str) -> None:
    """AppleScript: `do shell script "..."`."""
    for match in re.finditer(r"do shell script\s+(\"(?:[^\"\\]|\\.)*\"|\S+)", text):
        script = match[1]
        if script.startswith('"'):
            host.shell(script[1:-1].replace('\\"', '"'))
        else:
            host.find("code.exec_computed")
