"""API keys: no key makes or changes one that may do more; and safe defaults."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import PermissionDenied
from conspectus.model.access import SCOPES, Key, NewKey, Principal
from conspectus.settings import Settings

SOON = datetime.now(UTC) + timedelta(days=30)
WIDEST: Mapping[str, Any] = {"scopes": SCOPES, "expires": "never"}
NARROWED: Mapping[str, Mapping[str, Any]] = {
    "scopes": {"scopes": ("read", "admin")},
    "expires": {"expires": SOON},
    "origin": {"origin": "tool"},
}
"""Each restriction of a key."""
WIDER: Mapping[str, list[Mapping[str, Any]]] = {
    "scopes": [{"scopes": ("read", "write")}, {"scopes": SCOPES}],
    "expires": [{"expires": "never"}, {"expires": SOON + timedelta(seconds=1)}],
    "origin": [{"origin": "agent"}, {"origin": "user"}, {}],
}
"""Keys that are wider than the one with that restriction."""
UNRESTRICTING = {"id", "user", "label", "created", "last_used", "revoked"}
LOWERED = "origin"
"""A restriction that a new key takes over, rather than being refused."""


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as opened:
        await opened.keys.create_first()
        await opened.people.create_user("alice")
        yield opened


async def enter(engine: Engine, key: NewKey) -> Engine:
    return engine.as_person(await engine.keys.authenticate(key.secret))


def test_every_field_of_a_key_is_a_restriction_or_none() -> None:
    assert {field.name for field in fields(Key)} == NARROWED.keys() | UNRESTRICTING
    assert NARROWED.keys() == WIDER.keys()


@pytest.mark.parametrize("holder", ["alice", "owner"])
@pytest.mark.parametrize("restriction", NARROWED)
async def test_a_narrower_key_changes_no_wider_one(engine: Engine, holder: str, restriction: str) -> None:
    narrow_key = await engine.keys.create(holder, **(WIDEST | NARROWED[restriction]))
    narrow = await enter(engine, narrow_key)
    for user in {holder, "alice"}:
        for limits in WIDER[restriction]:
            wide = await engine.keys.create(user, **(WIDEST | limits))
            with pytest.raises(PermissionDenied):
                await narrow.keys.rotate(wide.key.id)
            with pytest.raises(PermissionDenied):
                await narrow.keys.revoke(wide.key.id)
            assert (await engine.keys.authenticate(wide.secret)).key == wide.key.id


@pytest.mark.parametrize("holder", ["alice", "owner"])
@pytest.mark.parametrize("restriction", NARROWED)
async def test_a_narrower_key_makes_no_wider_one(engine: Engine, holder: str, restriction: str) -> None:
    narrow = await enter(engine, await engine.keys.create(holder, **(WIDEST | NARROWED[restriction])))
    for limits in WIDER[restriction]:
        wider = {**WIDEST, **NARROWED[restriction], **limits}
        if restriction == LOWERED:
            wider |= {"origin": limits.get("origin")}
            assert (await narrow.keys.create(**wider)).key.origin == "tool"
            continue
        with pytest.raises(PermissionDenied):
            await narrow.keys.create(**wider)


@pytest.mark.parametrize("restriction", NARROWED)
async def test_a_narrower_key_makes_and_changes_its_equals(engine: Engine, restriction: str) -> None:
    limits = WIDEST | NARROWED[restriction]
    narrow = await enter(engine, await engine.keys.create("alice", **limits))
    equal = await narrow.keys.create(**limits)
    renewed = await narrow.keys.rotate(equal.key.id)
    for name in NARROWED:
        assert getattr(renewed.key, name) == getattr(equal.key, name)
    assert (await narrow.keys.revoke(renewed.key.id)).revoked is not None


@pytest.mark.parametrize("restriction", NARROWED)
async def test_a_key_may_end_or_renew_itself(engine: Engine, restriction: str) -> None:
    created = await engine.keys.create("alice", **(WIDEST | NARROWED[restriction]))
    renewed = await (await enter(engine, created)).keys.rotate(created.key.id)
    again = await enter(engine, renewed)
    assert (await again.keys.revoke(renewed.key.id)).revoked is not None


async def test_a_request_with_a_lower_origin_changes_no_other_key(engine: Engine) -> None:
    first, other = [await engine.keys.create("alice", **WIDEST) for _ in range(2)]
    lowered = (await enter(engine, first)).with_origin("web")
    with pytest.raises(PermissionDenied):
        await lowered.keys.revoke(other.key.id)


async def test_without_an_expiry_a_key_ends_with_the_one_that_made_it(engine: Engine) -> None:
    narrow = await enter(engine, await engine.keys.create("alice", scopes=SCOPES, expires=SOON))
    assert (await narrow.keys.create()).key.expires == SOON
    with pytest.raises(PermissionDenied):
        await narrow.keys.create(expires="never")


@pytest.mark.parametrize(("role", "scopes"), [("viewer", 2), ("editor", 2), ("manager", 3), ("owner", 3)])
async def test_a_key_has_the_scopes_that_roles_need(engine: Engine, role: Any, scopes: int) -> None:
    await engine.collections.create("wiki")
    await engine.access.grant("wiki", Principal("user", "alice"), role)
    assert (await engine.keys.create("alice")).key.scopes == SCOPES[:scopes]


async def test_who_owns_a_collection_administers_it(engine: Engine) -> None:
    assert (await engine.keys.create("alice")).key.scopes == ("read", "write")
    await (await enter(engine, await engine.keys.create("alice"))).collections.create("own")
    assert (await engine.keys.create("alice")).key.scopes == SCOPES


async def test_a_key_expires_unless_it_is_the_owners(engine: Engine) -> None:
    now = datetime.now(UTC)
    expires = (await engine.keys.create("alice")).key.expires
    assert expires is not None and abs(expires - now - timedelta(days=365)) < timedelta(hours=1)
    owner = await engine.keys.create("owner")
    assert (owner.key.expires, owner.key.scopes) == (None, SCOPES)


@pytest.mark.parametrize(("days", "expires"), [(0, False), (10**9, True)])
async def test_days_of_the_settings(tmp_path: Path, days: int, *, expires: bool) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none", key_days=days)) as engine:
        await engine.people.create_user("alice")
        assert ((await engine.keys.create("alice")).key.expires is not None) is expires
