"""Every store of alerts, held to the contract, and what only a database can show."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.accounts_contract import a_user
from tests.contracts.alerts_contract import ANNA, PLAIN, AlertsContract, filled, match, matches_of
from tests.support.samples import NOON

from conspectus.ports.streams import Checked
from conspectus.records.accounts.store import SqlAccounts
from conspectus.records.store import SqlRecords, open_records
from conspectus.records.streams.alerts import SqlAlerts


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await open_records(tmp_path / "records.sqlite")
    yield opened
    await opened.close()


@pytest.fixture
def alerts(records: SqlRecords) -> SqlAlerts:
    return SqlAlerts(records.transactions)


class TestSqlite(AlertsContract):
    pass


class TestPostgres(AlertsContract):
    @pytest.fixture
    def records(self, postgres_records: SqlRecords) -> SqlRecords:
        return postgres_records


async def test_twenty_thousand_events_at_once_and_then_again(alerts: SqlAlerts, records: SqlRecords) -> None:
    names = [f"d{number:04}" for number in range(1_000)]
    await filled(records, *names)
    matches = tuple(match(name, 60 * number, 60 * number + 1) for number, name in enumerate(names))
    ids = [f"a{number:02}" for number in range(20)]
    for name in ids:
        await alerts.put(replace(PLAIN, id=name, name=name), maximum=20)
    for expected in (20_000, 0):
        checked = [Checked(alert, alert.checked + 1, matches) for alert in await alerts.list_alerts_of(ANNA)]
        assert await alerts.record(checked, now=NOON) == expected
    assert len(await matches_of(alerts, alert="a07", limit=2_000)) == 1_000
    assert (await records.check()) == []


async def test_alerts_go_with_their_owner(alerts: SqlAlerts, records: SqlRecords) -> None:
    await filled(records, "a")
    accounts = SqlAccounts(records.transactions)
    await accounts.add_user(replace(a_user("anna"), id=ANNA))
    await alerts.put(PLAIN, maximum=1)
    await accounts.delete_user(ANNA)
    assert await alerts.list_alerts_of(ANNA) == []
