"""What random people see in streams, write down, wait for, and clear."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from conspectus.model.alerts import NewAlert
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.model.stream_events import NewEvent
from conspectus.model.streams import NewStream
from tests.support.permission_doing import Door
from tests.support.permission_model import RANK, SEEN, Paper, Room, Visitor, Watch
from tests.support.permission_talking import Talking

APART = 10
LASTS = 5
"""Seconds between the beginnings of two captions, and how long each is."""
Check = Callable[[], Awaitable[None]]
"""Holds all alerts against what was written since they were last checked."""


class Streaming(Talking):
    """The same history, with streams. `check` checks the alerts of the store."""

    def __init__(self, door: Door, owner: Any, seed: int, *, check: Check) -> None:
        super().__init__(door, owner, seed)
        self.check = check
        self._second = 0

    async def step(self) -> None:
        """One random thing, often something of streams."""
        if self.chance.random() < 0.4:
            usual = (self.film, self.film, self.film, self.film_anew, self.report, self.report, self.wait_for)
            rare = (self.open_stream, self.clear, self.forget)
            await self.chance.choice(rare if self.chance.random() < 0.3 else usual)()
        else:
            await super().step()

    async def begin(self) -> None:
        """Something was seen before."""
        await super().begin()
        for room in list(self.world.rooms.values()):
            host = self.world.users[room.owner]
            await self._start(Visitor(host, self.owner.scopes), room)
        for work in (self.film, self.give, self.film, self.report, self.wait_for, self.wait_for):
            await work()

    async def open_stream(self) -> None:
        """Someone makes a stream."""
        room, who = self._some_room(), self.visitor()
        if room is not None and self.world.sees_room(who.user.id, room.id):
            await self._start(who, room)

    async def film(self) -> None:
        """Someone adds a few captions to a stream."""
        for room, stream in self._some_streams():
            who = self.guest(room.id, stream)
            if self.world.sees_room(who.user.id, room.id):
                papers = [self.seen_now(room, stream) for _ in range(self.chance.choice([1, 1, 3]))]
                await self.write_down(who, room, papers)

    async def film_anew(self) -> None:
        """Someone says of a caption what is seen there, which needs to be meant."""
        for paper in self._some_of("caption"):
            room = self.world.rooms[paper.collection]
            who = self.guest(room.id, paper.source)
            if self.world.sees_room(who.user.id, room.id):
                again = self.seen_now(room, paper.source)
                again.id, again.key, again.at = paper.id, paper.key, paper.at
                again.words = (*again.words[:2], *paper.words[2:])
                await self.write_down(who, room, [again], replace=self.chance.random() < 0.7)

    async def clear(self) -> None:
        """Someone clears a stream, or a stretch of it."""
        for room, stream in self._some_streams():
            who, start = self.guest(room.id, stream), self.chance.choice([None, self._second // 2])
            inside = [paper for paper in self.world.papers.values() if paper.source == stream]
            if start is not None:
                inside = [paper for paper in inside if paper.track and paper.at + LASTS > start]
            within = CaptionRange(start=start)
            hidden = not self.world.rank(who.user.id, room.id, stream)
            if who.has("read") and hidden:
                view = await self.door.enter(who)
                work = view.streams.delete_captions(stream, collection=room.id, range=within)
                await self._expect("NotFound", work)
                continue
            ids = {paper.id for paper in inside}
            await self._shred(who, ids, _cleared(stream, room.id, within))

    async def report(self) -> None:
        """Someone says what happened in a stream."""
        for room, stream in self._some_streams():
            who = self.guest(room.id, stream)
            if not self.world.sees_room(who.user.id, room.id):
                continue
            paper = self.seen_now(room, stream)
            first, second, kind, name, key = paper.words
            paper.track, paper.key = "event", f"event:{key}"
            event = NewEvent(
                kind, paper.at, paper.at + LASTS, f"{first} and {second}", (name,), key, {"word": first}
            )
            view = await self.door.enter(who)
            allowed = self._may_write(who, paper)
            work = view.events.add(event, stream=stream, collection=room.id)
            written = await self._expect("ok" if allowed else self._refused(who, paper), work)
            if allowed:
                paper.id = written[0].id
                self.world.papers[paper.id] = paper
                await view.documents.wait_until_embedded(collection=room.id)

    async def wait_for(self) -> None:
        """Someone sets an alert, on streams that may be hidden."""
        room, name = self._some_room(), self.word()
        if room is None:
            return
        who = self.guest(room.id, self.chance.choice([*room.sources, ""]))
        streams = self.chance.choice(
            [(), (), *((source,) for source in room.sources if source in self.world.streams)]
        )
        words = [paper.words[0] for paper in self.world.papers.values() if paper.track == "caption"]
        query = self.chance.choice([SEEN, *words[-1:]])
        alert = NewAlert(name, query, room.id, streams, min_similarity=None, gap_seconds=0)
        seen = self.world.sees_room(who.user.id, room.id)
        seen = seen and all(self.world.rank(who.user.id, room.id, stream) for stream in streams)
        expected = "PermissionDenied" if not who.has("read", "write") else "ok" if seen else "NotFound"
        view = await self.door.enter(who)
        stored = await self._expect(expected, view.alerts.put(alert))
        if expected == "ok":
            watch = Watch(stored.id, name, who.user.id, room.id, streams, query)
            self.world.watches[stored.id] = watch

    async def forget(self) -> None:
        """Someone deletes an alert, which may be another's."""
        for watch in self._some(self.world.watches.values()):
            who = self.chance.choice(
                [self.visitor(), Visitor(self.world.users[watch.owner], self.owner.scopes)]
            )
            if who.user.disabled:
                continue
            expected = "ok" if self.knows(who, watch) else "NotFound"
            expected = expected if who.has("read", "write") else "PermissionDenied"
            view = await self.door.enter(who)
            await self._expect(expected, view.alerts.delete(watch.id))
            if expected == "ok":
                del self.world.watches[watch.id]

    def knows(self, who: Visitor, watch: Watch) -> bool:
        """Whether an alert is there for someone: an own one, of a collection that is."""
        return watch.owner == who.user.id and self.world.sees_room(watch.owner, watch.collection)

    def seen_now(self, room: Room, stream: str) -> Paper:
        """A caption that is not written yet."""
        self._second += APART
        words = tuple(self.word() for _ in range(5))
        return Paper("", room.id, stream, words[4], None, words, track="caption", at=self._second)

    async def write_down(
        self, who: Visitor, room: Room, papers: list[Paper], *, replace: bool = False
    ) -> None:
        """Add captions of one stream; what is there already and says something else has to be replaced."""
        anew = any(paper.id for paper in papers)
        allowed = self._may_write(who, papers[0])
        possible = "ok" if replace or not anew else "Conflict"
        expected = possible if allowed else self._refused(who, papers[0])
        captions = [_caption(paper) for paper in papers]
        view = await self.door.enter(who)
        work = view.streams.add_captions(
            captions, stream=papers[0].source, collection=room.id, replace=replace, wait=room.embeds
        )
        written = await self._expect(expected, work)
        if expected != "ok":
            return
        for paper, caption in zip(papers, written, strict=True):
            assert paper.id in {"", caption.id}
            paper.id = caption.id
            self.world.papers[paper.id] = paper
        await self.check()
        for paper in papers:
            self.world.tell(paper)

    async def _start(self, who: Visitor, room: Room) -> None:
        name, title = self.word(), self.word()
        able = self.world.rank(who.user.id, room.id) >= RANK["manager"]
        expected = self._judged(who, seen=True, able=able, scope="write")
        view = await self.door.enter(who)
        work = view.streams.put(NewStream(name, room.id, title, live=True))
        job = await self._expect(expected, work)
        if expected == "ok":
            room.sources[job.source.id] = name
            self.world.streams[job.source.id] = title

    def _may_write(self, who: Visitor, paper: Paper) -> bool:
        rank = self.world.rank(who.user.id, paper.collection, paper.source)
        return who.has("read", "write") and rank >= RANK["editor"]

    def _some_streams(self) -> Iterator[tuple[Room, str]]:
        """A stream with its collection, if there is any."""
        yield from self._some(self.world.all_streams())

    def _some_of(self, track: str) -> Iterator[Paper]:
        yield from self._some(paper for paper in self.world.papers.values() if paper.track == track)

    def _some(self, things: Any) -> Iterator[Any]:
        candidates = list(things)
        if candidates:
            yield self.chance.choice(candidates)


def _caption(paper: Paper) -> NewCaption:
    first, second, speaker, name, *_ = paper.words
    return NewCaption(
        f"Seen {first} with {second}.",
        paper.at,
        paper.at + LASTS,
        key=paper.key,
        speaker=speaker,
        entities=(name,),
        metadata={"word": first},
    )


def _cleared(stream: str, room: str, within: CaptionRange) -> Callable[[Any], Awaitable[Any]]:
    return lambda view: view.streams.delete_captions(stream, collection=room, range=within)
