"""Programs that run others: whatever their options, what they run is found."""

from __future__ import annotations

import pytest

from handrail.judge import assess
from handrail.judge.programs.tables import CONTAINERS, WRAPPERS, skip_options
from handrail.judge.values.word_values import Arg

RUNNING = (
    "systemd-run -t rm -rf ~",
    "systemd-run --user -P -d rm -rf ~",
    "sudo -k rm -rf ~",
    "sudo -n -E -H rm -rf ~",
    "sudo -h host rm -rf ~",
    "flock -u /tmp/l rm -rf ~",
    "flock -n 9 rm -rf ~",
    "start-stop-daemon --start --exec /bin/rm -- -rf ~",
    "start-stop-daemon -S -x /bin/rm -- -rf ~",
    "bwrap --ro-bind / / --dev /dev rm -rf ~",
    "bwrap --bind / / --setenv A b --chdir /x -- rm -rf ~",
    "numactl -l rm -rf ~",
    "faketime -f '@2020' rm -rf ~",
    "setarch -R rm -rf ~",
    "setarch x86_64 -R rm -rf ~",
    "docker run -i alpine rm -rf /",
    "docker run -it -v /:/h --rm alpine rm -rf /h",
    "docker exec -i c rm -rf /",
    "docker compose exec -T web rm -rf /",
    "docker -H tcp://x exec c rm -rf /",
    "kubectl -n x exec -it p -- rm -rf /",
    "kubectl exec p -c c -- rm -rf /",
    "script -q /dev/null rm -rf ~",
    "script -qec 'rm -rf ~' /dev/null",
    "entr -s 'rm -rf ~'",
    "ls | entr rm -rf ~",
    "watchexec 'rm -rf ~'",
    "watchexec -e py -- rm -rf ~",
    "xterm -e rm -rf ~",
    "xterm -fg red -e 'rm -rf ~'",
    "gnome-terminal -- rm -rf ~",
    "gnome-terminal --command='rm -rf ~'",
    "dotenv -f .env run -- rm -rf ~",
    "nix shell nixpkgs#x -c rm -rf ~",
    "guix shell x -- rm -rf ~",
    "nix-shell -p x --run 'rm -rf ~'",
    "perf stat -e cycles rm -rf ~",
    "gdb -ex '!rm -rf ~' x",
    "gdb -ex 'python import os; os.system(\"rm -rf ~\")' x",
    "vim -es -c ':!true | rm -rf ~' -c q",
    "vim -Nesc 'set nu | :!rm -rf ~'",
    "gdb --args rm -rf ~",
    "strace -f -o /tmp/x rm -rf ~",
    "ltrace rm -rf ~",
    "valgrind --tool=none rm -rf ~",
    "unshare -rm rm -rf ~",
    "nsenter -t 1 -m -u -- rm -rf /",
    "chroot --userspec=a:b /mnt rm -rf /",
    "proot -0 rm -rf ~",
    "fakeroot rm -rf ~",
    "eatmydata rm -rf ~",
    "cgexec -g x:y rm -rf ~",
    "cpulimit -l 50 -- rm -rf ~",
    "taskset -c 0 rm -rf ~",
    "chrt -f 1 rm -rf ~",
    "ionice -c2 -n7 rm -rf ~",
    "prlimit --nofile=9 rm -rf ~",
    "choom -n 1 -- rm -rf ~",
    "torsocks rm -rf ~",
    "proxychains4 -q rm -rf ~",
    "sshpass -p x ssh h rm -rf /",
    "ssh -t -p 22 -i k u@h rm -rf /",
    "ssh u@h -p 22 rm -rf /",
    "ssh h -- rm -rf /",
    "autossh -M 0 h rm -rf /",
    "mosh h -- rm -rf /",
    "rsh h rm -rf /",
    "vagrant ssh -c 'rm -rf /'",
    "gcloud compute ssh vm --command 'rm -rf /'",
    "adb shell rm -rf /sdcard",
    "wsl -e rm -rf /",
    "distrobox enter -n x -e rm -rf ~",
    "conda run -n e rm -rf ~",
    "poetry run rm -rf ~",
    "uv run rm -rf ~",
    "npm exec -- rm -rf ~",
    "npx rimraf ~",
    "bundle exec rm -rf ~",
    "direnv exec . rm -rf ~",
    "aws-vault exec p -- rm -rf ~",
    "op run --env-file=x -- rm -rf ~",
    "git submodule foreach 'rm -rf ~'",
    "git bisect run rm -rf ~",
    "ip netns exec x rm -rf ~",
    "hyperfine 'rm -rf ~'",
    "su bob -c 'rm -rf /'",
    "su -l -c 'rm -rf /' bob",
    "su - -c 'rm -rf /'",
    "runuser bob -c 'rm -rf /'",
    "runuser -u bob rm -rf /",
    "pkexec --user bob rm -rf /",
    "run0 rm -rf /",
    "gosu bob rm -rf /",
    "setpriv --reuid 1000 rm -rf ~",
    "sg grp -c 'rm -rf ~'",
    "busybox ash -c 'rm -rf ~'",
    "env -i PATH=/bin rm -rf ~",
    "env -u A B=c -- rm -rf ~",
    "env -S'rm -rf ~'",
    "nohup -- rm -rf ~",
    "nice -n5 rm -rf ~",
    "nice --adjustment=5 rm -rf ~",
    "timeout --signal=9 --kill-after 5 10 rm -rf ~",
    "command -p rm -rf ~",
    "command -- rm -rf ~",
    "exec -c rm -rf ~",
    "builtin eval 'rm -rf ~'",
    "stdbuf -o0 -eL rm -rf ~",
    "chronic rm -rf ~",
    "ifne rm -rf ~",
    "retry -t 3 rm -rf ~",
    "unbuffer rm -rf ~",
    "dumb-init -- rm -rf ~",
    "tini -s -- rm -rf ~",
    "lxc exec c -- rm -rf /",
    "machinectl shell x /bin/rm -rf /",
    "apptainer exec i.sif rm -rf /data",
    "srun -N1 rm -rf ~",
    "mpirun -n 4 rm -rf ~",
    "at -f /dev/stdin now <<< 'rm -rf ~'",
    "batch <<< 'rm -rf ~'",
    "socat - EXEC:'rm -rf ~'",
    "tmux neww 'rm -rf ~'",
    "screen -X stuff 'rm -rf ~^M'",
    "ansible all -m shell -a 'rm -rf /'",
    "rg --pre 'rm -rf ~' x",
    "zip x y -T -TT 'rm -rf ~'",
    "fd -x rm -rf",
    r"find . -ok rm -rf {} \;",
    "find . -execdir rm -rf {} +",
    "parallel -j4 'rm -rf {}' ::: ~ /etc",
    "parallel ::: 'rm -rf ~'",
    "xargs -a f -I % sh -c 'rm -rf %'",
    "ls | xargs -n1 -P4 rm -rf",
    "lftp -c '!rm -rf ~'",
)
NOT_RUNNING = (
    "sudo -l",
    "sudo -v",
    "flock -u 9",
    "env",
    "command -v rm",
    "watch -n 2 df -h",
    "strace -e trace=kill ls",
    "perf list",
    "nix build",
    "gdb ./a.out",
    "docker run --rm -it ubuntu bash",
    "kubectl get pods -n rm",
    "git2 status",
    "command1 x",
    "nohup sudo -u rm ls",
    "env rm=1 ls",
    "timeout -s KILL 5 ls",
    "tmux ls",
    "ssh -o ProxyCommand=none host uptime",
    "busybox --list",
)


