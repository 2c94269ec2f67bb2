"""Interpreters, and where their programs are on a command line; variables and options that hold a command."""

from __future__ import annotations

SHELLS = frozenset(
    "ash bash csh dash elvish fish hush ksh ksh93 lksh mksh nu osh posh powershell pwsh rbash rzsh sh tcsh xonsh yash zsh".split()
)

_INTERPRETERS = {
    "python": "python pypy ipython jython micropython",
    "perl": "perl raku",
    "ruby": "ruby jruby irb pry",
    "javascript": "node nodejs deno bun tsx ts-node gjs",
    "php": "php",
    "lua": "lua luajit",
    "r": "Rscript R",
    "osascript": "osascript",
    "tcl": "tclsh wish expect",
    "julia": "julia",
    "groovy": "groovy",
    "swift": "swift",
    "elixir": "elixir",
    "scheme": "guile racket sbcl clisp ecl clojure clj bb emacs csi gosh newlisp janet hy",
    "haskell": "ghc ghci runghc",
    "scala": "scala",
    "kotlin": "kotlinc",
    "octave": "octave matlab scilab",
    "c": "go java jshell rust-script tcc dart",
    "other": "erl ocaml crystal gnuplot dc pike nim swipl gforth qjs maxima sage gp",
}
LANGUAGES = {name: language for language, names in _INTERPRETERS.items() for name in names.split()}
"""Interpreters by their name without a version, and the language that they read."""

CODE_OPTIONS = {
    "python": "-c",
    "perl": "-e -E",
    "ruby": "-e",
    "javascript": "-e --eval -p --print -pe eval",
    "php": "-r -B -R -E --run --process-begin --process-code --process-end",
    "lua": "-e",
    "r": "-e",
    "osascript": "-e",
    "tcl": "-c",
    "julia": "-e -E --eval --print",
    "groovy": "-e",
    "swift": "-e",
    "elixir": "-e --eval",
    "scheme": "-c -e --eval -eval --execute -execute",
    "haskell": "-e",
    "scala": "-e",
    "kotlin": "-e",
    "octave": "--eval -batch -r",
    "c": "-e",
    "other": "-e -eval --eval -g -c eval",
}
"""Options whose value is a program in that language."""

VALUE_LETTERS = {
    "python": "mWXQ",
    "perl": "IMmCDxiF",
    "ruby": "IrCEKTWx",
    "php": "dcfzt",
    "lua": "l",
    "javascript": "rC",
    "tcl": "f",
}
"""Other options of the interpreters that take a value."""

TEXT_OPTIONS = {
    "asciinema": "-c --command",
    "bat": "--pager",
    "borg": "--rsh --remote-path",
    "cpio": "--rsh-command",
    "delta": "--pager",
    "fetchmail": "--mda",
    "forever": "-c",
    "fzf": "--preview --bind",
    "gcloud": "--command",
    "hg": "--ssh",
    "less": "+!",
    "lftp": "-e -c",
    "man": "-P --pager -H --html",
    "more": "+!",
    "nano": "-s --speller",
    "nc": "-e -c",
    "ncat": "-c --sh-exec -e --exec",
    "pandoc": "--filter -F",
    "rclone": "--password-command",
    "restic": "--password-command",
    "rg": "--pre --hostname-bin",
    "rsync": "-e --rsh --rsync-path",
    "openvpn": "--up --down --route-up --tls-verify",
    "scp": "-S",
    "script": "-c --command",
    "sftp": "-S -D",
    "sort": "--compress-program",
    "split": "--filter",
    "sqlite3": "-cmd",
    "ssh-keygen": "-D",
    "tcpdump": "-z",
    "wget": "--use-askpass",
    "ttyrec": "-e",
    "zip": "-TT --unzip-command",
}
"""Options of ordinary programs whose value is run as a command."""

COMMAND_VARIABLES = frozenset(
    (
        "BROWSER CVS_RSH EDITOR FCEDIT GIT_ASKPASS GIT_EDITOR GIT_EXTERNAL_DIFF GIT_PAGER "
        "GIT_PROXY_COMMAND GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND LESSCLOSE LESSOPEN "
        "MANPAGER PAGER PROMPT_COMMAND PS4 RSYNC_RSH SSH_ASKPASS SUDO_ASKPASS SVN_SSH "
        "SYSTEMD_EDITOR SYSTEMD_PAGER VISUAL"
    ).split()
)
"""Variables whose value a program runs."""

INJECTING_VARIABLES = {
    **dict.fromkeys("BASH_ENV DYLD_INSERT_LIBRARIES ENV LD_AUDIT LD_PRELOAD PERL5DB PYTHONSTARTUP ZDOTDIR".split(), ""),
    "JAVA_TOOL_OPTIONS": r"-javaagent|-agent(?:lib|path)|-XX:On\w*Error",
    "NODE_OPTIONS": r"(?:^|\s)(?:-r\b|--(?:require|import|loader|experimental-loader))",
    "PERL5LIB": r"/tmp|/dev/shm|/var/tmp",
    "PERL5OPT": r"-[A-Za-z]*[MmdI]",
    "RUBYOPT": r"-[A-Za-z]*[rI]",
}
"""Variables that make programs load code, with what in their value does so."""
