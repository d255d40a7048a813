"""Sessions: tokens of their own, bound to a key, that end by time, by logout, and with key or user."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from tests.contracts.accounts_contract import ANNA
from tests.support.hand_clock import HandClock
from tests.support.in_memory_accounts import MemoryAccounts, MemoryCatalog
from tests.support.samples import NOON

from conspectus.access.keys import Keys
from conspectus.access.sessions import Sessions
from conspectus.access.tokens import hash_of
from conspectus.errors import PermissionDenied, Unauthenticated
from conspectus.model.access import Key, Person, User
from conspectus.model.ids import KeyId

HOUR = timedelta(hours=1)


@dataclass
class Store:
    """Accounts with one user, Anna, and her key."""

    accounts: MemoryAccounts
    clock: HandClock
    sessions: Sessions
    person: Person


@pytest.fixture
async def store() -> Store:
    accounts, clock = MemoryAccounts(MemoryCatalog()), HandClock()
    await accounts.add_user(User(ANNA, "anna", NOON))
    number, secret, secret_hash = await Keys(accounts, clock).new_secret()
    await accounts.add_key(Key(number, ANNA, "", ("read",), NOON, origin="tool"), secret_hash)
    person = await Keys(accounts, clock).person(secret)
    return Store(accounts, clock, Sessions(accounts, clock, lifetime=10 * HOUR, max_idle=2 * HOUR), person)


async def test_a_session_is_its_user_with_the_limits_of_the_key(store: Store) -> None:
    assert await store.sessions.authenticate(await store.sessions.start(store.person)) == store.person


async def test_only_the_hash_of_a_token_is_stored(store: Store) -> None:
    token = await store.sessions.start(store.person)
    stored = await store.accounts.session(token.split("_")[1])
    assert stored is not None and stored[1] == hash_of(token) and token not in repr(stored)


async def test_no_token_is_a_key_and_no_key_a_token(store: Store) -> None:
    token = await store.sessions.start(store.person)
    with pytest.raises(Unauthenticated):
        await Keys(store.accounts, store.clock).person(token)
    _, secret, _ = await Keys(store.accounts, store.clock).new_secret()
    with pytest.raises(Unauthenticated):
        await store.sessions.authenticate(secret)


@pytest.mark.parametrize("change", [lambda t: t[:-1], lambda t: f"{t[:-64]}{'0' * 64}", lambda t: f"{t}\n"])
async def test_another_token_opens_and_ends_nothing(store: Store, change: Callable[[str], str]) -> None:
    token = await store.sessions.start(store.person)
    with pytest.raises(Unauthenticated):
        await store.sessions.authenticate(change(token))
    await store.sessions.end(change(token))
    assert await store.sessions.authenticate(token) == store.person


async def test_a_session_that_is_used_lasts_until_it_expires(store: Store) -> None:
    token = await store.sessions.start(store.person)
    for _ in range(9):
        store.clock.at += HOUR
        await store.sessions.authenticate(token)
    store.clock.at += HOUR
    with pytest.raises(Unauthenticated):
        await store.sessions.authenticate(token)


async def test_a_session_that_is_not_used_ends(store: Store) -> None:
    token = await store.sessions.start(store.person)
    store.clock.at += 2 * HOUR
    await store.sessions.authenticate(token)
    store.clock.at += 2 * HOUR + timedelta(seconds=1)
    with pytest.raises(Unauthenticated):
        await store.sessions.authenticate(token)


async def revoke(store: Store) -> None:
    await store.accounts.revoke_key(store.person.key or KeyId(""), store.clock())


async def disable(store: Store) -> None:
    await store.accounts.set_user_disabled(ANNA, disabled=True)


async def delete(store: Store) -> None:
    await store.accounts.delete_user(ANNA)


@pytest.mark.parametrize("end", [revoke, disable, delete])
async def test_a_session_ends_with_its_key_and_user(
    store: Store, end: Callable[[Store], Awaitable[None]]
) -> None:
    token = await store.sessions.start(store.person)
    await end(store)
    with pytest.raises(Unauthenticated):
        await store.sessions.authenticate(token)


async def test_a_logout_ends_one_session(store: Store) -> None:
    token, other = await store.sessions.start(store.person), await store.sessions.start(store.person)
    await store.sessions.end(token)
    with pytest.raises(Unauthenticated):
        await store.sessions.authenticate(token)
    assert await store.sessions.authenticate(other) == store.person


async def test_without_a_key_there_is_no_session(store: Store) -> None:
    with pytest.raises(PermissionDenied):
        await store.sessions.start(replace(store.person, key=None))


async def test_expired_sessions_are_deleted_at_the_next_login(store: Store) -> None:
    token = await store.sessions.start(store.person)
    store.clock.at += 11 * HOUR
    await store.sessions.start(store.person)
    assert await store.accounts.session(token.split("_")[1]) is None
