"""Keys of an issuer: rotated, kept while it is away, and fetched at a pace that nobody outside sets."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.token_issuer import JWKS, METADATA, RSA_KEY, TokenIssuer, public_jwk, usual_keys
from tests.support.web_server import Answer, redirect
from tests.waiting import until

from conspectus.providers.issuer_keys import (
    MAX_KEYS,
    MIN_FETCH_INTERVAL,
    REFRESH_SECONDS,
    IssuerFault,
    IssuerKeys,
)
from conspectus.sources.web.fetcher import WebFetcher
from conspectus.sources.web.http_client import FetchLimits

MAX_STALE = 3_600.0
WITHOUT_ID = public_jwk(RSA_KEY, None, "RS256")
AWAY = Answer(b"", 503)


@dataclass
class Desk:
    """An issuer, its keys here, and a clock of seconds."""

    issuer: TokenIssuer
    at: float = 0.0

    def monotonic(self) -> float:
        return self.at

    def open(self, issuer: str = "") -> IssuerKeys:
        fetcher = WebFetcher(FetchLimits(100_000, 0, 0.5, ("127.0.0.1",)))
        return IssuerKeys(
            issuer or self.issuer.url, fetcher, max_stale_seconds=MAX_STALE, monotonic=self.monotonic
        )


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with TokenIssuer() as issuer:
        yield Desk(issuer)


@pytest.fixture
async def keys(desk: Desk) -> AsyncIterator[IssuerKeys]:
    opened = desk.open()
    yield opened
    await opened.close()


async def test_keys_are_fetched_with_the_first_token_and_then_known(desk: Desk, keys: IssuerKeys) -> None:
    assert desk.issuer.fetches == 0
    assert not keys.has_keys
    answers = await asyncio.gather(*(keys.find(key_id) for key_id in ["rsa", "p256", "unknown"] * 5))
    assert [key and key["kid"] for key in answers] == ["rsa", "p256", None] * 5
    assert (desk.issuer.fetches, desk.issuer.server.count(JWKS)) == (1, 1)


async def test_a_flood_of_unknown_ids_costs_one_fetch_in_an_interval(desk: Desk, keys: IssuerKeys) -> None:
    for turn in range(1, 4):
        await asyncio.gather(*(keys.find(f"unknown-{number}") for number in range(300)))
        assert desk.issuer.fetches == turn
        desk.at += MIN_FETCH_INTERVAL
    desk.at -= 0.1
    assert await keys.find("rsa") is not None


async def test_a_new_key_is_found_and_an_old_one_ends(desk: Desk, keys: IssuerKeys) -> None:
    assert await keys.find("rsa") is not None
    desk.issuer.keys = [public_jwk(RSA_KEY, "next", "RS256")]
    assert await keys.find("next") is None, "too early"
    desk.at += MIN_FETCH_INTERVAL
    assert await keys.find("next") is not None
    assert await keys.find("rsa") is None


async def test_a_key_that_the_issuer_withdraws_ends_without_a_new_one(desk: Desk, keys: IssuerKeys) -> None:
    """Keys of some age are fetched again, and no request waits for that."""
    assert await keys.find("p256") is not None
    desk.issuer.keys = [key for key in usual_keys() if key["kid"] != "p256"]
    desk.at += REFRESH_SECONDS + 1
    assert await keys.find("p256") is not None

    async def has_ended() -> bool:
        return await keys.find("p256") is None

    await until(has_ended)


async def test_keys_outlive_an_issuer_that_is_away_up_to_the_limit(desk: Desk, keys: IssuerKeys) -> None:
    assert await keys.find("rsa") is not None
    desk.issuer.failure = AWAY
    desk.at += MAX_STALE
    assert await keys.find("rsa") is not None
    assert keys.has_keys
    desk.at += 1
    assert await keys.find("rsa") is None
    assert not keys.has_keys
    desk.issuer.failure = None
    desk.at += MIN_FETCH_INTERVAL
    assert await keys.find("rsa") is not None


async def test_an_issuer_that_is_away_at_the_start_is_asked_at_a_pace(desk: Desk, keys: IssuerKeys) -> None:
    desk.issuer.failure = AWAY
    for _ in range(20):
        assert await keys.find("rsa") is None
    assert desk.issuer.fetches == 1
    desk.issuer.failure = None
    desk.at += MIN_FETCH_INTERVAL
    assert await keys.find("rsa") is not None


async def test_who_leaves_does_not_end_the_fetch_for_others(desk: Desk, keys: IssuerKeys) -> None:
    gate = asyncio.Event()
    desk.issuer.failure = Answer(b"", 503, delay=gate)
    first, second = (asyncio.create_task(keys.find("rsa")) for _ in range(2))
    await until(lambda: desk.issuer.fetches == 1)
    first.cancel()
    gate.set()
    assert await second is None
    assert first.cancelled()
    assert desk.issuer.fetches == 1


FAULTS: dict[str, tuple[str, Any]] = {
    "another issuer": ("both must be equal", {"issuer": "https://evil.example.org"}),
    "no issuer": ("both must be equal", {"issuer": None}),
    "no address of keys": ("no `jwks_uri`", {"jwks_uri": None}),
    "an address of keys without https": ("no `jwks_uri`", {"jwks_uri": "http://keys.example.org/"}),
    "a file of keys": ("no `jwks_uri`", {"jwks_uri": "file:///etc/passwd"}),
    "keys inside the network": ("not public", {"jwks_uri": "https://10.0.0.1/keys"}),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_faults_of_the_metadata_are_named(name: str, desk: Desk, keys: IssuerKeys) -> None:
    reason, desk.issuer.metadata = FAULTS[name]
    with pytest.raises(IssuerFault, match=reason):
        await keys.load()


ANSWERS: dict[str, tuple[str, Answer]] = {
    "a status": ("status 503", AWAY),
    "a redirect": ("redirects", redirect("http://127.0.0.1:1/keys")),
    "no JSON": ("no JSON object", Answer(b"<html>")),
    "a list": ("no JSON object", Answer(b"[]")),
    "brackets without an end": ("no JSON object", Answer(b"[" * 50_000)),
    "no keys": ("no key for signatures", Answer(b"{}")),
    "keys that are no list": ("no key for signatures", Answer(b'{"keys": {"kid": "rsa"}}')),
    "keys without an id": ("no key for signatures", Answer(json.dumps({"keys": [WITHOUT_ID]}).encode())),
    "too many bytes": ("limit", Answer(b" " * 100_001)),
    "no end": ("limit", Answer(b" " * 1_000, endless=True)),
    "no answer": ("no complete response", Answer(b"{}", delay=60.0)),
}  # fmt: skip


@pytest.mark.parametrize("path", [METADATA, JWKS])
@pytest.mark.parametrize("name", ANSWERS)
async def test_faults_of_answers_are_named(name: str, path: str, desk: Desk, keys: IssuerKeys) -> None:
    reason, answer = ANSWERS[name]
    desk.issuer.server.answers[path] = answer
    is_about_keys = reason.startswith("no key") and path == METADATA
    with pytest.raises(IssuerFault, match="both must be equal" if is_about_keys else reason):
        await keys.load()
    assert await keys.find("rsa") is None


async def test_an_issuer_with_another_slash_is_another(desk: Desk) -> None:
    opened = desk.open(f"{desk.issuer.url}/")
    with pytest.raises(IssuerFault, match="to the last slash"):
        await opened.load()
    desk.issuer.metadata = {"issuer": f"{desk.issuer.url}/"}
    assert await opened.load()
    await opened.close()


async def test_only_so_many_keys_are_read(desk: Desk, keys: IssuerKeys) -> None:
    desk.issuer.keys = [{"kty": "RSA", "kid": str(number)} for number in range(MAX_KEYS + 1)]
    assert len(await keys.load()) == MAX_KEYS
