"""Keys that make and change keys: no key makes or changes one that may do more; and safe defaults."""

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
        await opened.people.create_owner()
        await opened.people.create_user("alice")
        yield opened


async def enter(engine: Engine, key: NewKey) -> Engine:
    return engine.as_person(await engine.people.authenticate(key.secret))


def test_every_field_of_a_key_is_a_restriction_or_none() -> None:
    assert {field.name for field in fields(Key)} == NARROWED.keys() | UNRESTRICTING
    assert NARROWED.keys() == WIDER.keys()


@pytest.mark.parametrize("holder", ["alice", "owner"])
@pytest.mark.parametrize("restriction", NARROWED)
async def test_a_narrower_key_changes_no_wider_one(engine: Engine, holder: str, restriction: str) -> None:
    narrow_key = await engine.people.create_key(holder, **(WIDEST | NARROWED[restriction]))
    narrow = await enter(engine, narrow_key)
    for user in {holder, "alice"}:
        for limits in WIDER[restriction]:
            wide = await engine.people.create_key(user, **(WIDEST | limits))
            with pytest.raises(PermissionDenied):
                await narrow.people.rotate_key(wide.key.id)
            with pytest.raises(PermissionDenied):
                await narrow.people.revoke_key(wide.key.id)
            assert (await engine.people.authenticate(wide.secret)).key == wide.key.id


@pytest.mark.parametrize("holder", ["alice", "owner"])
@pytest.mark.parametrize("restriction", NARROWED)
async def test_a_narrower_key_makes_no_wider_one(engine: Engine, holder: str, restriction: str) -> None:
    narrow = await enter(engine, await engine.people.create_key(holder, **(WIDEST | NARROWED[restriction])))
    for limits in WIDER[restriction]:
        wider = {**WIDEST, **NARROWED[restriction], **limits}
        if restriction == LOWERED:
            wider |= {"origin": limits.get("origin")}
            assert (await narrow.people.create_key(**wider)).key.origin == "tool"
            continue
        with pytest.raises(PermissionDenied):
            await narrow.people.create_key(**wider)


@pytest.mark.parametrize("restriction", NARROWED)
async def test_a_narrower_key_makes_and_changes_its_equals(engine: Engine, restriction: str) -> None:
    limits = WIDEST | NARROWED[restriction]
    narrow = await enter(engine, await engine.people.create_key("alice", **limits))
    equal = await narrow.people.create_key(**limits)
    renewed = await narrow.people.rotate_key(equal.key.id)
    for name in NARROWED:
        assert getattr(renewed.key, name) == getattr(equal.key, name)
    assert (await narrow.people.revoke_key(renewed.key.id)).revoked is not None


@pytest.mark.parametrize("restriction", NARROWED)
async def test_a_key_may_end_or_renew_itself(engine: Engine, restriction: str) -> None:
    created = await engine.people.create_key("alice", **(WIDEST | NARROWED[restriction]))
    renewed = await (await enter(engine, created)).people.rotate_key(created.key.id)
    again = await enter(engine, renewed)
    assert (await again.people.revoke_key(renewed.key.id)).revoked is not None


async def test_a_request_with_a_lower_origin_changes_no_other_key(engine: Engine) -> None:
    first, other = [await engine.people.create_key("alice", **WIDEST) for _ in range(2)]
    lowered = (await enter(engine, first)).with_origin("web")
    with pytest.raises(PermissionDenied):
        await lowered.people.revoke_key(other.key.id)


async def test_without_an_expiry_a_key_ends_with_the_one_that_made_it(engine: Engine) -> None:
    narrow = await enter(engine, await engine.people.create_key("alice", scopes=SCOPES, expires=SOON))
    assert (await narrow.people.create_key()).key.expires == SOON
    with pytest.raises(PermissionDenied):
        await narrow.people.create_key(expires="never")


@pytest.mark.parametrize(("role", "scopes"), [("viewer", 2), ("editor", 2), ("manager", 3), ("owner", 3)])
async def test_a_key_has_the_scopes_that_roles_need(engine: Engine, role: Any, scopes: int) -> None:
    await engine.collections.create("wiki")
    await engine.people.grant("wiki", Principal("user", "alice"), role)
    assert (await engine.people.create_key("alice")).key.scopes == SCOPES[:scopes]


async def test_who_owns_a_collection_administers_it(engine: Engine) -> None:
    assert (await engine.people.create_key("alice")).key.scopes == ("read", "write")
    await (await enter(engine, await engine.people.create_key("alice"))).collections.create("own")
    assert (await engine.people.create_key("alice")).key.scopes == SCOPES


async def test_a_key_expires_unless_it_is_the_owners(engine: Engine) -> None:
    now = datetime.now(UTC)
    expires = (await engine.people.create_key("alice")).key.expires
    assert expires is not None and abs(expires - now - timedelta(days=365)) < timedelta(hours=1)
    owner = await engine.people.create_key("owner")
    assert (owner.key.expires, owner.key.scopes) == (None, SCOPES)


@pytest.mark.parametrize(("days", "expires"), [(0, False), (10**9, True)])
async def test_days_of_the_settings(tmp_path: Path, days: int, *, expires: bool) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none", key_days=days)) as engine:
        await engine.people.create_user("alice")
        assert ((await engine.people.create_key("alice")).key.expires is not None) is expires
