"""Keys: whose they are, what the store is asked each time, and what is written down."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.contracts.accounts_contract import ANNA, a_user
from tests.support.hand_clock import HandClock
from tests.support.in_memory_accounts import MemoryAccounts, MemoryCatalog
from tests.support.samples import NOON

from conspectus.access.keys import MAX_REMEMBERED_KEYS, Keys
from conspectus.errors import Unauthenticated
from conspectus.model.access import Key, Person, User
from conspectus.model.ids import KeyId, UserId

MINUTE = timedelta(minutes=1)


class CountingAccounts(MemoryAccounts):
    """Accounts that count what was written about keys."""

    noted = 0

    async def note_key_use(self, key: KeyId, at: datetime) -> None:
        self.noted += 1
        await super().note_key_use(key, at)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def accounts() -> CountingAccounts:
    counting = CountingAccounts(MemoryCatalog())
    await counting.add_user(a_user("anna"))
    return counting


@pytest.fixture
def keys(accounts: CountingAccounts, clock: HandClock) -> Keys:
    return Keys(accounts, clock)


async def create_secret(keys: Keys, accounts: MemoryAccounts, *, expires: datetime | None = None) -> str:
    number, secret, stored = await keys.new_secret()
    await accounts.add_key(Key(number, ANNA, "", ("read",), NOON, expires), stored)
    return secret


def alter_secret(secret: str) -> Iterator[str]:
    """The secret with something else in each place, and what is no secret at all."""
    for position in range(0, len(secret), 7):
        yield secret[:position] + ("0" if secret[position] != "0" else "1") + secret[position + 1 :]
    yield from ("", "csp_", secret[:-1], secret + "0", secret + "\n", f" {secret}", secret.upper())
    yield from (secret.replace("_", "-"), "csp_\x00_\ud800", "csp_" + "é" * 16 + "_" + "0" * 64, "0" * 10_000)


async def test_a_key_says_whose_it_is(keys: Keys, accounts: CountingAccounts) -> None:
    secret = await create_secret(keys, accounts)
    for _ in range(2):
        assert await keys.person(secret) == Person("anna", False, ANNA, ("read",))


async def test_anything_else_says_nothing(keys: Keys, accounts: CountingAccounts) -> None:
    secret = await create_secret(keys, accounts)
    messages = set()
    for wrong in alter_secret(secret):
        with pytest.raises(Unauthenticated) as refused:
            await keys.person(wrong)
        messages.add(str(refused.value))
    assert len(messages) == 1
    assert accounts.noted == 0


async def test_secrets_cannot_be_guessed_from_each_other(keys: Keys) -> None:
    secrets = [await keys.new_secret() for _ in range(5)]
    assert len({number for number, _, _ in secrets}) == len({secret for _, secret, _ in secrets}) == 5
    for number, secret, stored in secrets:
        assert secret.startswith(f"csp_{number}_")
        assert len(bytes.fromhex(secret.split("_")[2])) * 8 >= 128
        assert secret.split("_")[2] not in stored


async def test_a_key_is_refused_from_the_moment_it_ends(
    keys: Keys, accounts: CountingAccounts, clock: HandClock
) -> None:
    ending = await create_secret(keys, accounts, expires=NOON + MINUTE)
    lasting = await create_secret(keys, accounts)
    for secret in (ending, lasting):
        await keys.person(secret)
    clock.at = NOON + MINUTE
    with pytest.raises(Unauthenticated):
        await keys.person(ending)
    await accounts.revoke_key(KeyId(lasting.split("_")[1]), clock.at)
    with pytest.raises(Unauthenticated):
        await keys.person(lasting)


async def test_a_disabled_user_is_refused_until_let_in(keys: Keys, accounts: CountingAccounts) -> None:
    secret = await create_secret(keys, accounts)
    await keys.person(secret)
    await accounts.set_user_disabled(ANNA, disabled=True)
    with pytest.raises(Unauthenticated):
        await keys.person(secret)
    await accounts.set_user_disabled(ANNA, disabled=False)
    assert (await keys.person(secret)).id == ANNA


async def test_a_deleted_user_is_refused(keys: Keys, accounts: CountingAccounts) -> None:
    secret = await create_secret(keys, accounts)
    await keys.person(secret)
    await accounts.delete_user(ANNA)
    with pytest.raises(Unauthenticated):
        await keys.person(secret)


async def test_a_key_that_got_another_hash_has_another_secret(keys: Keys, accounts: CountingAccounts) -> None:
    old, (number, _, _) = await create_secret(keys, accounts), await keys.new_secret()
    await keys.person(old)
    stored = await accounts.key(KeyId(old.split("_")[1]))
    assert stored is not None
    _, _, other = await keys.new_secret()
    await accounts.add_key(stored[0], other)
    with pytest.raises(Unauthenticated):
        await keys.person(old)
    assert number != stored[0].id


async def test_use_is_written_down_once_a_minute(
    keys: Keys, accounts: CountingAccounts, clock: HandClock
) -> None:
    secret = await create_secret(keys, accounts)
    await asyncio.gather(*(keys.person(secret) for _ in range(10)))
    assert accounts.noted == 1
    clock.at += MINUTE - timedelta(microseconds=1)
    await keys.person(secret)
    assert accounts.noted == 1
    clock.at += timedelta(microseconds=1)
    await keys.person(secret)
    assert accounts.noted == 2
    [key] = await accounts.keys()
    assert key.last_used == clock.at


async def test_another_process_does_not_write_it_down_again(
    keys: Keys, accounts: CountingAccounts, clock: HandClock
) -> None:
    secret = await create_secret(keys, accounts)
    for process_keys in (keys, Keys(accounts, clock)):
        await process_keys.person(secret)
    assert accounts.noted == 1


async def test_many_keys_do_not_fill_the_memory(keys: Keys, accounts: CountingAccounts) -> None:
    secret = await create_secret(keys, accounts)
    await keys.person(secret)
    [key] = await accounts.keys()
    for number in range(MAX_REMEMBERED_KEYS + 5):
        await keys._record_use(replace(key, id=KeyId(str(number))), NOON)
    assert len(keys._last_written) == MAX_REMEMBERED_KEYS
    assert (await keys.person(secret)).id == ANNA


async def test_owners_come_in_as_owners(keys: Keys, accounts: CountingAccounts) -> None:
    boss = User(UserId("local"), "owner", NOON, owner=True)
    await accounts.add_user(boss)
    number, secret, stored = await keys.new_secret()
    await accounts.add_key(Key(number, boss.id, "", ("admin",), NOON), stored)
    assert await keys.person(secret) == Person("owner", True, boss.id, ("admin",))
