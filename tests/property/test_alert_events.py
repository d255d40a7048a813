"""However matches come, in whatever parts and how often: each event is told once, and holds its matches."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import pytest
from tests.contracts.alerts_contract import ANNA, PLAIN, at, filled
from tests.support.samples import NOON, NOTES

from conspectus.model.ids import DocumentId
from conspectus.ports.streams import AlertMatch, Checked, Match
from conspectus.records.store import SqlRecords, open_records
from conspectus.records.streams.alerts import SqlAlerts
from conspectus.text.intervals import runs

CAPTIONS = 30
HISTORIES = 60
Times = tuple[float, float]


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await open_records(tmp_path / "records.sqlite")
    await filled(opened, *map(str, range(CAPTIONS)))
    yield opened
    await opened.close()


def build_matches(times: Sequence[Times]) -> list[Match]:
    return [
        Match(DocumentId(str(number)), NOTES, at(start, end), f"of {number}")
        for number, (start, end) in enumerate(times)
    ]


def random_times(chance: Random) -> list[Times]:
    """Captions on a line of time, some at the very distance that still joins them."""
    starts = [round(chance.uniform(0, 300), chance.choice((0, 1, 3))) for _ in range(CAPTIONS)]
    return [(start, start + chance.choice((0, 0.05, 1, 5, 30))) for start in starts]


async def record_matches(
    alerts: SqlAlerts, name: str, parts: Sequence[Sequence[Match]]
) -> Sequence[AlertMatch]:
    """What an alert of its own tells when matches come in these parts."""
    alert = await alerts.put(replace(PLAIN, id=name, name=name), maximum=10_000)
    for part in parts:
        fresh = await alerts.record([Checked(alert, alert.checked + 1, tuple(part))], now=NOON)
        assert fresh <= len(part)
        alert = replace(alert, checked=alert.checked + 1)
    return await alerts.events(ANNA, alert=name, limit=1_000)


async def test_in_one_part_each_run_is_one_event(records: SqlRecords) -> None:
    alerts = SqlAlerts(records.transactions)
    for seed in range(HISTORIES):
        chance = Random(seed)
        times = random_times(chance)
        matches = build_matches(times)
        matches += chance.choices(matches, k=5)
        chance.shuffle(matches)
        events = await record_matches(alerts, f"whole {seed}", [matches])
        expected = []
        for run in runs(times):
            spans = [times[number] for number in run]
            expected.append(at(min(start for start, _ in spans), max(end for _, end in spans)))
        assert sorted((event.occurred.start, event.occurred.end) for event in events if event.occurred) == [
            (period.start, period.end) for period in expected
        ]


async def test_in_many_parts_nothing_is_left_out_or_told_twice(records: SqlRecords) -> None:
    alerts = SqlAlerts(records.transactions)
    numbers = count()
    for seed in range(HISTORIES):
        chance = Random(1_000 + seed)
        times = random_times(chance)
        matches = build_matches(times)
        order = chance.sample(matches, k=len(matches)) + chance.choices(matches, k=10)
        parts = []
        while order:
            size = chance.randrange(1, 8)
            parts.append(order[:size])
            order = order[size:]
        events = await record_matches(alerts, f"parts {next(numbers)}", parts)
        spans = [event.occurred for event in events if event.occurred]
        for match in matches:
            assert match.occurred
            begins, ends = match.occurred.start, match.occurred.end
            assert any(span.start <= begins and ends <= span.end for span in spans)
        expected_runs = runs(times)
        assert len(expected_runs) <= len(events) <= CAPTIONS
        assert len({event.document for event in events}) == len(events)
        again = await alerts.list_alerts_of(ANNA)
        last = next(alert for alert in again if alert.name == events[0].alert.name)
        assert await alerts.record([Checked(last, last.checked + 1, tuple(matches))], now=NOON) == 0
