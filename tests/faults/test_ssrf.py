"""Known tricks to make a server ask inside its own network: none of them leads to a connection."""

import json
import ssl
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, ip_address
from pathlib import Path

import pytest

from conspectus.errors import FetchFailed, ForbiddenAddress, InvalidInput
from conspectus.sources.web.address_policy import is_public
from conspectus.sources.web.fetcher import WebFetcher
from conspectus.sources.web.http_client import FetchLimits
from conspectus.text.urls import parse_url
from tests.network import DeadNetwork, Directory
from tests.support.web_server import ScriptedServer, redirect

OUTSIDE = "93.184.216.34"
PUBLIC_SITES = """
307.r3dir.me blog.assetnote.io blog.pwnl0rd.me docs.docker.com docs.google.com edoverflow.com github.com
google.com hackerone.com imgur.com medium.com nicob.net nip.io quanyang.github.io ssrf.localdomain.pw
swisskyrepo.github.io webcache.googleusercontent.com www.611eternity.com www.agarri.fr www.blackhat.com
www.buymeacoffee.com www.dailysecurity.fr www.googleapis.com www.nginx.com www.rfk.id.au
www.shorebreaksecurity.com www.silentrobots.com www.sxcurity.pro www.youtube.com
"""
TARGETS = "127.0.0.1 169.254.169.254 10.0.0.1 192.168.1.1 172.16.0.9 100.100.100.200 0.0.0.0"
CIRCLED = str.maketrans("0123456789.", "⓪①②③④⑤⑥⑦⑧⑨。")
WIDE = str.maketrans("0123456789.", "".join(chr(0xFF10 + digit) for digit in range(10)) + "\uff0e")


def spellings(target: str) -> Iterator[str]:
    """One address in the ways that some program reads it."""
    number, parts = int(IPv4Address(target)), [int(part) for part in target.split(".")]
    first, rest = parts[0], target.partition(".")[2]
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    yield from (target, f"{target}.", str(number), hex(number), f"0{number:o}", f"0x{number:08X}")
    yield from (".".join(map(hex, parts)), ".".join(f"0{part:o}" for part in parts), f"0{first:o}.{rest}")
    yield from (
        f"{first}.{number & 0xFFFFFF}",
        f"{first}.{parts[1]}.{number & 0xFFFF}",
        f"{first + 256}.{rest}",
    )
    yield from (target.translate(CIRCLED), target.translate(WIDE), "".join(f"%{ord(c):02x}" for c in target))
    yield from (f"[::{high}:{low}]", f"[::ffff:{high}:{low}]", f"[::ffff:{target}]", f"[::ffff:0:{target}]")
    yield from (f"[64:ff9b::{high}:{low}]", f"[64:ff9b:1::{target}]", f"[2002:{high}:{low}::1]")
    yield from (f"[::ffff:{target}%25eth0]", f"{target}%00.{OUTSIDE}", f"{OUTSIDE}@{target}")
    yield from (f"{target}\\@{OUTSIDE}", f"{OUTSIDE}\\@{target}", f"{OUTSIDE}#@{target}")
    yield from (f"{target}%09", f"{target}%2f{OUTSIDE}", f"{target}:80:80")


def fetcher(network: DeadNetwork, names: Directory) -> WebFetcher:
    """A fetcher that asks nothing but this network; it trusts no certificate, which saves reading them."""
    trusting_none = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return WebFetcher(FetchLimits(), resolve=names, backend=network, certificates=trusting_none)


async def addresses_tried(url: str, address: str) -> tuple[list[str], type[Exception]]:
    """The addresses that a fetch of the URL connects to, where every name stands for one address."""
    network = DeadNetwork()
    web = fetcher(network, Directory({}, address))
    with pytest.raises((InvalidInput, FetchFailed)) as caught:
        await web.fetch(url)
    await web.close()
    return network.tried, caught.type


@pytest.fixture
def urls(evaluation: Callable[[str], Path]) -> list[str]:
    lines = (evaluation("ssrf_urls") / "urls.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["url"] for line in lines]


@pytest.mark.parametrize("target", TARGETS.split())
async def test_no_spelling_leads_inside(target: str) -> None:
    for host in spellings(target):
        tried, error = await addresses_tried(f"http://{host}/", OUTSIDE)
        assert all(is_public(ip_address(address)) for address in tried), host
        assert tried in ([], [OUTSIDE]), host
        assert tried or error in {InvalidInput, ForbiddenAddress}, host


@pytest.mark.data
async def test_no_known_address_leads_inside_when_names_do(urls: list[str]) -> None:
    for url in urls:
        tried, error = await addresses_tried(url, "127.0.0.1")
        assert (tried, error in {InvalidInput, ForbiddenAddress}) == ([], True), url


@pytest.mark.data
async def test_of_the_known_addresses_only_public_sites_are_asked(urls: list[str]) -> None:
    hosts = set()
    for url in urls:
        tried, error = await addresses_tried(url, OUTSIDE)
        assert tried in ([], [OUTSIDE]), url
        assert bool(tried) == (error is FetchFailed), url
        if tried:
            hosts.add(parse_url(url).host)
    assert hosts <= set(PUBLIC_SITES.split()) and len(hosts) > 20


@pytest.mark.data
async def test_no_redirect_to_a_known_address_leads_inside(urls: list[str]) -> None:
    inside = []
    for url in urls:
        tried, _ = await addresses_tried(url, OUTSIDE)
        inside += [] if tried else [url]
    async with ScriptedServer() as server:
        for url in inside:
            network = DeadNetwork(alive=[OUTSIDE])
            web = fetcher(network, Directory({"a.org": [OUTSIDE]}, "127.0.0.1"))
            server.answers["/"] = redirect(url)
            with pytest.raises((FetchFailed, InvalidInput)):
                await web.fetch(f"http://a.org:{server.port}/")
            await web.close()
            assert set(network.tried) == {OUTSIDE}, url
    assert len(inside) > 70


@pytest.mark.data
async def test_no_known_address_leads_inside_when_names_change(urls: list[str]) -> None:
    changing = Directory(
        {parse_url(url).host: [[OUTSIDE], ["169.254.169.254"]] for url in urls if names_a_site(url)}
    )
    network = DeadNetwork()
    web = fetcher(network, changing)
    for url in [*urls, *urls]:
        with pytest.raises((FetchFailed, InvalidInput)):
            await web.fetch(url)
    await web.close()
    assert set(network.tried) == {OUTSIDE}


def names_a_site(url: str) -> bool:
    try:
        return parse_url(url).host in PUBLIC_SITES.split()
    except InvalidInput:
        return False
