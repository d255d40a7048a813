"""What counts as public, and what an operator may allow."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import InvalidInput
from conspectus.sources.web.address_policy import (
    AddressPolicy,
    is_inside_name,
    is_public,
    resolve_name,
)

INSIDE = """
0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.255 168.63.129.16 169.254.0.1
169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1
198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::7f00:1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:a9fe:a9fe ::ffff:0:127.0.0.1 64:ff9b::7f00:1
64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1
2001:20::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fd20:ce::254
fe80::1 fe80::1%eth0 fec0::1 ff02::1 4000::1
"""
OUTSIDE = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255
172.15.255.255 172.32.0.0 192.167.255.255 198.17.255.255 198.20.0.0 223.255.255.255 ::ffff:8.8.8.8
64:ff9b::808:808 2001:4860:4860::8888 2606:4700:4700::1111 2a00:1450::1
"""
FORBIDDEN = INSIDE.split()
PUBLIC = OUTSIDE.split()
PLACES_4 = st.ip_addresses(v=4)


@pytest.mark.parametrize("text", FORBIDDEN)
def test_addresses_inside_are_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_addresses_outside_are_public(text: str) -> None:
    assert is_public(ip_address(text))


@given(st.ip_addresses())
def test_nothing_special_to_python_is_public(address: IPv4Address | IPv6Address) -> None:
    plain = getattr(address, "ipv4_mapped", None) or address
    if plain.is_private or plain.is_loopback or plain.is_link_local or plain.is_multicast:
        assert not is_public(address)


@given(
    st.one_of(
        PLACES_4,
        st.sampled_from([IPv4Address(text) for text in FORBIDDEN if "." in text and ":" not in text]),
    )
)
def test_an_address_within_an_address_is_never_more_public(address: IPv4Address) -> None:
    number = int(address)
    mapped, translated = IPv6Address((0xFFFF << 32) | number), IPv6Address((0x64FF9B << 96) | number)
    assert is_public(mapped) == is_public(translated) == is_public(address)
    assert not is_public(IPv6Address(number))
    assert not is_public(IPv6Address((0x2002 << 112) | (number << 80)))
    assert not is_public(IPv6Address((0x20010000 << 96) | (number ^ 0xFFFFFFFF)))


@pytest.mark.parametrize(
    "name", ["localhost", "a.localhost", "printer.local", "x.internal", "metadata", "nas.lan"]
)
def test_local_names(name: str) -> None:
    assert is_inside_name(name)
    assert not AddressPolicy().may_ask(name)
    assert not AddressPolicy().is_allowed(name, ip_address("8.8.8.8"))


def test_names_that_only_look_local() -> None:
    assert not any(map(is_inside_name, ["local.org", "notlocal.de", "internal.example.org", "localhost.com"]))


def test_an_operator_allows_names_addresses_and_networks() -> None:
    boundary = AddressPolicy.from_entries(
        ["Wiki.Internal", " 127.0.0.1 ", "10.1.0.0/16", "[::1]", "fd00::/8", ""]
    )
    admitted = [
        boundary.is_allowed("x.org", ip_address(text)) for text in ("127.0.0.1", "10.1.2.3", "::1", "fd01::1")
    ]
    refused = [
        boundary.is_allowed("x.org", ip_address(text)) for text in ("127.0.0.2", "10.2.0.1", "::2", "fe80::1")
    ]
    assert all(admitted) and not any(refused)
    assert boundary.is_allowed("x.org", ip_address("::ffff:10.1.2.3"))
    assert boundary.is_allowed("wiki.internal", ip_address("192.168.1.1"))
    assert not boundary.is_allowed("other.internal", ip_address("192.168.1.1"))
    assert not boundary.is_allowed("other.internal", ip_address("8.8.8.8"))
    assert boundary.is_allowed("other.internal", ip_address("10.1.2.3"))


@pytest.mark.parametrize(
    "entry", ["10.0.0.0/33", "a b", "http://wiki", "wiki:80", "wiki/x", "user@wiki", "0x7f.1"]
)
def test_entries_that_mean_nothing_are_refused(entry: str) -> None:
    with pytest.raises(InvalidInput, match="fetch_allowed_networks"):
        AddressPolicy.from_entries([entry])


async def test_the_system_looks_names_up() -> None:
    assert set(await resolve_name("localhost", 80)) <= {"127.0.0.1", "::1"}
    with pytest.raises(OSError):
        await resolve_name("nothing.invalid", 80)
