"""What every store of alerts must do. Subclass `AlertsContract`, give it `alerts` and its `records`."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from conspectus.errors import NotFound, TooLarge
from conspectus.model.alerts import Alert
from conspectus.model.filter import And, Eq, Not
from conspectus.model.ids import CollectionId, DocumentId, SourceId, UserId
from conspectus.model.records import Period
from conspectus.ports import Records
from conspectus.ports.streams import AlertMatch, Alerts, Checked, Delivery, Match
from tests.support.samples import NOON, NOTES, SHELF, notes, prepared, shelf

ANNA = UserId("anna")
HOOK = "https://example.com/hook?token=1"
PLAIN = Alert("a", ANNA, SHELF, "falls", "somebody falls", (), And(), 0.5, 4.0, None, NOON, 0)


def at(start: float, end: float) -> Period:
    """Seconds after noon."""
    return Period(NOON + timedelta(seconds=start), NOON + timedelta(seconds=end))


def match(document: str, start: float | None = None, end: float = 0.0, *, source: SourceId = NOTES) -> Match:
    """A caption that matches."""
    occurred = None if start is None else at(start, end)
    return Match(DocumentId(document), source, occurred, f"of {document}")


async def filled(records: Records, *names: str) -> int:
    """Store captions; the newest change."""
    await records.create_collection(shelf())
    await records.put_source(notes())
    await records.write([prepared(name, name) for name in names])
    return (await records.state(SHELF))[0]


async def tell(alerts: Alerts, alert: Alert, *matches: Match) -> int:
    """Record what matched, one change after where the alert is; how many events are new."""
    stored = await alerts.alert(alert.id)
    assert stored is not None
    return await alerts.record([Checked(stored, stored.checked + 1, matches)], now=NOON)


async def matches_of(alerts: Alerts, **fields: Any) -> list[AlertMatch]:
    """What was told."""
    return list(await alerts.events(ANNA, **{"limit": 100, **fields}))


class AlertsContract:
    """The behaviour of every store of alerts, as tests."""

    async def test_a_new_alert_begins_now_and_is_kept_as_it_is(
        self, alerts: Alerts, records: Records
    ) -> None:
        """Every field comes back; what was written before it is not looked at."""
        newest = await filled(records, "x")
        where = And((Eq(("place",), "gate ü"), Not(Eq("author", "bo"))))
        new = replace(PLAIN, filter=where, streams=(NOTES,), webhook=HOOK, min_similarity=None)
        stored = await alerts.put(new, maximum=1)
        assert stored == replace(new, checked=newest) == await alerts.alert("a")
        assert await alerts.list_alerts_of(ANNA) == [stored]
        assert await alerts.list_alerts_of(UserId("bo")) == []
        assert await alerts.behind() == []

    async def test_putting_it_again_changes_it_where_it_is(self, alerts: Alerts, records: Records) -> None:
        """It goes on from where it was, and counts once."""
        await filled(records, "x")
        first = await alerts.put(PLAIN, maximum=1)
        await records.write([prepared("y", "y")])
        changed = await alerts.put(replace(PLAIN, query="a fire", created=NOON + timedelta(1)), maximum=1)
        assert changed == replace(first, query="a fire")
        assert [stored.alert for stored in await alerts.behind()] == [changed]
        with pytest.raises(TooLarge):
            await alerts.put(replace(PLAIN, id="b", name="b"), maximum=1)

    async def test_what_is_unknown_is_an_error(self, alerts: Alerts, records: Records) -> None:
        """A collection that is not there has no alerts."""
        with pytest.raises(NotFound):
            await alerts.put(PLAIN, maximum=1)
        assert await alerts.alert("a") is None
        assert not await alerts.delete("a")

    async def test_captions_close_together_are_told_once(self, alerts: Alerts, records: Records) -> None:
        """In one go or one after the other, in any order; a stretch grows with what belongs to it."""
        await filled(records, *"abcdef")
        await alerts.put(PLAIN, maximum=1)
        assert await tell(alerts, PLAIN, match("b", 8, 10), match("a", 0, 5), match("c", 20, 21)) == 2
        assert await tell(alerts, PLAIN, match("d", 14, 14)) == 0
        assert await tell(alerts, PLAIN, match("e", 16, 18), match("f", 100, 101)) == 1
        events = await matches_of(alerts)
        assert [event.document for event in events] == ["a", "c", "f"]
        assert [event.occurred for event in events] == [at(0, 21), at(20, 21), at(100, 101)]
        assert [event.reason for event in events] == ["of a", "of c", "of f"]

    async def test_the_same_caption_twice_is_told_once(self, alerts: Alerts, records: Records) -> None:
        """With times or without; those without are events of their own."""
        await filled(records, "a", "b", "c")
        await alerts.put(PLAIN, maximum=1)
        assert await tell(alerts, PLAIN, match("a", 0, 5), match("a", 0, 5), match("b"), match("b")) == 2
        assert await tell(alerts, PLAIN, match("a", 0, 5), match("b"), match("c")) == 1
        assert [alert_match.occurred for alert_match in await matches_of(alerts)] == [None, at(0, 5), None]

    async def test_streams_and_alerts_do_not_mix(self, alerts: Alerts, records: Records) -> None:
        """What one was told of, another was not."""
        await filled(records, "a", "b")
        await records.put_source(notes("other"))
        for name in ("a", "b"):
            await alerts.put(replace(PLAIN, id=name, name=name), maximum=2)
        both = (match("a", 0, 5), match("b", 0, 5, source=SourceId("other")))
        assert await tell(alerts, PLAIN, *both) == 2
        assert await tell(alerts, replace(PLAIN, id="b"), *both) == 2
        assert [alert_match.alert.id for alert_match in await matches_of(alerts, alert="b")] == ["b", "b"]
        assert await alerts.events(UserId("bo"), limit=9) == []

    async def test_what_was_checked_meanwhile_is_left_out(self, alerts: Alerts, records: Records) -> None:
        """Two who check at once tell once; of an alert that is gone nothing is told."""
        await filled(records, "a")
        stored = await alerts.put(PLAIN, maximum=1)
        checked = Checked(stored, 7, (match("a", 0, 1),))
        assert await alerts.record([checked], now=NOON) == 1
        assert await alerts.record([replace(checked, matches=(match("a", 50, 51),))], now=NOON) == 0
        assert await alerts.alert("a") == replace(stored, checked=7)
        assert await alerts.delete("a")
        assert await alerts.record([checked], now=NOON) == 0
        assert await matches_of(alerts) == []

    async def test_captions_that_are_gone_tell_nothing_and_take_events_along(
        self, alerts: Alerts, records: Records
    ) -> None:
        """Whether they go before or after; numbers are never given out again."""
        await filled(records, "a", "b", "c")
        await alerts.put(PLAIN, maximum=1)
        assert await tell(alerts, PLAIN, match("never", 0, 5), match("a", 4, 6), match("no", 60, 61)) == 1
        assert await tell(alerts, PLAIN, match("b", 100, 101)) == 1
        last = (await matches_of(alerts))[-1].number
        await records.delete([DocumentId("a"), DocumentId("b")])
        assert await matches_of(alerts) == []
        assert await tell(alerts, PLAIN, match("c", 100, 101)) == 1
        assert [alert_match.number for alert_match in await matches_of(alerts)] == [last + 1]
        assert await alerts.newest(ANNA) == last + 1
        assert await alerts.newest(UserId("bo")) == 0

    async def test_with_a_collection_all_goes(self, alerts: Alerts, records: Records) -> None:
        """No alert is left that nobody could delete."""
        await filled(records, "a")
        await alerts.put(PLAIN, maximum=1)
        await tell(alerts, PLAIN, match("a", 0, 1))
        await records.delete_collection(CollectionId(SHELF))
        assert await alerts.list_alerts_of(ANNA) == []
        assert await matches_of(alerts) == []

    async def test_deliveries_are_due_until_they_are_final(self, alerts: Alerts, records: Records) -> None:
        """One that failed for now is due again at its time; without a webhook nothing is."""
        await filled(records, "a", "b")
        hooked = await alerts.put(replace(PLAIN, webhook=HOOK), maximum=1)
        await tell(alerts, hooked, match("a", 0, 1), match("b", 60, 61))
        assert await alerts.list_due_alerts(now=NOON) == ["a"]
        first = await alerts.due("a", now=NOON)
        assert first is not None
        assert (first.document, first.delivery, first.id) == ("a", "pending", f"a-{first.number}")
        later = NOON + timedelta(seconds=2)
        await alerts.set_delivery(first.number, Delivery("pending", 1, "away", later))
        second = await alerts.due("a", now=NOON)
        assert second is not None
        await alerts.set_delivery(second.number, Delivery("delivered", 1))
        assert await alerts.list_due_alerts(now=NOON) == []
        again = await alerts.due("a", now=later)
        assert again == replace(first, attempts=1, error="away")
        await alerts.set_delivery(first.number, Delivery("failed", 2, "gone"))
        await alerts.set_delivery(first.number, Delivery("delivered", 3))
        assert [alert_match.delivery for alert_match in await matches_of(alerts)] == ["failed", "delivered"]

    async def test_a_clock_set_back_holds_no_delivery_up(self, alerts: Alerts, records: Records) -> None:
        """What is due later than it can be is due at once, and what has to wait still waits."""
        await filled(records, "a")
        hooked = await alerts.put(replace(PLAIN, webhook=HOOK), maximum=1)
        await tell(alerts, hooked, match("a", 0, 1))
        for earlier, waiting in ((timedelta(minutes=1), []), (timedelta(hours=1), ["a"])):
            assert await alerts.list_due_alerts(now=NOON - earlier) == waiting
            assert (await alerts.due("a", now=NOON - earlier) is not None) == bool(waiting)

    async def test_without_its_webhook_nothing_is_left_to_send(
        self, alerts: Alerts, records: Records
    ) -> None:
        """What waits is not sent to an address that was taken away."""
        await filled(records, "a")
        hooked = await alerts.put(replace(PLAIN, webhook=HOOK), maximum=1)
        await tell(alerts, hooked, match("a", 0, 1))
        await alerts.put(PLAIN, maximum=1)
        assert await alerts.list_due_alerts(now=NOON) == []
        assert [alert_match.delivery for alert_match in await matches_of(alerts)] == ["none"]

    async def test_events_come_in_pages(self, alerts: Alerts, records: Records) -> None:
        """After a number, in order."""
        names = [f"d{number:02}" for number in range(25)]
        await filled(records, *names)
        await alerts.put(PLAIN, maximum=1)
        await tell(
            alerts, PLAIN, *(match(name, minute * 60, minute * 60) for minute, name in enumerate(names))
        )
        matches: list[AlertMatch] = []
        while page := await matches_of(alerts, after=matches[-1].number if matches else 0, limit=10):
            matches += page
        assert [alert_match.document for alert_match in matches] == names
