"""Invitations: a user logs in once with each, until it expires, is withdrawn, or the user has no access."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from tests.contracts.accounts_contract import ANNA
from tests.support.hand_clock import HandClock
from tests.support.in_memory_accounts import MemoryAccounts, MemoryCatalog
from tests.support.samples import NOON

from conspectus.access.invitations import Invitations
from conspectus.access.sessions import Sessions
from conspectus.access.tokens import INVITATIONS, hash_of
from conspectus.errors import Unauthenticated
from conspectus.model.access import Invitation, User

HOUR = timedelta(hours=1)


@dataclass
class Store:
    """Accounts with one user, Anna, and an invitation of hers."""

    accounts: MemoryAccounts
    clock: HandClock
    sessions: Sessions
    invitations: Invitations
    invitation: Invitation
    token: str


@pytest.fixture
async def store() -> Store:
    accounts, clock = MemoryAccounts(MemoryCatalog()), HandClock()
    await accounts.add_user(User(ANNA, "anna", NOON))
    sessions = Sessions(accounts, clock, lifetime=10 * HOUR, max_idle=2 * HOUR)
    invitations = Invitations(accounts, clock, sessions)
    invitation, token = invitations.create(ANNA, ("read", "write"), NOON + 3 * HOUR)
    await accounts.add_invitation(invitation, hash_of(token))
    return Store(accounts, clock, sessions, invitations, invitation, token)


async def test_who_accepts_is_logged_in_as_the_invited_user_without_a_key(store: Store) -> None:
    person, session_token = await store.invitations.accept(store.token)
    assert (person.name, person.scopes, person.key) == ("anna", ("read", "write"), None)
    assert await store.sessions.authenticate(session_token) == person
    [change] = (await store.accounts.audit(limit=9)).entries
    assert (change.actor, change.action, change.detail) == (ANNA, "accept_invitation", "scopes read write")
    assert store.token not in repr(change)


async def test_an_invitation_is_accepted_once(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(store.invitations.accept(store.token) for _ in range(5)), return_exceptions=True
    )
    assert sum(isinstance(outcome, Unauthenticated) for outcome in outcomes) == 4
    assert len(await store.accounts.sessions()) == 1


async def expire(store: Store) -> None:
    store.clock.at = store.invitation.expires


async def withdraw(store: Store) -> None:
    await store.accounts.withdraw_invitation(store.invitation.id)


async def disable(store: Store) -> None:
    await store.accounts.set_user_disabled(ANNA, disabled=True)


async def delete(store: Store) -> None:
    await store.accounts.delete_user(ANNA)


@pytest.mark.parametrize("end", [expire, withdraw, disable, delete])
async def test_an_invitation_that_ended_opens_nothing(
    store: Store, end: Callable[[Store], Awaitable[None]]
) -> None:
    await end(store)
    with pytest.raises(Unauthenticated):
        await store.invitations.accept(store.token)
    assert await store.accounts.sessions() == []


async def test_another_token_opens_nothing_and_leaves_the_invitation(store: Store) -> None:
    forged = f"{INVITATIONS.prefix}_{store.invitation.id}_{'0' * 64}"
    for token in (forged, INVITATIONS.create()[1], store.token[:-1], f"{store.token}\n", ""):
        with pytest.raises(Unauthenticated):
            await store.invitations.accept(token)
    await store.invitations.accept(store.token)


async def test_a_session_without_a_key_ends_with_its_user(store: Store) -> None:
    _, session_token = await store.invitations.accept(store.token)
    await disable(store)
    with pytest.raises(Unauthenticated):
        await store.sessions.authenticate(session_token)
