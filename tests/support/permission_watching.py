"""Looking at streams as one person: at what was granted, and at nothing else; alerts among it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Any

from conspectus.errors import NotFound
from conspectus.model.access import SCOPES, Principal
from conspectus.model.alerts import AlertEvent, NewAlert
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.model.stream_events import NewEvent
from conspectus.model.streams import NewStream
from tests.support.permission_listening import Listening
from tests.support.permission_model import SEEN, Paper, Room, Visitor, Watch
from tests.support.permission_streaming import LASTS

Attempt = Callable[[Any, str], Awaitable[Any]]
"""Something done with a view and the name of a thing."""
BUDGET = 300
MOST = 100


async def first_of(events: AsyncGenerator[Any, None]) -> Any:
    """The first of what comes without an end."""
    async with aclosing(events) as opened:
        return await anext(opened)


def on_a_stream(home: str) -> Mapping[str, Attempt]:
    """Every method that takes a stream, of which nobody may know that it is there."""
    return {
        "find stream": lambda view, name: view.streams.get(name, collection=home),
        "put stream": lambda view, name: view.streams.put(NewStream(name, home)),
        "title": lambda view, name: view.streams.put(NewStream(name, home, "x", time_zone="Europe/Berlin")),
        "start": lambda view, name: view.streams.put(NewStream(name, home, start_time="2020-01-01T00:00Z")),
        "film": lambda view, name: view.streams.add_captions(
            NewCaption("x", 0), stream=name, collection=home
        ),
        "report": lambda view, name: view.events.add(NewEvent("x", 0), stream=name, collection=home),
        "captions": lambda view, name: view.streams.list_captions(stream=name, collection=home),
        "clear": lambda view, name: view.streams.delete_captions(name, collection=home),
        "clear some": lambda view, name: view.streams.delete_captions(
            name, collection=home, range=CaptionRange(0, 9)
        ),
        "moments": lambda view, name: view.streams.search("x", streams=(name,), collection=home),
        "at a time": lambda view, name: view.streams.search("at 0:10", streams=(name,), collection=home),
        "video window": lambda view, name: view.streams.window("x", BUDGET, streams=(name,), collection=home),
        "events": lambda view, name: view.events.list(stream=name, collection=home),
        "entities": lambda view, name: view.events.count_entities(stream=name, collection=home),
        "timeline": lambda view, name: view.events.entity_timeline("x", stream=name, collection=home),
        "summary": lambda view, name: view.summaries.get(name, collection=home),
        "summarize": lambda view, name: view.summaries.summarize(name, collection=home, extractive=True),
        "job": lambda view, name: view.summaries.start_job(name, collection=home),
        "keep": lambda view, name: view.summaries.stop_live(name, collection=home),
        "follow": lambda view, name: first_of(view.streams.subscribe(stream=name, collection=home, after=0)),
        "follow on": lambda view, name: first_of(view.streams.subscribe(stream=name, collection=home)),
        "alert": lambda view, name: view.alerts.put(NewAlert("x", "x", home, (name,))),
    }  # fmt: skip


def in_a_collection() -> Mapping[str, Attempt]:
    """The same methods and those beside them, for a collection that has to be there."""
    making = {"put stream", "title", "start", "film", "report"}
    return {
        **{what: _anywhere(what) for what in on_a_stream("") if what not in making},
        "streams": lambda view, name: view.streams.list(collection=name),
        "all streams": lambda view, name: view.streams.search("x", collection=name),
        "alerts": lambda view, name: view.alerts.list(collection=name),
        "alert on all": lambda view, name: view.alerts.put(NewAlert("x", "x", name)),
    }


def on_an_alert() -> Mapping[str, Attempt]:
    """Every method that takes an alert."""
    return {
        "find": lambda view, name: view.alerts.get(name),
        "delete": lambda view, name: view.alerts.delete(name),
        "told": lambda view, name: view.alerts.list_matches(alert=name),
        "listen": lambda view, name: first_of(view.alerts.subscribe(alert=name, after=0)),
        "listen on": lambda view, name: first_of(view.alerts.subscribe(alert=name)),
    }


class Watching(Listening):
    """The same history, with eyes for streams."""

    async def watch(self, who: Visitor, view: Any) -> list[Any]:
        """Ask streams in every way there is; the answers."""
        answers = [await self._alerts(who, view)]
        for room in self._few(self.world.rooms.values(), 2):
            if self.world.sees_room(who.user.id, room.id):
                answers += await self._streams(who, view, room)
        return answers

    async def watch_in_part(self) -> None:
        """The same for someone who sees some of a collection and not all of it."""
        pairs = (
            (user, room)
            for room in self.world.rooms.values()
            for user in self.world.users.values()
            if not user.disabled and 0 < len(self.world.sources_seen(user.id, room.id)) < len(room.sources)
        )
        for user, room in self._few(pairs, 2):
            who = Visitor(user, SCOPES)
            self._none_hidden(who, await self._streams(who, await self.door.enter(who), room))

    async def _streams(self, who: Visitor, view: Any, room: Room) -> list[Any]:
        """The streams of a collection, and a question to all of them."""
        mine = self.world.sources_seen(who.user.id, room.id) & self.world.streams.keys()
        streams = await view.streams.list(collection=room.id)
        assert {stream.source.id for stream in streams} == mine
        for stream in streams:
            assert stream.captions == len(self.world.track(stream.source.id, "caption"))
        fields: dict[str, Any] = {"query": SEEN, "collection": room.id, "limit": MOST}
        moments = await view.streams.search(**fields)
        assert {moment.stream.id for moment in moments.moments} <= mine
        window = await view.streams.window(max_tokens=BUDGET, **fields)
        ids = [caption.document.id for moment in moments.moments for caption in moment.captions]
        self._all_visible(who, [*ids, *(caption.id for caption in window.captions)])
        timed = await view.streams.search(**{**fields, "query": "What was seen in the first minute?"})
        answers = [streams, moments, window, timed]
        for stream in self._few(sorted(mine), 1):
            answers += await self._stream(view, room, stream)
        return answers

    async def _stream(self, view: Any, room: Room, stream: str) -> list[Any]:
        """All that is known of a stream that may be seen."""
        captions, events = self.world.track(stream, "caption"), self.world.track(stream, "event")
        location = {"stream": self.chance.choice([stream, room.sources[stream]]), "collection": room.id}
        listed = await self._pages(view, location)
        assert [caption.document.id for caption in listed] == [caption.id for caption in captions]
        listed_events = await view.events.list(**location)
        assert [match.documents for match in listed_events] == [(event.id,) for event in events]
        names = await view.events.count_entities(**location)
        mentioned = [
            *(paper.words[3] for paper in captions + events),
            *(caption.words[2] for caption in captions),
        ]
        assert dict(names) == dict.fromkeys(mentioned, 1)
        request: dict[str, Any] = {"stream": stream, "collection": room.id, "extractive": True}
        summary = await view.summaries.summarize(**request)
        assert summary.outcome == ("complete" if captions else "empty")
        answers = [listed, listed_events, names, summary, await view.summaries.get(**request)]
        for paper in self._few(captions, 1):
            answers += await self._caption(view, location, paper)
        return answers

    async def _caption(self, view: Any, location: Mapping[str, str], paper: Paper) -> list[Any]:
        """One caption, by its time, its words, and who is in it."""
        within = CaptionRange(paper.at, paper.at + LASTS)
        [only] = (await view.streams.list_captions(**location, range=within)).captions
        assert only.document.id == paper.id
        spans = await view.events.entity_timeline(self.chance.choice(paper.words[:4]), **location)
        assert [span.documents for span in spans] == [(paper.id,)]
        fields: dict[str, Any] = {
            "query": paper.words[0],
            "streams": (location["stream"],),
            "collection": location["collection"],
        }
        answer = await view.streams.search(**fields)
        assert paper.id in {caption.document.id for moment in answer.moments for caption in moment.captions}
        window = await view.streams.window(max_tokens=BUDGET, **fields)
        assert paper.words[0] in window.window.text
        return [only, spans, answer, window]

    def _none_hidden(self, who: Visitor, answers: list[Any]) -> None:
        text = repr(answers)
        leaks = [word for word in self.world.hidden_words(who.user.id) if word in text]
        assert leaks == [], (leaks, text)

    async def _pages(self, view: Any, location: Mapping[str, str]) -> list[Any]:
        captions, cursor = [], None
        while True:
            page = await view.streams.list_captions(
                **location, after=cursor, limit=self.chance.choice([1, 3, MOST])
            )
            captions += page.captions
            cursor = page.next
            if cursor is None:
                return captions

    async def _alerts(self, who: Visitor, view: Any) -> Any:
        """The own alerts, and what they told that can be seen now; of those of others, nothing."""
        mine = [watch for watch in self.world.watches.values() if watch.owner == who.user.id]
        mine = [watch for watch in mine if self.world.sees_room(watch.owner, watch.collection)]
        alerts = [alert for alert in await view.alerts.list() if alert.id in self.world.watches]
        assert {alert.id for alert in alerts} == {watch.id for watch in mine}
        for alert in alerts:
            assert alert.checked == 0 or self.world.rank(who.user.id, alert.collection)
        events = []
        for watch in self._few(mine, 3):
            matches = await view.alerts.list_matches(alert=watch.id)
            self._told_rightly(who, watch.told, [match.document for match in matches])
            events += matches
        # What somebody named may be hidden by now: it is not news.
        return [[(alert.id, alert.name, alert.checked) for alert in alerts], events]

    def _told_rightly(self, who: Visitor, expected: set[str], matched: list[str]) -> None:
        self._all_visible(who, matched)
        assert len(matched) == len(set(matched))
        due = {name for name in expected if self.world.sees_paper(who.user.id, self.world.papers[name])}
        assert due <= set(matched)
        assert all(len(self.world.papers[name].words) > 5 for name in set(matched) - due)

    def _few(self, things: Iterable[Any], maximum: int) -> list[Any]:
        everything = list(things)
        return self.chance.sample(everything, min(maximum, len(everything)))

    async def silence(self) -> None:
        """Someone is told of a stream until it is not granted any more, and then not once again."""
        for room, stream, who in self._some(self._listeners()):
            await self._grant(room, stream, who)
            view = await self.door.enter(who)
            alert = NewAlert(self.word(), SEEN, room.id, (stream,), min_similarity=None, gap_seconds=0)
            stored = await view.alerts.put(alert)
            watch = Watch(stored.id, alert.name, who.user.id, room.id, alert.streams, alert.query)
            self.world.watches[stored.id] = watch
            async with (
                aclosing(view.streams.subscribe(stream=stream, collection=room.id, after=0)) as from_start,
                aclosing(view.streams.subscribe(stream=stream, collection=room.id)) as fresh,
                aclosing(view.alerts.subscribe(alert=stored.id, after=0)) as matches,
            ):
                await self._heard(room, stream, from_start, fresh, matches)
                await self._shut_out(room, who)
                secret = {(await self._film(room, stream)).id for _ in range(3)}
                for events in (from_start, fresh, matches):
                    await _ended(events, secret=secret)
            secret |= await self._filmed_beside(room, stream, who)
            await self._grant(room, stream, who)
            late = await view.alerts.list_matches(alert=stored.id, limit=MOST)
            self._told_rightly(who, watch.told, [match.document for match in late])
            assert not secret & {match.document for match in late}

    async def _filmed_beside(self, room: Room, stream: str, who: Visitor) -> set[str]:
        """What is seen in a stream while someone is granted other sources of its collection."""
        for part in self._some(source for source in room.sources if source != stream):
            await self._grant(room, part, who)
        return {(await self._film(room, stream)).id}

    async def _heard(self, room: Room, stream: str, *ears: AsyncGenerator[Any, None]) -> None:
        """From the beginning all is heard, and from now on nothing that was there before."""
        from_start, fresh, matches = ears
        before = {caption.id for caption in self.world.track(stream, "caption")}
        heard = [(await anext(from_start)).caption.document.id for _ in before]
        assert set(heard) == before
        coming = asyncio.ensure_future(anext(fresh))
        while not coming.done():
            await self._film(room, stream)
            await asyncio.wait({coming}, timeout=0.05)
        assert coming.result().caption.document.id not in before
        assert (await anext(matches)).document not in before

    def _listeners(self) -> Iterator[tuple[Room, str, Visitor]]:
        able = [user for user in self.world.users.values() if not (user.disabled or user.owner)]
        for room, stream in self.world.all_streams():
            yield from ((room, stream, Visitor(user, SCOPES)) for user in able if user.id != room.owner)

    async def _grant(self, room: Room, stream: str, who: Visitor) -> None:
        whom = Principal("user", who.user.id)
        await (await self._as_owner()).access.grant(room.id, whom, "viewer", source=stream)
        self.world.grants[room.id, stream, whom] = "viewer"

    async def _shut_out(self, room: Room, who: Visitor) -> None:
        """Take everything in a collection from someone, and from the groups of which that one is a member."""
        groups = {name for name, members in self.world.groups.items() if who.user.id in members}
        for key in list(self.world.grants):
            home, part, whom = key
            if home == room.id and whom.id in {who.user.id, *groups}:
                await (await self._as_owner()).access.revoke(home, whom, source=part)
                del self.world.grants[key]

    async def _film(self, room: Room, stream: str) -> Paper:
        paper = self.seen_now(room, stream)
        await self.write_down(self.owner, room, [paper])
        return paper


def _anywhere(what: str) -> Attempt:
    return lambda view, name: on_a_stream(name)[what](view, "any")


async def _ended(events: AsyncGenerator[Any, None], *, secret: set[str]) -> None:
    """Hear what was on its way, and then that there is nothing to be told any more."""
    with suppress(NotFound):
        async for event in events:
            name = event.document if isinstance(event, AlertEvent) else event.caption.document.id
            assert name not in secret
