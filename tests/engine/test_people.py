"""Accounts, groups, keys and grants: who may manage them, and what the errors say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.conftest import Enter
from tests.support.samples import NOON, shelf

import conspectus
from conspectus.access.policy import access_of, highest, origins_of, role_on
from conspectus.engine import Engine
from conspectus.errors import Conflict, InvalidInput, NotFound, PermissionDenied, Unauthenticated
from conspectus.model.access import ROLES, SCOPES, AuditEntry, Grant, Person, Principal, User
from conspectus.model.channels import NewMessage
from conspectus.model.ids import LOCAL, CollectionId, SourceId, UserId
from conspectus.model.query import QueryContext
from conspectus.settings import Settings

ALICE, BOB, TEAM = Principal("user", "alice"), Principal("user", "bob"), Principal("group", "team")


async def test_the_owner_account_is_made_once_and_its_key_shown_once(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        first = await engine.keys.create_first()
        assert first is not None
        assert await engine.keys.authenticate(first.secret) == Person("owner", True, first.key.user, SCOPES)
        assert await engine.keys.create_first() is None
        await engine.keys.revoke(first.key.id)
        assert await engine.keys.create_first() is None


async def test_a_store_with_users_but_without_keys_gets_its_first(owner: Engine) -> None:
    assert [user.name for user in await owner.people.list_users()] == ["alice", "bob", "carol", "owner"]
    assert await owner.keys.create_first() is not None
    assert len(await owner.people.list_users()) == 4


@pytest.mark.parametrize("name", ["", " ", "a/b", "local", "*", ".", "..", "x" * 101, "a\n", "\u202ea", " a"])
async def test_names_that_stand_for_something_else_are_refused(owner: Engine, name: str) -> None:
    for create in (owner.people.create_user, owner.people.create_group):
        with pytest.raises(InvalidInput):
            await create(name)


async def test_names_that_are_taken_are_refused(owner: Engine) -> None:
    await owner.collections.create("dora/notes")
    for name in ("alice", "owner", "dora"):
        with pytest.raises(Conflict):
            await owner.people.create_user(name)
    await owner.people.create_user("Äñna 🎉 O'Brien; --")
    with pytest.raises(Conflict):
        await owner.collections.create("alice/notes")
    with pytest.raises(Conflict):
        await owner.collections.update("dora/notes", name="alice/notes")
    with pytest.raises(Conflict):
        await owner.add("x", collection="bob/new")


async def test_the_owner_account_stays(owner: Engine) -> None:
    for work in (
        owner.people.set_user_disabled("owner"),
        owner.people.delete_user("local", transfer_to="alice"),
    ):
        with pytest.raises(Conflict):
            await work
    with pytest.raises(InvalidInput):
        await owner.people.delete_user("alice", transfer_to="alice")
    with pytest.raises(NotFound):
        await owner.people.delete_user("alice", transfer_to="nobody")


async def test_only_the_owner_keeps_accounts(enter: Enter) -> None:
    alice = await enter("alice")
    for work in (
        alice.people.list_users(),
        alice.people.get_user("bob"),
        alice.people.get_user("nobody"),
        alice.people.create_user("dora"),
        alice.people.set_user_disabled("bob"),
        alice.people.delete_user("bob"),
        alice.people.list_groups(),
        alice.people.create_group("team"),
        alice.people.delete_group("team"),
        alice.people.list_members("team"),
        alice.people.add_member("team", "alice"),
        alice.people.remove_member("team", "bob"),
        alice.keys.list("bob"),
        alice.keys.list("*"),
        alice.keys.create("bob"),
        alice.keys.create_first(),
    ):
        with pytest.raises(PermissionDenied):
            await work


async def test_an_owners_key_without_the_scope_keeps_none(owner: Engine, enter: Enter) -> None:
    boss = await enter("owner", "read", "write")
    for work in (
        boss.people.list_users(),
        boss.people.create_user("dora"),
        boss.keys.create("alice"),
        boss.keys.list(),
    ):
        with pytest.raises(PermissionDenied):
            await work
    assert await boss.collections.list() == []


async def test_a_deleted_users_collections_are_the_heirs(owner: Engine, enter: Enter) -> None:
    alice, bob = await enter("alice"), await enter("bob")
    await alice.add("the harvest of plums", collection="wiki")
    with pytest.raises(Conflict):
        await owner.people.delete_user("alice")
    await owner.people.delete_user("alice", transfer_to="bob")
    assert [collection.name for collection in await bob.collections.list()] == ["bob/wiki"]
    assert (await bob.retrieve("plums", collection="wiki")).hits
    assert await alice.collections.list() == []
    await owner.people.create_user("alice")
    await (await enter("alice")).add("another harvest", collection="wiki")
    assert len(await bob.collections.list()) == 1


async def test_own_keys_are_ones_own_business(owner: Engine, enter: Enter) -> None:
    alice, bob = await enter("alice"), await enter("bob")
    laptop = await alice.keys.create(label="laptop")
    assert (
        await owner.as_person(await owner.keys.authenticate(laptop.secret)).people.whoami()
    ).name == "alice"
    assert (
        [key.label for key in await alice.keys.list()]
        == ["", "laptop"]
        == [key.label for key in await alice.keys.list("alice")]
    )
    messages = set()
    for work in (
        bob.keys.revoke(laptop.key.id),
        bob.keys.rotate(laptop.key.id),
        bob.keys.revoke("f" * 16),
    ):
        with pytest.raises(NotFound) as refused:
            await work
        messages.add(str(refused.value).replace(laptop.key.id, "f" * 16))
    assert len(messages) == 1
    await owner.keys.revoke(laptop.key.id)
    with pytest.raises(Unauthenticated):
        await owner.keys.authenticate(laptop.secret)


async def test_no_key_is_worth_more_than_the_one_that_made_it(enter: Enter) -> None:
    narrow = await enter("alice", "read", "admin")
    broad = await (await enter("alice")).keys.create()
    for work in (
        narrow.keys.create(scopes=("write",)),
        narrow.keys.rotate(broad.key.id),
        narrow.keys.revoke(broad.key.id),
        (await enter("alice", "read", "write")).keys.create(scopes=("read",)),
    ):
        with pytest.raises(PermissionDenied):
            await work
    assert (await narrow.keys.create(scopes=("admin", "read", "read"))).key.scopes == ("read", "admin")


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
            await owner.keys.create("alice", **fields)
    with pytest.raises(NotFound):
        await owner.keys.create("nobody")
    assert (await owner.keys.create(expires=now + timedelta(days=1))).key.expires is not None


async def test_a_rotated_key_is_the_same_with_another_secret(owner: Engine) -> None:
    ends = datetime.now(UTC) + timedelta(days=1)
    old = await owner.keys.create("alice", label="laptop", scopes=("read",), expires=ends)
    new = await owner.keys.rotate(old.key.id)
    assert (new.key.user, new.key.label, new.key.scopes, new.key.expires) == (
        old.key.user, "laptop", ("read",), ends,
    )  # fmt: skip
    assert (await owner.keys.authenticate(new.secret)).name == "alice"
    with pytest.raises(Unauthenticated):
        await owner.keys.authenticate(old.secret)
    with pytest.raises(Conflict):
        await owner.keys.rotate(old.key.id)


async def test_a_disabled_user_does_nothing_and_keeps_all(owner: Engine) -> None:
    issued = await owner.keys.create("alice")
    await owner.people.set_user_disabled("alice")
    with pytest.raises(Unauthenticated):
        await owner.keys.authenticate(issued.secret)
    await owner.people.set_user_disabled("alice", disabled=False)
    assert (await owner.keys.authenticate(issued.secret)).name == "alice"


async def test_managers_give_and_take_up_to_editor(owner: Engine, enter: Enter) -> None:
    alice, bob = await enter("alice"), await enter("bob")
    await alice.collections.create("wiki")
    await alice.access.grant("wiki", BOB, "manager")
    carol = Principal("user", "carol")
    await bob.access.grant("alice/wiki", carol, "editor")
    for role in ("manager", "owner"):
        with pytest.raises(PermissionDenied):
            await bob.access.grant("alice/wiki", carol, role)
    await alice.access.grant("wiki", carol, "manager")
    for work in (bob.access.grant("alice/wiki", carol, "viewer"), bob.access.revoke("alice/wiki", carol)):
        with pytest.raises(PermissionDenied):
            await work
    assert {grant.role for grant in await bob.access.list_grants("alice/wiki")} == {"manager"}
    with pytest.raises(InvalidInput):
        await alice.access.grant("wiki", BOB, "king")


async def test_the_account_that_owns_it_cannot_be_touched(owner: Engine, enter: Enter) -> None:
    alice, bob = await enter("alice"), await enter("bob")
    await alice.collections.create("wiki")
    await alice.access.grant("wiki", BOB, "owner")
    for principal in (ALICE, Principal("user", "owner")):
        for work in (
            bob.access.grant("alice/wiki", principal, "viewer"),
            bob.access.revoke("alice/wiki", principal),
        ):
            with pytest.raises(Conflict):
                await work
    for principal in (Principal("user", "nobody"), Principal("group", "alice"), TEAM):
        with pytest.raises(NotFound):
            await alice.access.grant("wiki", principal, "viewer")
    assert len(await owner.access.list_grants("alice/wiki")) == 1


async def test_a_role_holds_for_the_next_request_and_not_after(owner: Engine, enter: Enter) -> None:
    alice, bob = await enter("alice"), await enter("bob")
    await alice.add("the harvest of plums", collection="wiki")
    await owner.people.create_group("team")
    await alice.access.grant("wiki", TEAM, "viewer")
    assert await bob.collections.list() == []
    await owner.people.add_member("team", "bob")
    assert (await bob.retrieve("plums", collection="alice/wiki")).hits
    assert await alice.access.revoke("wiki", TEAM)
    assert not await alice.access.revoke("wiki", TEAM)
    with pytest.raises(NotFound):
        await bob.retrieve("plums", collection="alice/wiki")


async def test_a_manager_of_one_source_lets_others_into_it_alone(enter: Enter) -> None:
    alice, bob, carol = [await enter(name) for name in ("alice", "bob", "carol")]
    for source in ("open", "closed"):
        await alice.add(f"a harvest, {source}", source=source, collection="wiki")
    await alice.access.grant("wiki", BOB, "manager", source="open")
    await bob.access.grant("alice/wiki", Principal("user", "carol"), "viewer", source="open")
    assert [source.name for source in await carol.collections.list_sources(collection="alice/wiki")] == [
        "open"
    ]
    with pytest.raises(PermissionDenied):
        await bob.access.grant("alice/wiki", Principal("user", "carol"), "viewer")
    with pytest.raises(PermissionDenied):
        await bob.access.list_grants("alice/wiki")
    assert len(await bob.access.list_grants("alice/wiki", source="open")) == 2


@pytest.fixture
async def document(owner: Engine) -> str:
    """A page in a wiki that Bob manages; Alice edits the wiki and manages the pages alone."""
    written = await owner.add("the backup runs at two", collection="wiki", source="pages")
    await owner.add("x", collection="other")
    for grantee, role, source in (
        (ALICE, "editor", None),
        (ALICE, "manager", "pages"),
        (BOB, "manager", None),
    ):
        await owner.access.grant("wiki", grantee, role, source=source)
    return written[0].id


async def list_looks(owner: Engine) -> list[AuditEntry]:
    """The queries that were asked as another user, newest first."""
    entries = (await owner.access.list_audit()).entries
    return [look for look in entries if look.action == "explain_as"]


async def test_nobody_else_sees_as_others(owner: Engine, enter: Enter, document: str) -> None:
    for name, scopes, error in (
        ("alice", (), PermissionDenied),
        ("carol", (), NotFound),
        ("bob", ("read", "write"), PermissionDenied),
    ):
        view = await enter(name, *scopes)
        for attempt in (
            view.search.explain_as("backup", 100, user="bob", collection="wiki"),
            view.search.explain_as("backup", 100, user="nobody", collection="wiki"),
            view.access.list_readers(document),
        ):
            with pytest.raises(error):
                await attempt
        for user in {"bob", "nobody"} - {name}:
            with pytest.raises(PermissionDenied):
                await view.access.effective_roles(user)
        with pytest.raises(PermissionDenied):
            await view.access.list_audit()
    assert await list_looks(owner) == []


async def test_everybody_sees_their_own_roles(owner: Engine, enter: Enter, document: str) -> None:
    """With any key, on what they may read, and nothing of others."""
    carol = await enter("carol", "read")
    assert await carol.access.effective_roles("carol") == []
    await owner.access.grant("wiki", Principal("user", "carol"), "viewer", source="pages")
    roles = await carol.access.effective_roles("carol")
    assert [(role.source_name, role.role) for role in roles] == [(None, None), ("pages", "viewer")]
    with pytest.raises(NotFound):
        await carol.access.effective_roles("carol", collection="other")
    with pytest.raises(PermissionDenied):
        await carol.access.effective_roles("alice", collection="wiki")


async def test_a_manager_sees_as_others_in_one_collection(owner: Engine, enter: Enter, document: str) -> None:
    bob = await enter("bob")
    explained = await bob.search.explain_as("backup", 100, user="carol", collection="wiki")
    assert (explained.window.trace, [grant.source_name for grant in explained.missing_grants]) == (
        (),
        ["pages"],
    )
    assert [reader.name for reader in await bob.access.list_readers(document)] == ["alice", "bob", "owner"]
    assert {role.collection_name for role in await bob.access.effective_roles("carol")} == {"wiki"}
    for attempt in (
        bob.search.explain_as("x", 100, user="carol", collection="other"),
        bob.access.effective_roles("carol", collection="other"),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert [look.actor for look in await list_looks(owner)] == [(await bob.people.whoami()).id]


async def test_what_was_asked_as_another_is_noted_before_it_is_answered(owner: Engine) -> None:
    await owner.add("x", collection="wiki")
    with pytest.raises(NotFound):
        await owner.search.explain_as(
            "secret", 50, user="alice", collection="wiki", query_context=QueryContext("no such channel")
        )
    assert [look.query for look in await list_looks(owner)] == ["secret"]


async def test_a_channel_that_the_other_does_not_see_is_a_notice(owner: Engine) -> None:
    await owner.add("about ferries", collection="wiki", source="pages")
    await owner.access.grant("wiki", ALICE, "viewer", source="pages")
    await owner.channels.add_messages(NewMessage("ferries?"), channel="help", collection="wiki")
    explained = await owner.search.explain_as(
        "ferries", 50, user="alice", collection="wiki", query_context=QueryContext("help")
    )
    assert (explained.window.outcome, explained.window.notices) == ("no_match", ("no channel 'help'",))
    assert explained.own.outcome == "found"


@given(st.data())
def test_the_highest_origin_is_the_role(data: st.DataObject) -> None:
    here, away = CollectionId("here"), CollectionId("away")
    home = replace(shelf("here"), id=here, owner=data.draw(st.sampled_from([UserId("u"), LOCAL])))
    kinds = st.builds(Principal, st.sampled_from(["user", "group"]), st.just("u"))
    sources = st.sampled_from([None, SourceId("a"), SourceId("b")])
    grants = st.builds(
        Grant, st.sampled_from([here, away]), sources, kinds, st.sampled_from(ROLES), st.just(NOON)
    )
    user_grants = data.draw(st.lists(grants, max_size=6))
    user = User(UserId("u"), "u", NOON, owner=data.draw(st.booleans()))
    origins, access = (
        origins_of(user, home, user_grants, {"u": "team"}),
        access_of(user.person, home, user_grants),
    )
    for source in (None, SourceId("a"), SourceId("b")):
        why = origins[None] + (origins.get(source, []) if source else [])
        assert role_on(access, source) == (highest(origin.role for origin in why) if why else None)
