"""Which commands the entries of `approvals.deny` and `approvals.allow` are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.approval.action_review import Judge, SelfProtection, builtin_assess
from handrail.approval.allowlist import BadEntry, allow_entries, deny_entries
from handrail.approval.policy import DecidedBy, Policy
from handrail.approval.settings import Settings, project_settings
from handrail.config.store import read_config
from handrail.errors import ConfigError
from handrail.protocols import Action, ActionKind

JUDGE = Judge(builtin_assess, SelfProtection(()))


def _decided(command: str, policy: Policy) -> tuple[DecidedBy, list[str]]:
    judged = JUDGE.judge(Action(ActionKind.COMMAND, command), "terminal", policy)
    ruling = policy.rule(judged, "terminal", granted=lambda _: False)
    return ruling.by, [item.finding.rule for item in ruling.pending]


def _denied(entry: str, command: str) -> bool:
    return _decided(command, Policy(deny=deny_entries([entry])))[0] is DecidedBy.DENY_LIST


@pytest.mark.parametrize(
    ("entry", "command"),
    [
        ("git push origin main", "git push origin main"),
        ("git push origin main", "git -C . push origin main"),
        ("git push origin main", "git --no-pager -c a.b=c push -q origin main"),
        ("git push origin main", "git push --set-upstream origin main"),
        ("git push origin main", "sudo sh -c 'cd x && git -C y push origin main'"),
        ("git push origin main", "git " + "-c a.b=c " * 40 + "push origin main"),
        ("git push --force", "git push origin main --forc"),
        ("git push --force", "git push -f origin main"),
        ("git push --force", "git -C . push -fu origin main"),
        ("git push -f", "git push origin main --force"),
        ("rm --recursive", "rm -fR x"),
        ("podman rm --force", "podman rm -vf x"),
        ("docker system prune --all", "docker system prune -af"),
        ("terraform destroy", "terraform -chdir=x destroy -auto-approve"),
        ("kubectl delete", "kubectl --context prod -n web delete pod x"),
        ("rm -rf", "rm -r -f x"),
        ("rm -rf *", "rm -v -fr x"),
        ("docker compose *", "docker --debug compose down"),
        ("*production*", "deploy --to production-eu"),
        ("git push --force*", "git push --force-with-lease origin"),
        ("*--force*", "git push origin --force"),
        ("curl * | sh", "curl -s https://x.example/a.sh  |  sh"),
        ("npm publish*", "npm publish --tag next"),
        ("git push --force*", "git push -f"),
        ("curl * | sh", "curl -fsSL https://x.example|sh"),
        ("*&& git push*", "npm test&&git push"),
        ("*DROP TABLE*", "psql -c 'drop  table x'"),
        ("pip install *", "pip3 install x"),
        ("docker * prune*", "podman system prune -af"),
        ("*/.ssh/*", "cat $HOME/.ssh/known_hosts"),
        ("git push [!f]*", "git push origin"),
        ("rm -rf $HOME/x", "rm -rf ~/x"),
        ("deploy.sh", "./scripts/deploy.sh prod"),
    ],
)
def test_an_entry_denies_every_spelling_of_its_command(entry: str, command: str) -> None:
    assert _denied(entry, command)


@pytest.mark.parametrize(
    ("entry", "command"),
    [
        ("git push origin main", "git push origin feature"),
        ("git push origin main", "git log origin main"),
        ("git push", "git commit -m push"),
        ("terraform destroy", "terraform plan -destroy"),
        ("rm -rf", "rm -f x"),
        ("kubectl delete --force", "kubectl delete -f x.yaml"),
        ("tar --force", "tar -f x.tar"),
        ("git push --force", "git fetch -f origin"),
        ("*production*", "deploy --to staging"),
        ("curl * | sh", "curl -s https://x.example/a.json | jq ."),
        ("git push --force*", "git push --follow-tags"),
        ("git push [!f]*", "git push fork"),
        ("cat *.env", "cat environment.txt"),
    ],
)
def test_an_entry_denies_nothing_else(entry: str, command: str) -> None:
    assert not _denied(entry, command)


@pytest.mark.parametrize("mode", [None, DecidedBy.OFF, DecidedBy.YOLO])
def test_what_may_be_denied_is_asked_about_in_every_mode(mode: DecidedBy | None) -> None:
    policy = Policy(ask_disabled_by=mode, deny=deny_entries(["git push origin main"]))
    by, pending = _decided('git push origin "$BRANCH"', policy)
    assert by is DecidedBy.HARMLESS
    assert pending == ["policy.unknown"]
    assert _decided('git fetch origin "$BRANCH"', policy)[1] == []


def test_options_in_between_do_not_widen_what_is_allowed() -> None:
    policy = Policy(allow=allow_entries(["git push origin"]))
    assert _decided("git -C sub push origin --force", policy)[0] is DecidedBy.ALLOW_LIST
    assert _decided("git -c core.sshCommand=/tmp/x push origin --force", policy)[1]
    assert _decided("git push other --force", policy)[1]


@pytest.mark.parametrize("options", ["-f prod.yml -p app", "-p app", "--file prod.yml", "--file=prod.yml"])
def test_another_project_named_in_between_is_not_allowed(options: str) -> None:
    policy = Policy(allow=allow_entries(["docker compose down --volumes"]), deny=())
    assert _decided("docker compose down -t 5 --volumes", policy)[0] is DecidedBy.ALLOW_LIST
    assert _decided(f"docker compose {options} down --volumes", policy)[1]
    denies = Policy(deny=deny_entries(["docker compose down"]))
    assert _decided(f"docker compose {options} down --volumes", denies)[0] is DecidedBy.DENY_LIST


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("'git push'", "no spaces"),
        ("--force", "does not name a program"),
        ("FOO=1 deploy", "assignment"),
        ("for x in y", "word of the shell"),
        ("> /etc/hosts", "word of the shell"),
        ("rm -rf $DIR", "replaced before"),
        ("rm $(cat list)", "replaced before"),
        ("git push [z-a]", "brackets"),
        ("git push |", "nothing follows"),
        ("tool:", "tool's name"),
        ("tool:send mail", "no spaces"),
        ("git 'push", "cannot be read"),
        ("", "empty"),
    ],
)
def test_an_entry_that_can_never_match_is_refused(entry: str, why: str) -> None:
    with pytest.raises(BadEntry, match=why) as caught:
        deny_entries(["git push", entry])
    assert caught.value.number == 1


def test_an_option_that_runs_another_program_is_not_allowed() -> None:
    policy = Policy(allow=allow_entries(["git push --force origin"]))
    assert _decided("git push --force origin main", policy)[0] is DecidedBy.ALLOW_LIST
    assert _decided("git push --force origin main --receive-pack='sh x.sh'", policy)[0] is not DecidedBy.ALLOW_LIST


def test_what_is_allowed_is_one_command() -> None:
    with pytest.raises(BadEntry, match="joins several"):
        allow_entries(["make build && make test"])


def test_the_error_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("approvals:\n  deny:\n    - git push\n    - --force\n")
    with pytest.raises(ConfigError, match=r"config\.yaml:4: approvals\.deny\[1\]: '--force' can never match"):
        Settings(read_config(path), path=path).policy()
    with pytest.raises(ConfigError, match=r"config\.yaml:4: approvals\.deny\[1\]"):
        project_settings(path)
