"""How a usage pattern is met: options in any order and spelling, sub-commands after global options, paths by class."""

from __future__ import annotations

import shlex

import pytest

from handrail.judge.rules import Command
from handrail.judge.rules.usage import EXCLUDED, PatternError, Usage
from handrail.judge.values.assessment import Reach
from handrail.judge.values.word_values import Arg


def _command(text: str) -> Command:
    name, *args = shlex.split(text)
    return Command(name, [Arg(arg) for arg in args])


def _meets(pattern: str, text: str) -> bool:
    return isinstance(Usage(pattern).matches(_command(text)), Reach)


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("rm -r|-R|--recursive", "rm -rf x"),
        ("rm -r|-R|--recursive", "rm x -vR"),
        ("rm -r|-R|--recursive", "rm --recursive x"),
        ("rm -r|-R|--recursive", "rm --rec x"),
        ("git push -f|--force", "git -C sub -c a=b push origin main --force"),
        ("git push -f|--force", "git --git-dir=/x push -qf"),
        ("docker volume rm|prune", "docker --context prod volume rm data"),
        ("docker compose down -v|--volumes", "docker compose -f prod.yml -p app down --volumes"),
        ("kubectl delete", "kubectl -n web --context=prod delete pod x"),
        ("hcloud server delete", "hcloud --unlisted value server delete web"),
        ("gcloud ... delete", "gcloud --project p compute instances delete vm"),
        ("aws * delete-*", "aws --region eu ec2 delete-vpc --vpc-id x"),
        ("find -delete", "find . -name x -delete"),
        ("terraform apply -destroy", "terraform -chdir=x apply -destroy"),
        ("terraform apply -destroy", "terraform apply --destroy"),
        ("gpg --export-secret-*", "gpg -a --export-secret-keys"),
        ("kubectl get secret* -o=yaml,json*", "kubectl get secrets -o json"),
        ("kubectl get secret* -o=yaml,json*", "kubectl get secret -ojsonpath={.x}"),
        ("squid -k=shutdown", "squid -k shutdown"),
        ("shred +", "shred x"),
        ("mv +2", "mv a b"),
        ("rm @home|system", "rm -f /srv/x"),
        ("cp >@startup", "cp x ~/.bashrc"),
        ("cp >@startup", "cp -t ~/.config/autostart x"),
        ("cat <@credential", "cat ~/.ssh/id_rsa"),
        ("chmod {mode:world-writable}", "chmod -R 777 x"),
    ],
)
def test_a_pattern_is_met(pattern: str, command: str) -> None:
    assert _meets(pattern, command)


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("rm -r|-R|--recursive", "rm -f x"),
        ("rm -r|-R|--recursive", "rm -- -r"),
        ("git push -f|--force", "git commit -m 'push --force'"),
        ("docker volume rm", "docker volume ls"),
        ("docker rm", "docker run --rm x"),
        ("find -delete", "find . -name delete"),
        ("kill -l", "kill -KILL 1"),
        ("curl --data-binary", "curl --data x"),
        ("kubectl get secret* -o=yaml", "kubectl get secrets -o wide"),
        ("gcloud ... delete", "gcloud logging read 'delete me'"),
        ("shred +", "shred --verbose"),
        ("rm @home|system", "rm x"),
        ("cp >@startup", "cp ~/.bashrc x"),
    ],
)
def test_a_pattern_is_not_met(pattern: str, command: str) -> None:
    assert not _meets(pattern, command)


def test_what_stands_after_an_exclamation_mark_excludes() -> None:
    assert Usage("git clean -f !-n|--dry-run").matches(_command("git clean -fdn")) is EXCLUDED
    assert isinstance(Usage("git clean -f !-n|--dry-run").matches(_command("git clean -fd")), Reach)


@pytest.mark.parametrize(
    ("command", "reach"),
    [
        ("rm -r build", Reach.PROJECT),
        ("rm -r /tmp/x", Reach.TEMP),
        ("rm -r ../x", Reach.OUTSIDE),
        ("rm -r ~/x", Reach.HOME),
        ("rm -r build /etc/x", Reach.SYSTEM),
        ("rm -r build \ue000", Reach.UNKNOWN),
    ],
)
def test_the_widest_place_is_how_far_it_goes(command: str, reach: Reach) -> None:
    assert Usage("rm -r @*").matches(_command(command)) is reach


@pytest.mark.parametrize("pattern", ["rm {nothing}", "rm %x"[:3] + "<x"])
def test_a_pattern_that_cannot_be_read_says_which_part(pattern: str) -> None:
    with pytest.raises(PatternError, match=pattern.split()[-1]):
        Usage(pattern)


@pytest.mark.parametrize(
    "command",
    [
        "docker rm --help",
        "git push -h",
        "aws s3 rm help",
        "kubectl delete pod x --dry-run=client",
        "npm publish --dry-run",
        "cargo --version",
        "helm help uninstall",
    ],
)
def test_help_and_dry_runs_only_talk(command: str) -> None:
    assert _command(command).only_talks(grave=False)


@pytest.mark.parametrize(
    "command",
    [
        "cargo yank --version 1.0.0 x",
        "kubectl delete pod x --dry-run=none",
        "shutdown -h",
        "kill -9 -1 --help",
        "k3s-uninstall.sh --help",
        "chown -h x y",
    ],
)
def test_what_looks_like_help_and_is_none_does_not(command: str) -> None:
    assert not _command(command).only_talks(grave=False)


def test_for_the_gravest_actions_help_must_stand_before_every_operand() -> None:
    assert _command("rm --help -rf /").only_talks(grave=True)
    assert not _command("rm -rf / --help").only_talks(grave=True)
