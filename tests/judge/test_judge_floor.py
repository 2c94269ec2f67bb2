"""The floor: what never runs, whoever allows it, in whichever way it is written; and what is not kept out by it."""

from __future__ import annotations

import shlex

import pytest

from handrail.judge import assess
from handrail.judge.programs.tables import TERMINALS, WRAPPERS
from handrail.judge.values.assessment import Verdict
from tests.fuzz.respelling.forms import all_forms

from ..approval.gate_support import gate, review

NEVER = """
rm -rf /
rm -rf /*
rm -fr --no-preserve-root /
rm -r -f //
rm -rf /./
rm -rf /etc/..
rm -rf ~
rm -rf ~/
rm -rf ~/*
rm -rf "$HOME"
rm -rf ${HOME:?}/*
rm -rf ~root
rm -rf /home
rm -rf /home/alice
rm -rf /root
rm -rf /etc /usr
rm -rf /{bin,sbin,lib}
rm -rf /us?
rm -rf /[eu]*
rm --recursive --force /var
cd / && rm -rf *
cd ~; rm -rf .
sudo rm -rf /boot
bash -c 'rm -rf /'
echo cm0gLXJmIC8= | base64 -d | sh
x=/; rm -rf $x
r=rm; $r -rf ~
find / -delete
find / -exec rm -rf {} +
find ~ -type f -delete
find / | xargs rm -rf
ssh host 'rm -rf /'
python3 -c "import shutil; shutil.rmtree('/')"
perl -e 'system("rm -rf /")'
shred -u /
rsync -a --delete empty/ /
mv ~ /dev/null
mkfs.ext4 /dev/sda1
mkfs -t xfs /dev/nvme0n1
mke2fs -F /dev/vdb
mkswap /dev/sdb
dd if=/dev/zero of=/dev/sda
dd of=/dev/mmcblk0 < x.img
cat x.img > /dev/sdb
echo x | tee /dev/sda
cp x.iso /dev/sdb
wipefs -a /dev/sda
blkdiscard /dev/nvme0n1
sgdisk --zap-all /dev/sda
fdisk /dev/sda
parted -s /dev/sda mklabel gpt
shred /dev/sda
cryptsetup luksFormat /dev/sda2
nvme format /dev/nvme0n1
badblocks -w /dev/sdb
hdparm --security-erase p /dev/sda
D=/dev/sda; dd if=/dev/zero of=$D
:(){ :|:& };:
f(){ f|f& };f
bash -c ':(){ :|:& };:'
perl -e 'fork while fork'
kill -9 -1
kill -KILL -- -1
kill -s TERM -1
kill -9 1
killall5 -9
pkill -9 -f .
killall -r '.*'
reboot
shutdown -h now
sudo shutdown -r +5
poweroff -f
halt
init 0
telinit 6
systemctl reboot
systemctl poweroff -i
systemctl start reboot.target
loginctl poweroff
busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager Reboot b true
echo b > /proc/sysrq-trigger
echo o | sudo tee /proc/sysrq-trigger
kexec -e
timeout 5 sudo reboot
nohup sudo poweroff &
"re"boot
$(echo reboot)
rm -rf / --help
rm -rf / --dry-run
handrail approvals approve 7
tee ~/.config/handrail/config.yaml
""".strip().splitlines()

ONLY_ASKED = """
rm -rf build
rm -rf node_modules/ dist/
rm -rf ~/project/build
rm -rf /srv/app/cache
rm -rf /tmp/x
find . -name '*.pyc' -delete
mkfs.ext4 disk.img
kill -9 12345
killall node
systemctl restart nginx
systemctl suspend
git push --force
docker system prune -af
""".strip().splitlines()

RESPELLED = all_forms()
FORMS = ("sudo sh -c {}", "true; {}\n", "( {}\n)", "if true; then {}\nfi", "env -i bash -c {}", "x=$({}\n)")
WRAPPED = [form.format(shlex.quote(command) if " -c " in form else command) for command in NEVER for form in FORMS]


@pytest.mark.parametrize("command", NEVER)
def test_what_never_runs_is_blocked(command: str) -> None:
    assert assess(command).verdict is Verdict.BLOCK


@pytest.mark.parametrize("command", WRAPPED)
def test_it_is_blocked_however_it_is_wrapped(command: str) -> None:
    assert assess(command).verdict is Verdict.BLOCK


@pytest.mark.parametrize("form", RESPELLED)
def test_it_is_blocked_in_every_other_way_of_writing_it(form: str) -> None:
    texts = [text for command in NEVER if (text := RESPELLED[form](command)) is not None]
    assert [text for text in texts if assess(text).verdict is not Verdict.BLOCK] == []


@pytest.mark.parametrize("name", sorted(set(WRAPPERS) - {"setarch", "start-stop-daemon"}))
def test_it_is_blocked_behind_every_program_that_runs_another(name: str) -> None:
    before = [name, *["1"] * WRAPPERS[name].operands, *(["-e"] if name in TERMINALS else [])]
    for command in ("rm -rf /", "reboot", "kill -9 -1", "dd if=/dev/zero of=/dev/sda"):
        assert assess(" ".join([*before, command])).verdict is Verdict.BLOCK


@pytest.mark.parametrize(
    "command",
    ["setarch x86_64 reboot", "start-stop-daemon -S -x /sbin/reboot", "env -S 'A=1 bash -c' 'x=/; rm -rf $x'"],
)
def test_it_is_blocked_behind_those_with_a_way_of_their_own(command: str) -> None:
    assert assess(command).verdict is Verdict.BLOCK


@pytest.mark.parametrize("command", NEVER)
def test_yolo_does_not_let_it_run(command: str) -> None:
    assert "no setting allows it" in review(gate(yolo=True), command)


@pytest.mark.parametrize("command", ONLY_ASKED)
def test_what_a_person_may_allow_is_only_asked_about(command: str) -> None:
    assert assess(command).verdict is Verdict.ASK


def test_a_project_that_is_a_home_or_the_root_is_protected_as_such() -> None:
    assert assess("rm -rf *", cwd="/").verdict is Verdict.BLOCK
    assert assess("rm -rf .", cwd="/home/alice").verdict is Verdict.BLOCK
    assert assess("rm -rf ..", cwd="/home/alice/app").verdict is Verdict.BLOCK
    assert assess("rm -rf build", cwd="/home/alice/app").verdict is Verdict.ASK
