"""Where the web tools may go."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from typing import Any

import pytest

from handrail.errors import ConfigError, Denied, InvalidArguments, ToolFailed
from handrail.net.url_guard import Guard, is_public

PRIVATE = [
    "127.0.0.1",
    "127.8.9.10",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.5.4",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "::ffff:0:169.254.169.254",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:c0a8:101::1",
]
LOOPBACK_SPELLINGS = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://127.0.0.1./",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://0/",
    "https://[0:0:0:0:0:0:0:1]:8443/",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "64:ff9b::8.8.8.8", "2002:808:808::1"]
)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("url", LOOPBACK_SPELLINGS)
def test_loopback_is_refused_however_it_is_spelled(url: str) -> None:
    with pytest.raises(Denied, match="not a public address"):
        Guard().check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "ws://example.org/",
        "javascript:alert(1)",
        "data:text/html,x",
        "view-source:https://example.org",
        "example.org",
        "//example.org/",
        "",
        "http://",
        "http:///path",
        "http://user:secret@example.org/",
        "http://user@example.org/",
        "http://example.org\\@127.0.0.1/",
        "http://exa mple.org/",
        "http://example.org/\r\nHost: other",
        "http://[::1/",
        "http://example.org:99999/",
        "http://example.org:port/",
        "http://%31%32%37.0.0.1/",
        "http://" + "a" * 9000,
    ],
)
def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidArguments):
        Guard().check_url(url)


def test_a_secret_in_a_url_is_not_repeated() -> None:
    with pytest.raises(InvalidArguments) as refusal:
        Guard().check_url("https://user:hunter2hunter2@example.org/")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("host", ["localhost", "localhost.", "LOCALHOST", "127.1", "ip6-localhost"])
def test_a_name_is_judged_by_its_addresses(host: str) -> None:
    with pytest.raises((Denied, ToolFailed)):
        asyncio.run(Guard().addresses(host, 80))


@pytest.mark.parametrize("url", ["http://[::1]:8080/", "http://127.0.0.1:8080/", "http://2130706433:8080/"])
def test_what_a_refusal_says_that_could_be_allowed_can_be(url: str) -> None:
    with pytest.raises(Denied) as refusal:
        Guard().check_url(url)
    for entry in re.findall(r"`(.+?)`", str(refusal.value)):
        assert Guard([entry]).check_url(url).port == 8080


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(ToolFailed, match=r"nowhere\.invalid is not known"):
        asyncio.run(Guard().addresses("nowhere.invalid", 80))


@pytest.mark.parametrize(
    ("entry", "good", "bad"),
    [
        ("127.0.0.1", ("127.0.0.1", 80), ("127.0.0.2", 80)),
        ("127.0.0.1:8080", ("127.0.0.1", 8080), ("127.0.0.1", 80)),
        ("127.0.0.0/8", ("127.9.9.9", 80), ("10.0.0.1", 80)),
        ("[::1]:8080", ("::1", 8080), ("::1", 80)),
        ("::1", ("::1", 80), ("127.0.0.1", 80)),
        ("localhost:8080", ("localhost", 8080), ("localhost", 80)),
        ("localhost", ("localhost", 80), ("127.0.0.1", 80)),
        ("127.0.0.1", ("::ffff:127.0.0.1", 80), ("::ffff:127.0.0.2", 80)),
        ("127.0.0.0/8:8000-8010", ("127.0.0.3", 8010), ("127.0.0.3", 8011)),
    ],
)
def test_the_user_can_allow_a_private_place(entry: str, good: tuple[str, int], bad: tuple[str, int]) -> None:
    guard = Guard([entry])
    assert asyncio.run(guard.addresses(*good))
    with pytest.raises(Denied):
        asyncio.run(guard.addresses(*bad))


@pytest.mark.parametrize(
    "entry", ["10.0.0.0/99", "http://x/", "host:port", "/", "a/b", "127.0.0.1:99999", "10.0.0.0/8:9-1"]
)
def test_an_exception_that_means_nothing_is_an_error(entry: str) -> None:
    with pytest.raises(ConfigError):
        Guard([entry])


def test_only_the_public_ones_of_many_addresses_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(host: Any, port: Any, *_: Any, **__: Any) -> Any:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.1", "93.184.216.34")
        ]

    monkeypatch.setattr(socket, "getaddrinfo", answers)
    assert asyncio.run(Guard().addresses("two.example", 80)) == ["93.184.216.34"]
