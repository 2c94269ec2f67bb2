"""Which functions of scripting languages run, delete, write, read or send something."""

from __future__ import annotations

SHELL: dict[str, str] = {
    "perl": ("system exec popen IPC::Run::run readpipe"),
    "ruby": (
        "system exec spawn popen IO.popen Open3.capture2 Open3.capture2e Open3.capture3 Open3.popen3 "
        "Open3.popen2 Kernel.system Kernel.exec Kernel.spawn PTY.spawn Process.spawn"
    ),
    "javascript": (
        "execSync exec child_process.exec child_process.execSync shell.exec execa.command execaCommandSync $ Bun.$ zx.$"
    ),
    "php": ("system exec shell_exec passthru popen proc_open pcntl_exec"),
    "lua": ("os.execute io.popen"),
    "r": ("system system2 shell"),
    "tcl": ("exec spawn open"),
    "julia": ("run"),
    "groovy": ("execute"),
    "elixir": ("System.cmd System.shell os.cmd"),
    "scheme": (
        "system system* run-program sh shell call-process uiop:run-program os/shell "
        "shell-command start-process async-shell-command shell-command-to-string"
    ),
    "haskell": ("callCommand system"),
    "octave": ("system shell_cmd unix dos"),
}
"""Functions, by language, whose first argument a shell runs."""

ARGV: dict[str, str] = {
    "javascript": (
        "spawn spawnSync execFile execFileSync child_process.spawn child_process.spawnSync "
        "child_process.execFile child_process.execFileSync Bun.spawn Bun.spawnSync Deno.run Deno.Command "
        "execa execaSync fork"
    ),
    "elixir": ("System.cmd"),
}
"""Functions, by language, that run a program with a list of arguments."""

_KINDS = {
    "tree": (
        "rmtree remove_tree rm_rf rm_r rmSync rmdirSync rm rmdir removeSync remove rimraf rimrafSync "
        "FileUtils.rm_rf FileUtils.rm_r FileUtils.remove_dir FileUtils.remove_entry "
        "FileUtils.remove_entry_secure fs.rm fs.rmSync fs.rmdir fs.rmdirSync fs.removeSync fs.remove "
        "fs.emptyDirSync Deno.remove Deno.removeSync File::Path::rmtree File::Path::remove_tree "
        "delete_directory delete-directory delete-directory/files delete-tree File.rm_rf "
        "File.rm_rf! fsPromises.rm fs.promises.rm del.sync unlink_recursive"
    ),
    "file": (
        "unlink unlinkSync fs.unlink fs.unlinkSync File.delete File.unlink FileUtils.rm FileUtils.rm_f "
        "FileUtils.remove Dir.rmdir Dir.delete Dir.unlink os.remove file.remove truncateSync fs.truncateSync "
        "fs.promises.unlink fsPromises.unlink Pathname.delete File.rm File.rm! Deno.truncateSync ftruncate "
        "truncate delete-file"
    ),
    "write": (
        "writeFile writeFileSync appendFile appendFileSync fs.writeFile fs.writeFileSync fs.appendFile "
        "fs.appendFileSync fs.promises.writeFile fsPromises.writeFile file_put_contents File.write IO.write "
        "File.binwrite createWriteStream fs.createWriteStream Deno.writeTextFile Deno.writeTextFileSync "
        "Deno.writeFile Bun.write write_file spew outputFileSync fs.outputFileSync writeLines cat.file "
        "File.write! symlinkSync fs.symlinkSync symlink"
    ),
    "read": (
        "readFile readFileSync fs.readFile fs.readFileSync fs.promises.readFile file_get_contents readfile "
        "File.read IO.read File.readlines fs.createReadStream Deno.readTextFile Deno.readTextFileSync "
        "Bun.file file slurp readLines IO.readlines File.foreach File.read!"
    ),
    "open": ("open fopen io.open File.open File.new fs.openSync openSync IO.open sysopen Deno.open Deno.openSync"),
    "copy": (
        "copyFileSync fs.copyFileSync renameSync fs.renameSync rename copy FileUtils.cp FileUtils.mv "
        "FileUtils.cp_r File.rename fs.rename fs.copyFile fs.cpSync cpSync fs.moveSync File::Copy::copy "
        "File::Copy::move File.cp File.cp! move"
    ),
    "chmod": ("chmod chmodSync fs.chmodSync fs.chmod File.chmod FileUtils.chmod FileUtils.chmod_R Sys.chmod"),
    "evaluate": ("eval Function assert loadstring create_function"),
    "kill": ("kill process.kill Process.kill posix_kill"),
    "store": ("dropDatabase dropCollection deleteMany drop flushall flushAll flushdb flushDb flushAllSync"),
    "sql": (
        "query exec execute do prepare executeSql run all multi_query mysqli_query pg_query mysql_query raw "
        "$queryRawUnsafe $executeRawUnsafe $executeRaw db.exec exec_query"
    ),
}
KINDS = {name: kind for kind, names in reversed(_KINDS.items()) for name in names.split()}
"""What each function does, in any language."""
QUALIFIERS = frozenset(
    "fs child_process cp fileutils file os io kernel process deno bun dir fse shelljs shell open3 "
    "path this promises fsp proc exec base".split()
)
"""Modules before a function's name that leave no doubt which function it is."""
