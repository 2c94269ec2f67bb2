"""Which hosts are allowed, denied and asked about."""

from __future__ import annotations

import pytest

from handrail.approval.allowlist import GrantKey, parse_grant_key
from handrail.egress.policy import HostPolicy, Verdict, host_lists
from handrail.errors import ConfigError
from handrail.judge.values.assessment import Reach
from handrail.net.url_guard import parse_hosts, plain_host
from handrail.settings.services import NetworkConfig

ALLOW, DENY, ASK = Verdict.ALLOW, Verdict.DENY, Verdict.ASK


def policy(**settings: object) -> HostPolicy:
    config = NetworkConfig(**{"contain": "on", **settings})
    return HostPolicy(config, asks=config.contain == "on")


@pytest.mark.parametrize(
    ("pattern", "host", "port", "matches"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "www.example.org", 443, False),
        ("example.org", "notexample.org", 443, False),
        ("EXAMPLE.org.", "example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("example.org:443", "example.org", 443, True),
        ("example.org:443", "example.org", 80, False),
        ("example.org:8000-8010", "example.org", 8005, True),
        ("example.org:8000-8010", "example.org", 8011, False),
        ("10.0.0.0/8", "10.1.2.3", 22, True),
        ("10.0.0.0/8", "11.1.2.3", 22, False),
        ("10.0.0.0/8:22", "10.1.2.3", 23, False),
        ("10.0.0.0/8", "::ffff:10.1.2.3", 22, True),
        ("[2001:db8::]/32:443", "2001:db8::1", 443, True),
        ("[2001:db8::1]:443", "2001:db8::1", 443, True),
        ("2001:db8::/32", "2001:db9::1", 443, False),
        ("127.0.0.1:5432", "127.0.0.1", 5432, True),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
    ],
)
def test_a_pattern_matches_what_it_says(pattern: str, host: str, port: int, matches: bool) -> None:
    (parsed,) = parse_hosts([pattern], "network.allow")

    assert parsed.matches(plain_host(host), port) is matches


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "*.",
        "a b",
        "http://example.org",
        "example.org:x",
        "example.org:99999",
        "*.10.0.0.1",
        "a/b",
        "10.0.0.1:9-1",
    ],
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a host"):
        parse_hosts([text], "network.allow")


@pytest.mark.parametrize(
    ("spelled", "host"),
    [
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("[::]", "::1"),
        ("::ffff:169.254.169.254", "169.254.169.254"),
        ("64:ff9b::a9fe:a9fe", "169.254.169.254"),
        ("Example.ORG.", "example.org"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_a_host_has_one_spelling(spelled: str, host: str) -> None:
    assert plain_host(spelled) == host


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "2852039166", "0xa9fea9fe", "::ffff:a9fe:a9fe", "metadata.google.internal.", "fd00:ec2::254"],
)
@pytest.mark.parametrize("contain", ["on", "off"])
def test_cloud_metadata_is_denied_by_default_in_every_spelling(host: str, contain: str) -> None:
    assert policy(contain=contain).decide(plain_host(host), 80).verdict is DENY


def test_cloud_metadata_can_be_allowed_by_its_address_alone() -> None:
    assert policy(allow=("169.254.169.254",)).decide("169.254.169.254", 80).verdict is ALLOW
    assert policy(allow=("*.example.org",)).decide_address("a.example.org", 80, "169.254.169.254").verdict is DENY


def test_deny_wins_over_allow_and_lists() -> None:
    strict = policy(allow=("pypi.org",), lists=("package-registries",), deny=("*.org",))

    assert strict.decide("pypi.org", 443).verdict is DENY
    assert policy(allow=("*.org",), deny=("10.0.0.0/8",)).decide_address("a.org", 443, "10.0.0.1").verdict is DENY


def test_lists_are_off_until_turned_on_and_named_in_the_question() -> None:
    asked = policy().decide("pypi.org", 443)

    assert (asked.verdict, asked.listed) == (ASK, "package-registries")
    assert policy(lists=("package-registries",)).decide("pypi.org", 443).verdict is ALLOW
    assert policy(lists=("package-registries",)).decide("github.com", 443).listed == "code-hosts"
    with pytest.raises(ConfigError, match="known: package-registries, code-hosts"):
        policy(lists=("everything",))


@pytest.mark.parametrize("name", host_lists())
def test_every_shipped_host_is_a_host(name: str) -> None:
    parse_hosts(host_lists()[name], name)


def test_a_name_must_not_lead_to_this_machine_itself() -> None:
    loose = policy(allow=("*.example.org",), resolve={"dev.example.org": "127.0.0.1"})

    assert loose.decide_address("a.example.org", 5432, "127.0.0.1").verdict is ASK
    assert loose.decide_address("a.example.org", 5432, "10.0.0.1").verdict is ALLOW
    assert loose.decide_address("dev.example.org", 5432, "127.0.0.1").verdict is ALLOW


def test_without_containment_only_what_is_denied_is_refused() -> None:
    off = policy(contain="off", deny=("evil.example",))

    assert off.decide("anything.example", 443).verdict is ALLOW
    assert off.decide("evil.example", 443).verdict is DENY


def test_a_grant_for_a_list_covers_its_hosts_and_one_for_a_host_does_not_cover_the_list() -> None:
    whole, one, other = (
        parse_grant_key(f"net.{rule}@nowhere")
        for rule in ("code-hosts", "code-hosts.host.github.com:443", "code-hosts.host.github.com:22")
    )

    assert whole.covers(one)
    assert not one.covers(whole)
    assert not one.covers(other)
    assert not whole.covers(GrantKey("net.host.evil.example:443", Reach.NOWHERE))
