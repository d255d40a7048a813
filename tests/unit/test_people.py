"""Accounts, groups, keys and grants through the engine: who may do what, and what is refused how."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import Conflict, InvalidInput, NotAllowed, NotFound, Unauthenticated
from conspectus.model.access import SCOPES, Person, Principal
from conspectus.settings import Settings

Enter = Callable[..., Any]
ALICE, BOB, TEAM = Principal("user", "alice"), Principal("user", "bob"), Principal("group", "team")


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        for name in ("alice", "bob", "carol"):
            await engine.create_user(name)
        yield engine


@pytest.fixture
def enter(owner: Engine) -> Enter:
    """The store as someone may use it who came with a key."""

    async def entered(name: str, *scopes: Any) -> Engine:
        made = await owner.create_key(name, scopes=scopes or SCOPES)
        return owner.answering(await owner.authenticate(made.secret))

    return entered


async def test_the_owner_account_is_made_once_and_its_key_shown_once(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        first = await engine.found_owner()
        assert first is not None
        assert await engine.authenticate(first.secret) == Person("owner", True, first.key.user, SCOPES)
        assert await engine.found_owner() is None
        await engine.revoke_key(first.key.id)
        assert await engine.found_owner() is None


async def test_a_store_with_users_but_without_keys_gets_its_first(owner: Engine) -> None:
    assert [each.name for each in await owner.users()] == ["alice", "bob", "carol", "owner"]
    assert await owner.found_owner() is not None
    assert len(await owner.users()) == 4


@pytest.mark.parametrize("name", ["", " ", "a/b", "local", "*", ".", "..", "x" * 101, "a\n", "\u202ea", " a"])
async def test_names_that_stand_for_something_else_are_refused(owner: Engine, name: str) -> None:
    for made in (owner.create_user, owner.create_group):
        with pytest.raises(InvalidInput):
            await made(name)


async def test_names_that_are_taken_are_refused(owner: Engine) -> None:
    await owner.create_collection("dora/notes")
    for name in ("alice", "owner", "dora"):
        with pytest.raises(Conflict):
            await owner.create_user(name)
    await owner.create_user("Äñna 🎉 O'Brien; --")
    with pytest.raises(Conflict):
        await owner.create_collection("alice/notes")
    with pytest.raises(Conflict):
        await owner.update_collection("dora/notes", rename="alice/notes")
    with pytest.raises(Conflict):
        await owner.add("x", collection="bob/new")


async def test_the_owner_account_stays(owner: Engine) -> None:
    for work in (owner.disable_user("owner"), owner.delete_user("local", heir="alice")):
        with pytest.raises(Conflict):
            await work
    with pytest.raises(InvalidInput):
        await owner.delete_user("alice", heir="alice")
    with pytest.raises(NotFound):
        await owner.delete_user("alice", heir="nobody")


async def test_only_the_owner_keeps_accounts(enter: Enter) -> None:
    alice = await enter("alice")
    for work in (
        alice.users(),
        alice.find_user("bob"),
        alice.find_user("nobody"),
        alice.create_user("dora"),
        alice.disable_user("bob"),
        alice.delete_user("bob"),
        alice.groups(),
        alice.create_group("team"),
        alice.delete_group("team"),
        alice.members("team"),
        alice.join("team", "alice"),
        alice.leave("team", "bob"),
        alice.keys("bob"),
        alice.keys("*"),
        alice.create_key("bob"),
        alice.found_owner(),
    ):
        with pytest.raises(NotAllowed):
            await work


async def test_an_owners_key_without_the_scope_keeps_none(owner: Engine, enter: Enter) -> None:
    boss = await enter("owner", "read", "write")
    for work in (boss.users(), boss.create_user("dora"), boss.create_key("alice"), boss.keys()):
        with pytest.raises(NotAllowed):
            await work
    assert await boss.collections() == []


async def test_a_deleted_users_collections_are_the_heirs(owner: Engine, enter: Enter) -> None:
    alice, bob = await enter("alice"), await enter("bob")
    await alice.add("the harvest of plums", collection="wiki")
    with pytest.raises(Conflict):
        await owner.delete_user("alice")
    await owner.delete_user("alice", heir="bob")
    assert [each.name for each in await bob.collections()] == ["bob/wiki"]
    assert (await bob.retrieve("plums", collection="wiki")).hits
    assert await alice.collections() == []
    await owner.create_user("alice")
    await (await enter("alice")).add("another harvest", collection="wiki")
    assert len(await bob.collections()) == 1


async def test_own_keys_are_ones_own_business(owner: Engine, enter: Enter) -> None:
    alice, bob = await enter("alice"), await enter("bob")
    made = await alice.create_key(label="laptop")
    assert (await owner.answering(await owner.authenticate(made.secret)).whoami()).name == "alice"
    assert (
        [each.label for each in await alice.keys()]
        == ["", "laptop"]
        == [each.label for each in await alice.keys("alice")]
    )
    told = set()
    for work in (bob.revoke_key(made.key.id), bob.rotate_key(made.key.id), bob.revoke_key("f" * 16)):
        with pytest.raises(NotFound) as refused:
            await work
        told.add(str(refused.value).replace(made.key.id, "f" * 16))
    assert len(told) == 1
    await owner.revoke_key(made.key.id)
    with pytest.raises(Unauthenticated):
        await owner.authenticate(made.secret)


async def test_no_key_is_worth_more_than_the_one_that_made_it(enter: Enter) -> None:
    narrow = await enter("alice", "read", "admin")
    broad = await (await enter("alice")).create_key()
    for work in (
        narrow.create_key(),
        narrow.create_key(scopes=("write",)),
        narrow.rotate_key(broad.key.id),
        (await enter("alice", "read", "write")).create_key(scopes=("read",)),
    ):
        with pytest.raises(NotAllowed):
            await work
    assert (await narrow.create_key(scopes=("admin", "read", "read"))).key.scopes == ("read", "admin")


async def test_keys_that_make_no_sense_are_refused(owner: Engine) -> None:
    now = datetime.now(UTC)
    for fields in (
        {"scopes": ()},
        {"scopes": ("read", "all")},
        {"expires": now},
        {"expires": (now + timedelta(days=1)).replace(tzinfo=None)},
        {"label": "x" * 101},
        {"label": "a\nb"},
    ):
        with pytest.raises(InvalidInput):
            await owner.create_key("alice", **fields)
    with pytest.raises(NotFound):
        await owner.create_key("nobody")
    assert (await owner.create_key(expires=now + timedelta(days=1))).key.expires is not None


async def test_a_rotated_key_is_the_same_with_another_secret(owner: Engine) -> None:
    ends = datetime.now(UTC) + timedelta(days=1)
    old = await owner.create_key("alice", label="laptop", scopes=("read",), expires=ends)
    new = await owner.rotate_key(old.key.id)
    assert (new.key.user, new.key.label, new.key.scopes, new.key.expires) == (
        old.key.user, "laptop", ("read",), ends,
    )  # fmt: skip
    assert (await owner.authenticate(new.secret)).name == "alice"
    with pytest.raises(Unauthenticated):
        await owner.authenticate(old.secret)
    with pytest.raises(Conflict):
        await owner.rotate_key(old.key.id)


async def test_a_disabled_user_does_nothing_and_keeps_all(owner: Engine) -> None:
    made = await owner.create_key("alice")
    await owner.disable_user("alice")
    with pytest.raises(Unauthenticated):
        await owner.authenticate(made.secret)
    await owner.disable_user("alice", disabled=False)
    assert (await owner.authenticate(made.secret)).name == "alice"


async def test_managers_give_and_take_up_to_editor(owner: Engine, enter: Enter) -> None:
    alice, bob = await enter("alice"), await enter("bob")
    await alice.create_collection("wiki")
    await alice.grant("wiki", BOB, "manager")
    carol = Principal("user", "carol")
    await bob.grant("alice/wiki", carol, "editor")
    for role in ("manager", "owner"):
        with pytest.raises(NotAllowed):
            await bob.grant("alice/wiki", carol, role)
    await alice.grant("wiki", carol, "manager")
    for work in (bob.grant("alice/wiki", carol, "viewer"), bob.revoke("alice/wiki", carol)):
        with pytest.raises(NotAllowed):
            await work
    assert {each.role for each in await bob.grants("alice/wiki")} == {"manager"}
    with pytest.raises(InvalidInput):
        await alice.grant("wiki", BOB, "king")


async def test_the_account_that_owns_it_cannot_be_touched(owner: Engine, enter: Enter) -> None:
    alice, bob = await enter("alice"), await enter("bob")
    await alice.create_collection("wiki")
    await alice.grant("wiki", BOB, "owner")
    for whom in (ALICE, Principal("user", "owner")):
        for work in (bob.grant("alice/wiki", whom, "viewer"), bob.revoke("alice/wiki", whom)):
            with pytest.raises(Conflict):
                await work
    for whom in (Principal("user", "nobody"), Principal("group", "alice"), TEAM):
        with pytest.raises(NotFound):
            await alice.grant("wiki", whom, "viewer")
    assert len(await owner.grants("alice/wiki")) == 1


async def test_a_role_holds_for_the_next_request_and_not_after(owner: Engine, enter: Enter) -> None:
    alice, bob = await enter("alice"), await enter("bob")
    await alice.add("the harvest of plums", collection="wiki")
    await owner.create_group("team")
    await alice.grant("wiki", TEAM, "viewer")
    assert await bob.collections() == []
    await owner.join("team", "bob")
    assert (await bob.retrieve("plums", collection="alice/wiki")).hits
    assert await alice.revoke("wiki", TEAM)
    assert not await alice.revoke("wiki", TEAM)
    with pytest.raises(NotFound):
        await bob.retrieve("plums", collection="alice/wiki")


async def test_a_manager_of_one_source_lets_others_into_it_alone(enter: Enter) -> None:
    alice, bob, carol = [await enter(name) for name in ("alice", "bob", "carol")]
    for source in ("open", "closed"):
        await alice.add(f"a harvest, {source}", source=source, collection="wiki")
    await alice.grant("wiki", BOB, "manager", source="open")
    await bob.grant("alice/wiki", Principal("user", "carol"), "viewer", source="open")
    assert [each.name for each in await carol.sources(collection="alice/wiki")] == ["open"]
    with pytest.raises(NotAllowed):
        await bob.grant("alice/wiki", Principal("user", "carol"), "viewer")
    with pytest.raises(NotAllowed):
        await bob.grants("alice/wiki")
    assert len(await bob.grants("alice/wiki", source="open")) == 2