@pytest.mark.parametrize("command", RUNNING)
def test_what_a_wrapper_runs_is_judged(command: str) -> None:
    assessment = assess(command)
    assert assessment.dangerous, [segment.argv for segment in assessment.segments]


@pytest.mark.parametrize("command", NOT_RUNNING)
def test_what_is_only_an_option_or_its_value_is_not(command: str) -> None:
    assert assess(command).findings == ()


@pytest.mark.parametrize("name", WRAPPERS)
def test_every_wrapper_of_the_table_is_followed(name: str) -> None:
    wrapper = WRAPPERS[name]
    if wrapper.operands > 9:
        pytest.skip("it takes its command in an option")
    before = " ".join(["1"] * wrapper.operands)
    command = {"xterm": "-e", "start-stop-daemon": "--exec /bin/rm --"}.get(name, "--" if "terminal" in name else "")
    target = "-rf ~" if name == "start-stop-daemon" else "rm -rf ~"
    if name in ("konsole", "kitty", "alacritty", "foot", "wezterm"):
        command = "-e"
    text = f"{name} {before} {command} {target}"
    assert assess(text).dangerous, text


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_of_the_table_is_followed(name: str) -> None:
    container = CONTAINERS[name]
    for subcommand in container.subcommands.split() or [""]:
        words, _, number = subcommand.replace("/", " ").partition("=")
        operands = int(number) if number else container.operands
        if operands > 9:
            option = container.text.split()[0] if container.text else ""
            if not option:
                continue
            text = f"{name} {words} {option} 'rm -rf /'"
        else:
            text = f"{name} {words} {' '.join(['x'] * operands)} -- rm -rf /"
        assert assess(text).dangerous, text


def test_options_are_read_with_their_values() -> None:
    args = [Arg(word) for word in "-a -bc v --long w --flag --set=x -dy A=1 -- rm -x".split()]
    start, options = skip_options(args, "cd", "long", assignments=True)
    assert args[start:] == ["rm", "-x"]
    assert options == [
        ("-a", None),
        ("-b", None),
        ("-c", "v"),
        ("--long", "w"),
        ("--flag", None),
        ("--set", "x"),
        ("-d", "y"),
        ("=", "A=1"),
    ]
