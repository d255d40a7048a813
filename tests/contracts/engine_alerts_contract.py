"""What every engine must do with events, who is in them, and alerts."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from conspectus.engine import Engine
from conspectus.errors import Conflict, ForbiddenAddress, InvalidInput, NotFound, TooLarge
from conspectus.model.alerts import AlertEvent, NewAlert
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.model.filter import And, Eq, Exists, Not
from conspectus.model.stream_events import NewEvent
from conspectus.model.streams import NewStream
from tests.support.engine_samples import AnyEngine

CAM = "front door"
FALLS = [
    NewEvent("fall", "00:00:08", 10, "He lies there", ("Bo", "Ann")),
    NewEvent("fall", 0, 5.0, "A man falls", ("Ann",)),
    NewEvent("fire", 9, 11),
    NewEvent("fall", 15, 20, "another"),
]
SEEN = [
    NewCaption("A man walks in", 0, 5, entities=("Ann", "the door"), speaker="guard"),
    NewCaption("ANN's bag is left at the door", 8, 10),
    NewCaption("Annabel is not her", 40, 45, entities=("annabel",)),
    NewCaption("Nothing moves", 100, 105, speaker="ANN"),
    NewCaption("ann waits", None, None, key="untimed"),
]
PATIENCE = 30
"""Seconds until a test gives up on what should come at once."""


async def heard(engine: AnyEngine, count: int, **how: Any) -> list[AlertEvent]:
    """The next events that a listener is told."""
    heard_events: list[AlertEvent] = []
    async with asyncio.timeout(PATIENCE), aclosing(engine.alerts.subscribe(**how)) as events:
        async for event in events:
            heard_events.append(event)
            if len(heard_events) == count:
                break
    return heard_events


class EngineAlertsContract:
    """Events, entities and alerts: the same, whoever is asked."""

    async def test_reports_of_one_type_that_are_close_are_one_event(self, engine: AnyEngine) -> None:
        """Their words and names come once each, in the order of time; other types stay apart."""
        written = await engine.events.add(FALLS, stream=CAM)
        assert [event.outcome for event in written] == ["added"] * 4
        first, fire, last = await engine.events.list(stream=CAM)
        assert (first.type, first.start, first.end) == ("fall", 0.0, 10.0)
        assert first.descriptions == ("A man falls", "He lies there")
        assert first.entities == ("Ann", "Bo")
        assert set(first.documents) == {written[0].id, written[1].id}
        assert (fire.type, fire.descriptions, last.start) == ("fire", ("fire",), 15.0)
        assert await engine.events.list(stream=CAM, type="fire") == [fire]
        assert await engine.events.list(stream=CAM, type="Fire") == []

    async def test_the_same_event_again_changes_nothing(self, engine: AnyEngine) -> None:
        """Named by its key or by what it says; another one of a key takes its place."""
        keyed = NewEvent("fall", 0, 5, key="1", metadata={"sure": 0.5})
        for expected in ("added", "unchanged"):
            written = await engine.events.add([*FALLS, keyed], stream=CAM)
            assert {event.outcome for event in written} == {expected}
        [again] = await engine.events.add(replace(keyed, type="fight"), stream=CAM)
        assert again.outcome in {"replaced", "updated"}
        assert [event.start for event in await engine.events.list(stream=CAM, type="fight")] == [0.0]

    async def test_events_and_captions_of_one_key_are_apart(self, engine: AnyEngine) -> None:
        """A caption is never replaced by an event, and an event is no caption."""
        await engine.streams.add_captions(NewCaption("one", 0, 1, index=1), stream=CAM)
        await engine.streams.add_captions(NewCaption("odd", 0, 1, key="event:2"), stream=CAM)
        await engine.events.add(NewEvent("fall", 0, 1, key="1"), stream=CAM)
        assert (await engine.streams.get(CAM)).captions == 2
        with pytest.raises(Conflict):
            await engine.events.add(NewEvent("fall", 0, 1, key="2"), stream=CAM)

    async def test_a_range_gives_the_events_that_share_an_instant_with_it(self, engine: AnyEngine) -> None:
        """They are whole; instants of the calendar and seconds mean the same."""
        await engine.streams.put(NewStream(CAM, start_time="2026-03-02T08:00:00Z"))
        await engine.events.add(FALLS, stream=CAM)
        for within in (
            CaptionRange(10, 16),
            CaptionRange("2026-03-02T08:00:10Z", "2026-03-02T09:00:16+01:00"),
        ):
            overlapping = await engine.events.list(stream=CAM, range=within)
            assert [(event.type, event.start) for event in overlapping] == [("fire", 9.0), ("fall", 15.0)]
        inside = await engine.events.list(stream=CAM, range=CaptionRange(0, 12, contains=True))
        assert [(event.type, event.end) for event in inside] == [("fall", 10.0), ("fire", 11.0)]

    async def test_events_that_cannot_be_are_refused(self, engine: AnyEngine) -> None:
        """Nothing of their batch is stored."""
        for type_, *times in (("", 0), (" ", 0), ("fall", 5, 4), ("fall", "soon"), ("x" * 1_001, 0)):
            with pytest.raises(InvalidInput):
                await engine.events.add([FALLS[0], NewEvent(type_, *times)], stream=CAM)
        await engine.streams.put(CAM)
        assert await engine.events.list(stream=CAM) == []
        with pytest.raises(NotFound):
            await engine.events.list(stream="nowhere")

    async def test_who_is_there_and_how_often(self, engine: AnyEngine) -> None:
        """Entities and speakers of captions and events, whatever their capitals."""
        await engine.streams.add_captions(SEEN, stream=CAM)
        await engine.events.add(FALLS, stream=CAM)
        assert list((await engine.events.count_entities(stream=CAM)).items()) == [
            ("Ann", 4), ("Bo", 1), ("annabel", 1), ("guard", 1), ("the door", 1),
        ]  # fmt: skip
        assert await engine.events.count_entities(stream=CAM, range=CaptionRange(50, None)) == {"ANN": 1}

    async def test_when_somebody_is_there(self, engine: AnyEngine) -> None:
        """Said to be there, speaking, or named as a whole word."""
        await engine.streams.add_captions(SEEN, stream=CAM)
        await engine.events.add(FALLS[2:], stream=CAM)
        spans = await engine.events.entity_timeline(" aNN", stream=CAM)
        assert [(span.entity, span.start, span.end) for span in spans] == [
            ("aNN", 0.0, 10.0),
            ("aNN", 100.0, 105.0),
        ]
        assert [len(span.documents) for span in spans] == [2, 1]
        assert [span.end for span in await engine.events.entity_timeline("the  DOOR", stream=CAM)] == [10.0]
        late = await engine.events.entity_timeline("ann", stream=CAM, range=CaptionRange(9, 101))
        assert [span.start for span in late] == [8.0, 100.0]
        inside = CaptionRange(1, 104, contains=True)
        assert [
            span.start for span in await engine.events.entity_timeline("ann", stream=CAM, range=inside)
        ] == [8.0]
        assert await engine.events.entity_timeline("walk", stream=CAM) == []
        with pytest.raises(InvalidInput):
            await engine.events.entity_timeline("  ", stream=CAM)

    async def test_an_alert_is_kept_as_it_was_set(self, engine: AnyEngine) -> None:
        """Under its name in its collection; setting it again changes it."""
        home = (await engine.streams.put(CAM)).source
        where = And((Not(Eq(("level",), 3)), Exists("author")))
        new = NewAlert(
            "Fälle", "somebody falls", streams=(CAM,), filter=where, min_similarity=None, gap_seconds=0.5
        )
        stored = await engine.alerts.put(new)
        assert (stored.streams, stored.filter, stored.collection) == ((home.id,), where, home.collection)
        assert (stored.min_similarity, stored.gap_seconds, stored.webhook) == (None, 0.5, None)
        assert await engine.alerts.list() == [stored] == await engine.alerts.list(collection="default")
        assert await engine.alerts.get(stored.id) == stored
        changed = await engine.alerts.put(replace(new, query="a fire", min_similarity=0.9))
        assert changed == replace(stored, query="a fire", min_similarity=0.9)
        await engine.alerts.delete(stored.id)
        assert await engine.alerts.list() == []
        for gone in (engine.alerts.get(stored.id), engine.alerts.delete(stored.id)):
            with pytest.raises(NotFound):
                await gone

    async def test_alerts_that_cannot_be_are_refused(self, engine: AnyEngine) -> None:
        """Each with what is wrong about it."""
        await engine.streams.put(CAM)
        good = NewAlert("a", "fire")
        for changes in (
            {"name": " "},
            {"name": "x" * 1_001},
            {"webhook": "no address"},
            {"webhook": "http://user:pass@example.com/"},
            {"filter": Eq(("n",), "x" * 200_000)},
            {"query": "x" * 10_001},
        ):
            with pytest.raises(InvalidInput):
                await engine.alerts.put(replace(good, **changes))
        with pytest.raises(ForbiddenAddress):
            await engine.alerts.put(replace(good, webhook="http://127.0.0.1:1/x"))
        for missing in (replace(good, streams=("nowhere",)), replace(good, collection="nowhere")):
            with pytest.raises(NotFound):
                await engine.alerts.put(missing)
        assert await engine.alerts.list() == []

    async def test_what_is_waited_for_is_told_once_to_whoever_listens(
        self, engine: AnyEngine, local: Engine
    ) -> None:
        """By words at once, by meaning when there are vectors; a listener goes on where it was."""
        await engine.streams.put(CAM)
        alert = await engine.alerts.put(NewAlert("fire", "a fire", min_similarity=0.95))
        await local.alerts.start()
        await engine.streams.add_captions(NewCaption("There is a FIRE!", 0, 5), stream=CAM, wait=True)
        [first] = await heard(engine, 1, after=0)
        assert (first.alert, first.name, first.text) == (alert.id, "fire", "There is a FIRE!")
        assert (first.start, first.end, first.delivery) == (0.0, 5.0, "none")
        await engine.streams.add_captions(
            [NewCaption("fire still", 8, 10), NewCaption("Fires", 100, 101)], stream=CAM, wait=True
        )
        [second] = await heard(engine, 1, after=first.number, alert=alert.id)
        assert (second.text, second.number > first.number) == ("Fires", True)
        matches = await engine.alerts.list_matches()
        assert [(match.text, match.end) for match in matches] == [
            ("There is a FIRE!", 10.0),
            ("Fires", 101.0),
        ]
        assert await engine.alerts.list_matches(after=first.number, limit=1) == matches[1:]

    async def test_a_listener_without_a_number_hears_what_comes_from_now_on(
        self, engine: AnyEngine, local: Engine
    ) -> None:
        """Not what was told before."""
        await engine.streams.put(CAM)
        await engine.alerts.put(NewAlert("fire", "fire"))
        await local.alerts.start()
        await engine.streams.add_captions(NewCaption("fire one", 0, 1), stream=CAM)
        await heard(engine, 1, after=0)
        listening = asyncio.create_task(heard(engine, 1))
        for number in range(1, 300):
            await engine.streams.add_captions(NewCaption(f"fire {number}", 100 * number, None), stream=CAM)
            if (await asyncio.wait({listening}, timeout=0.1))[0]:
                break
        assert (await listening)[0].text != "fire one"

    async def test_deleted_captions_take_what_was_told_along(self, engine: AnyEngine, local: Engine) -> None:
        """And with an alert goes all that it told."""
        await engine.streams.put(CAM)
        alert = await engine.alerts.put(NewAlert("fire", "fire"))
        await local.alerts.start()
        captions = [NewCaption(f"fire {number}", 100 * number, None) for number in range(2)]
        written = await engine.streams.add_captions(captions, stream=CAM)
        await heard(engine, 2, after=0)
        await engine.documents.delete(written[0].id)
        assert [match.document for match in await engine.alerts.list_matches()] == [written[1].id]
        await engine.alerts.delete(alert.id)
        assert await engine.alerts.list_matches() == []
        for unknown in (engine.alerts.list_matches(alert=alert.id), heard(engine, 1, alert=alert.id)):
            with pytest.raises(NotFound):
                await unknown

    async def test_pages_of_events_have_bounds(self, engine: AnyEngine) -> None:
        """A limit that is none is refused."""
        for limit in (0, 1_001):
            with pytest.raises((InvalidInput, TooLarge)):
                await engine.alerts.list_matches(limit=limit)
