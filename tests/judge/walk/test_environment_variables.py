"""Variables of the environment that make a program run something are judged by what they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.approval.task_disk import HostDisk
from handrail.judge import assess

COMMANDS = (
    "GIT_SSH_COMMAND GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_EXTERNAL_DIFF GIT_ASKPASS GIT_PROXY_COMMAND SSH_ASKPASS "
    "PAGER MANPAGER LESSCLOSE LESSEDIT EDITOR VISUAL FCEDIT BROWSER SYSTEMD_PAGER SYSTEMD_EDITOR PSQL_PAGER PSQL_EDITOR "
    "AWS_PAGER BAT_PAGER DELTA_PAGER KUBE_EDITOR GH_PAGER GH_EDITOR GH_BROWSER SVN_EDITOR HGEDITOR HGMERGE RSYNC_RSH CVS_RSH "
    "SVN_SSH RUSTC_WRAPPER CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER FZF_DEFAULT_COMMAND CMAKE_C_COMPILER_LAUNCHER "
    "npm_config_script_shell NEWTOOL_SHELL NEWTOOL_CMD NEWTOOL_HOOK"
).split()


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("form", ["{0}='rm -rf ~' x", "export {0}='rm -rf ~'; x", "env {0}='rm -rf ~' x"])
def test_a_dangerous_command_in_a_variable_is_found(name: str, form: str) -> None:
    assert assess(form.format(name)).dangerous


@pytest.mark.parametrize(
    "command",
    [
        "LESSOPEN='|rm -rf ~' less x",
        "LESSOPEN='||-sh -c \"rm -rf ~\" %s' less x",
        "TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=reboot' tar xf x",
        "LESS='+!reboot' less x",
        "FZF_DEFAULT_OPTS='--preview=reboot' fzf",
        "GIT_SSH=/tmp/x git fetch",
        "SUDO_ASKPASS=/tmp/x sudo -A ls",
        "PYTHONBREAKPOINT=os.system python3 x.py",
        "PYTHONBREAKPOINT=subprocess.getoutput pytest",
        "export PYTHONBREAKPOINT=shutil.rmtree; python x.py",
        "env PYTHONBREAKPOINT=builtins.exec python x.py",
        "PYTHONBREAKPOINT=$x python x.py",
        "git -c alias.x='!rm -rf ~' x",
        "git -c core.pager='rm -rf ~' log",
        "X='rm -rf ~' git --config-env=core.editor=X commit",
    ],
)
def test_other_ways_to_run_something_by_a_variable_ask(command: str) -> None:
    assert assess(command).dangerous


@pytest.mark.parametrize(
    "command",
    [
        "GIT_SSH_COMMAND='ssh -i ~/.ssh/id_ed25519 -o StrictHostKeyChecking=no' git push",
        "GIT_EDITOR=true git rebase --continue",
        "GIT_SEQUENCE_EDITOR=: git rebase -i --autosquash main",
        "PAGER=cat git log",
        "PAGER='less -R' man ls",
        "LESSOPEN='| /usr/bin/lesspipe %s' less x.gz",
        "LESSOPEN='||/usr/bin/highlight -O ansi %s' less x",
        "LESS=-FRX git log",
        "VISUAL='code --wait' git commit",
        "BROWSER=none npm start",
        "AWS_PAGER='' aws s3 ls",
        "RSYNC_RSH=ssh rsync -a src host:dst",
        "RUSTC_WRAPPER=sccache cargo build",
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=qemu-x86_64 cargo test",
        "FZF_DEFAULT_COMMAND='fd --type f' fzf",
        "TAR_OPTIONS=--no-same-owner tar xf x.tar",
        "PYTHONBREAKPOINT=0 pytest",
        "PYTHONBREAKPOINT= python x.py",
        "PYTHONBREAKPOINT=ipdb.set_trace python x.py",
        "PYTHONBREAKPOINT=IPython.core.debugger.set_trace pytest -x",
        "git -c alias.st=status st",
        "git -c core.pager=cat log",
    ],
)
def test_ordinary_values_ask_nothing(command: str) -> None:
    assert not assess(command).dangerous


@pytest.mark.parametrize(
    "command",
    [
        "ld --plugin {0}/x.so a.o",
        "gdb -x {0}/x.gdb a",
        "EDITOR={0}/ed git commit",
        "PATH={0}/bin:$PATH make",
        "PERL5LIB={0}/lib perl -e 1",
        "NODE_PATH={0}/modules node -e 1",
        "MAVEN_OPTS=-javaagent:{0}/a.jar mvn test",
        "LD_LIBRARY_PATH={0}/build ls",
        "GIT_CONFIG_GLOBAL={0}/settings git status",
        "git -c core.hooksPath={0}/hooks commit",
        "hash -p {0}/x x",
    ],
)
def test_what_lies_in_the_work_tree_is_not_foreign_even_below_tmp(command: str, tmp_path: Path) -> None:
    inner = tmp_path / "repository" / "sub"
    inner.mkdir(parents=True)
    (inner.parent / ".git").mkdir()
    for own in (inner, inner.parent):
        assert not assess(command.format(own), cwd=str(inner), disk=HostDisk(0.0)).dangerous
    foreign = command.format("/tmp/somewhere-else")
    assert assess(foreign, cwd=str(inner), disk=HostDisk(0.0)).dangerous
    assert assess(f"cd /tmp/somewhere-else && {foreign}", cwd=str(inner), disk=HostDisk(0.0)).dangerous
