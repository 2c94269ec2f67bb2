"""Programs that run another program given on their own command line. A new one is one line."""

from __future__ import annotations

from .wrapper_options import Wrapper

WRAPPERS: dict[str, Wrapper] = {
    "abduco": Wrapper("Aacne", inert="-l -v"),
    "alacritty": Wrapper("to"),
    "aoss": Wrapper(),
    "arch": Wrapper("e"),
    "builtin": Wrapper(),
    "busybox": Wrapper(inert="--list --list-full --install --help"),
    "bwrap": Wrapper(
        words=(
            "dev proc tmpfs mqueue dir chdir unsetenv lock-file hostname uid gid exec-label file-label seccomp cap-add cap-drop "
            "perms size userns userns2 pidns info-fd json-status-fd block-fd userns-block-fd sync-fd args add-seccomp-fd "
            "remount-ro"
        ),
        pairs=(
            "bind bind-try dev-bind dev-bind-try ro-bind ro-bind-try bind-fd ro-bind-fd setenv symlink file bind-data "
            "ro-bind-data chmod"
        ),
        chdir="--chdir",
    ),
    "caffeinate": Wrapper("tw"),
    "cage": Wrapper(),
    "catatonit": Wrapper(),
    "catchsegv": Wrapper(),
    "cgexec": Wrapper("g"),
    "choom": Wrapper("np", "adjust pid", inert="-p --pid"),
    "chpst": Wrapper("uUbe/nlLmdopfcrt"),
    "chronic": Wrapper(),
    "chroot": Wrapper(words="userspec groups", operands=1),
    "chrt": Wrapper("TPD", "sched-runtime sched-period sched-deadline", 1, inert="-m --max -p --pid"),
    "command": Wrapper(inert="-v -V"),
    "coreutils": Wrapper(),
    "cpulimit": Wrapper("lpeP", "limit pid exe path"),
    "daemon": Wrapper(
        "CnPFuRDmeaALMlboOE",
        "config name pidfiles pidfile user chroot chdir umask env output stdout stderr errlog dbglog",
        text="-X --command",
    ),
    "daemonize": Wrapper("ceolpuE"),
    "datefudge": Wrapper(operands=1),
    "dbus-run-session": Wrapper(words="config-file dbus-daemon"),
    "doas": Wrapper("aCu", assignments=True, inert="-L", raises=True),
    "dotenv": Wrapper("ef"),
    "dtach": Wrapper("aAcnNpErz"),
    "dumb-init": Wrapper("r"),
    "eatmydata": Wrapper(),
    "entr": Wrapper(),
    "env": Wrapper(
        "uCSa",
        "unset chdir split-string argv0 block-signal default-signal ignore-signal",
        assignments=True,
        inert="--help --version",
        chdir="-C --chdir",
    ),
    "envchain": Wrapper(operands=1),
    "envdir": Wrapper(operands=1),
    "exec": Wrapper("a"),
    "fakechroot": Wrapper("edcl", "lib elfloader environment config-dir"),
    "fakeroot": Wrapper("lisb", "lib faked unknown-is-real"),
    "faketime": Wrapper("p", "pid", 1),
    "firejail": Wrapper(),
    "flock": Wrapper("wE", "wait timeout conflict-exit-code", 1, text="-c --command"),
    "foot": Wrapper("taW"),
    "gamemoderun": Wrapper(),
    "gnome-terminal": Wrapper("t", "title working-directory"),
    "gosu": Wrapper(operands=1),
    "heaptrack": Wrapper("o"),
    "i386": Wrapper(),
    "ifne": Wrapper(),
    "ionice": Wrapper("cnpPu", "class classdata pid pgid uid", inert="-p --pid -P --pgid -u --uid -h"),
    "kitty": Wrapper("dTo"),
    "konsole": Wrapper("p", "workdir"),
    "lckdo": Wrapper("WE", operands=1),
    **dict.fromkeys(
        ("ld.so", "ld-linux.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-musl-x86_64.so.1"),
        Wrapper(words="library-path preload argv0 audit inhibit-rpath", inert="--list --verify --help"),
    ),
    "linux32": Wrapper(),
    "linux64": Wrapper(),
    "ltrace": Wrapper("eopsuaAnlxFD"),
    "mangohud": Wrapper(),
    "multitime": Wrapper("nsio"),
    "newgrp": Wrapper(operands=1, text="-c"),
    "nice": Wrapper("n", "adjustment"),
    "nocorrect": Wrapper(),
    "nodemon": Wrapper("ewixd", "ext watch ignore exec delay", text="-x --exec"),
    "noglob": Wrapper(),
    "nohup": Wrapper(),
    "nsenter": Wrapper("tSGW", "target setuid setgid wdns"),
    "numactl": Wrapper("imNCp", "interleave membind cpunodebind physcpubind preferred"),
    "optirun": Wrapper("bc"),
    "padsp": Wrapper("sn"),
    "pkexec": Wrapper(words="user", inert="--version --help", raises=True),
    "please": Wrapper("autdcgwp", "user dir group", inert="-l --list -v --version", chdir="-d --dir", raises=True),
    "primusrun": Wrapper(),
    "prlimit": Wrapper("po", "pid output", inert="-p --pid"),
    "proot": Wrapper("rbqwvkSRi", "rootfs bind qemu cwd", chdir="-w --cwd"),
    "proxychains": Wrapper("f"),
    "proxychains4": Wrapper("f"),
    **dict.fromkeys(("qemu-x86_64", "qemu-aarch64", "qemu-arm", "qemu-i386", "box64", "wine"), Wrapper("LEgs")),
    "retry": Wrapper("td"),
    "rlwrap": Wrapper("bCDfgHlMOPqsStwz"),
    "rr": Wrapper(operands=1),
    "run0": Wrapper(
        "uDpE",
        "user property unit chdir setenv group slice nice description background",
        chdir="-D --chdir",
        raises=True,
    ),
    "s6-setuidgid": Wrapper(operands=1),
    "schroot": Wrapper("cnduos", "chroot session-name directory user option shell"),
    "script": Wrapper(
        "IOBEmTo", "log-in log-out log-io log-timing logging-format output-limit echo", 1, text="-c --command"
    ),
    "sem": Wrapper("j", "jobs id", joined=True),
    "setarch": Wrapper(operands=1),
    "setlock": Wrapper(operands=1),
    "setpriv": Wrapper(
        words=(
            "ruid euid rgid egid reuid regid groups inh-caps ambient-caps bounding-set securebits "
            "pdeathsig selinux-label apparmor-profile"
        )
    ),
    "setsid": Wrapper(),
    "setuidgid": Wrapper(operands=1),
    "sg": Wrapper(operands=1, text="-c"),
    "softlimit": Wrapper("adflmoprst"),
    "ssh-agent": Wrapper("aEtPO", inert="-k -s -c"),
    "sshpass": Wrapper("pfPd"),
    "start-stop-daemon": Wrapper(
        "xpunsgckdraNI",
        "exec pidfile user name signal retry chuid group chdir chroot startas nicelevel",
        inert="-K --stop -T --status",
    ),
    "stdbuf": Wrapper("ioe", "input output error"),
    "steam-run": Wrapper(),
    "strace": Wrapper("eopsuEaIXSOPb", "output trace attach env user string-limit columns"),
    "su-exec": Wrapper(operands=1),
    "sudo": Wrapper(
        "aCcDghpRrTtUu",
        "user group host prompt chdir role type close-from other-user chroot command-timeout login-class auth-type",
        assignments=True,
        inert="-l -v -K -V --list --validate --version --help -e --edit",
        chdir="-D --chdir",
        raises=True,
    ),
    "supervise": Wrapper(),
    "systemd-cat": Wrapper("tp", "identifier priority stderr-priority"),
    "systemd-inhibit": Wrapper(words="what who why mode"),
    "systemd-nspawn": Wrapper(
        "DiMuESpZL", "directory image machine user setenv bind bind-ro template slice port chdir"
    ),
    "systemd-run": Wrapper(
        "HMpuEC",
        (
            "property unit host machine capsule setenv uid gid slice description on-calendar on-active on-boot on-startup "
            "on-unit-active on-unit-inactive working-directory nice service-type timer-property path-property socket-property"
        ),
        chdir="--working-directory",
    ),
    "taskset": Wrapper(operands=1, inert="-p --pid"),
    "time": Wrapper("fo", "format output"),
    "timeout": Wrapper("ks", "kill-after signal", 1),
    "tini": Wrapper("pe"),
    "torify": Wrapper(),
    "torsocks": Wrapper("uapP"),
    "toybox": Wrapper(inert="--long --help"),
    "tsocks": Wrapper(),
    "uclampset": Wrapper("mMp"),
    "unbuffer": Wrapper(),
    "unshare": Wrapper(
        "SGRw",
        ("map-user map-group root wd setuid setgid map-users map-groups propagation setgroups boottime monotonic"),
    ),
    "valgrind": Wrapper(),
    "watch": Wrapper("nq", "interval equexit", joined=True),
    "watchexec": Wrapper(
        "wefisoEd", "watch exts filter ignore signal delay-run debounce workdir shell env", joined=True
    ),
    "wezterm": Wrapper(operands=1),
    "winpty": Wrapper(),
    "x-terminal-emulator": Wrapper("T"),
    "x86_64": Wrapper(),
    "xterm": Wrapper("TnfgbSl"),
    "xvfb-run": Wrapper("enfspw", "error-file server-num auth-file server-args xauth-protocol wait"),
}

TERMINALS = frozenset("alacritty foot gnome-terminal kitty konsole wezterm x-terminal-emulator xterm".split())
"""Terminals run what follows `-e`, `-x` or `--`."""
