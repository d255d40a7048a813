"""Sessions of browsers, and invitations: who may list, create and end them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import Enter

import conspectus
from conspectus.engine import Engine
from conspectus.errors import InvalidInput, NotFound, PermissionDenied, Unauthenticated
from conspectus.model.access import SCOPES
from conspectus.settings import Settings

HOUR = timedelta(hours=1)


async def test_a_narrower_key_ends_no_session_of_a_wider_one(owner: Engine, enter: Enter) -> None:
    alice, bob = await enter("alice"), await enter("bob")
    laptop = await alice.keys.create(label="laptop")
    await owner.sessions.start(await owner.keys.authenticate(laptop.secret))
    (session,) = await alice.logins.list_sessions()
    assert (session.key, session.user) == (laptop.key.id, laptop.key.user)
    assert await owner.logins.list_sessions("alice") == [session]
    assert await bob.logins.list_sessions() == []
    for work in (bob.logins.list_sessions("*"), bob.logins.list_sessions("alice")):
        with pytest.raises(PermissionDenied):
            await work
    narrow = await enter("alice", "read", "admin")
    with pytest.raises(PermissionDenied, match="end a session of that scope"):
        await narrow.logins.end_session(session.id)
    await alice.logins.end_session(session.id)
    with pytest.raises(NotFound):
        await alice.logins.end_session(session.id)


async def test_own_sessions_need_no_admin(owner: Engine, enter: Enter) -> None:
    bob = await enter("bob", "read", "write")
    key = await owner.keys.create("bob", scopes=("read",))
    await owner.sessions.start(await owner.keys.authenticate(key.secret))
    (session,) = await bob.logins.list_sessions()
    await bob.logins.end_session(session.id)
    assert await bob.logins.list_sessions() == []


async def test_an_invited_user_is_logged_in_and_can_make_a_key(owner: Engine) -> None:
    before = datetime.now(UTC)
    created = await owner.logins.create_invitation("alice")
    assert created.link == f"http://localhost:8642/console/#invitation={created.token}"
    assert before + 71 * HOUR < created.invitation.expires < before + 73 * HOUR
    assert await owner.logins.list_invitations() == [created.invitation]
    person, session_token = await owner.logins.accept_invitation(created.token)
    assert await owner.sessions.authenticate(session_token) == person
    assert await owner.logins.list_invitations() == []
    alice = owner.as_person(person)
    (session,) = await alice.logins.list_sessions()
    assert (session.user, session.key, session.scopes) == (person.id, None, ("read", "write"))
    with pytest.raises(Unauthenticated):
        await owner.logins.accept_invitation(created.token)
    with pytest.raises(PermissionDenied):
        await alice.keys.create()
    wide = await owner.logins.create_invitation("alice", scopes=SCOPES)
    person, _ = await owner.logins.accept_invitation(wide.token)
    key = await owner.as_person(person).keys.create(scopes=("read",))
    assert (await owner.keys.authenticate(key.secret)).name == "alice"


async def test_the_owner_can_log_in_by_an_invitation(owner: Engine) -> None:
    created = await owner.logins.create_invitation("owner")
    person, _ = await owner.logins.accept_invitation(created.token)
    assert person.owner and person.scopes == SCOPES


async def test_only_the_owner_account_invites(owner: Engine, enter: Enter) -> None:
    alice = await enter("alice")
    created = await owner.logins.create_invitation("bob")
    tool = await enter("owner", origin="tool")
    reader = await enter("owner", "read", "write")
    for work in (
        alice.logins.create_invitation("alice"),
        alice.logins.create_invitation("bob"),
        alice.logins.list_invitations(),
        alice.logins.withdraw_invitation(created.invitation.id),
        tool.logins.create_invitation("bob"),
        tool.logins.withdraw_invitation(created.invitation.id),
        reader.logins.create_invitation("bob"),
    ):
        with pytest.raises(PermissionDenied):
            await work
    assert await owner.logins.list_invitations() == [created.invitation]


async def test_an_invitation_gives_no_more_than_the_key_that_invites(owner: Engine, enter: Enter) -> None:
    narrow = await enter("owner", "read", "admin")
    assert (await narrow.logins.create_invitation("alice")).invitation.scopes == ("read",)
    with pytest.raises(PermissionDenied):
        await narrow.logins.create_invitation("alice", scopes=("read", "write"))
    now = datetime.now(UTC)
    ending = await enter("owner", expires=now + 24 * HOUR)
    for expires in (None, now + HOUR):
        with pytest.raises(PermissionDenied, match="a key that does not expire before it"):
            await ending.logins.create_invitation("alice", expires=expires)
    lasting = await enter("owner", expires=now + 24 * 365 * HOUR)
    assert (await lasting.logins.create_invitation("alice", expires=now + HOUR)).invitation


async def test_invitations_that_make_no_sense_are_refused(owner: Engine) -> None:
    now = datetime.now(UTC)
    fields: Any
    for fields in (
        {"scopes": ()},
        {"scopes": ("read", "all")},
        {"expires": now},
        {"expires": (now + HOUR).replace(tzinfo=None)},
    ):
        with pytest.raises(InvalidInput):
            await owner.logins.create_invitation("alice", **fields)
    for user in ("nobody", "", "../x"):
        with pytest.raises((NotFound, InvalidInput)):
            await owner.logins.create_invitation(user)
    assert await owner.logins.list_invitations() == []


async def test_a_withdrawn_invitation_opens_nothing(owner: Engine) -> None:
    created = await owner.logins.create_invitation("alice")
    await owner.logins.withdraw_invitation(created.invitation.id)
    with pytest.raises(Unauthenticated):
        await owner.logins.accept_invitation(created.token)
    with pytest.raises(NotFound):
        await owner.logins.withdraw_invitation(created.invitation.id)


async def test_the_link_has_the_public_address(tmp_path: Path) -> None:
    settings = Settings(embedder="none", public_address="https://context.example.org/")
    async with conspectus.open(tmp_path, settings=settings) as engine:
        await engine.people.create_user("alice")
        created = await engine.logins.create_invitation("alice")
    assert created.link == f"https://context.example.org/console/#invitation={created.token}"


@pytest.mark.parametrize("address", ["context.example.org", "ftp://x", "https://x/path", "https://a b", "x"])
def test_a_public_address_is_that_of_a_server(address: str) -> None:
    with pytest.raises(InvalidInput, match="public_address"):
        Settings(public_address=address)


async def test_an_invitation_of_nobody_makes_no_account(tmp_path: Path) -> None:
    """A server without accounts needs no key, and would need one."""
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        for user in ("nobody", "owner"):
            with pytest.raises(NotFound):
                await engine.logins.create_invitation(user)
        assert await engine.people.list_users() == []
