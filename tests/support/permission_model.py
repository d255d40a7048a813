"""A plain model of who may see and do what: sets and dictionaries, and nothing of the product's own rules."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from conspectus.model.access import Principal, Role, Scope, User
from conspectus.model.ids import LOCAL

RANK: dict[Role, int] = {"viewer": 1, "editor": 2, "manager": 3, "owner": 4}
GIVES = {0: 0, 1: 0, 2: 0, 3: 2, 4: 4}
"""The highest rank that someone of a rank may give or take."""
SEEN = "seen"
"""The word that every caption has."""


@dataclass
class Paper:
    """A document: where it is, what hangs on it, and the words that nothing else holds; `message`: posted.

    A caption or an event has a `track`, and begins at a second of its stream.
    """

    id: str
    collection: str
    source: str
    key: str
    parent: str | None
    words: tuple[str, ...]
    message: bool = False
    track: Literal["", "caption", "event"] = ""
    at: int = 0


@dataclass
class Room:
    """A collection with the names of its sources by id, and those of its connections."""

    id: str
    name: str
    owner: str
    embeds: bool
    sources: dict[str, str] = field(default_factory=dict)
    connections: set[str] = field(default_factory=set)


@dataclass
class Watch:
    """An alert: who waits for a word in which streams (none named: in all), and what it has told."""

    id: str
    name: str
    owner: str
    collection: str
    streams: tuple[str, ...]
    query: str
    told: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Visitor:
    """A user with the scopes of the key in hand."""

    user: User
    scopes: tuple[Scope, ...]

    def has(self, *scopes: Scope) -> bool:
        """Whether the key is good for all of these."""
        return set(scopes) <= set(self.scopes)


@dataclass
class World:
    """Everything there is, and everything that was granted."""

    users: dict[str, User] = field(default_factory=dict)
    groups: dict[str, set[str]] = field(default_factory=dict)
    rooms: dict[str, Room] = field(default_factory=dict)
    papers: dict[str, Paper] = field(default_factory=dict)
    grants: dict[tuple[str, str | None, Principal], Role] = field(default_factory=dict)
    streams: dict[str, str] = field(default_factory=dict)
    """The titles of the sources that are streams, by id."""
    watches: dict[str, Watch] = field(default_factory=dict)

    def rank(self, user: str, room: str, source: str | None = None) -> int:
        """The highest rank of a user on a source, or on a collection as a whole; 0 for none."""
        if user in {LOCAL, self.rooms[room].owner}:
            return RANK["owner"]
        principals = {Principal("user", user)}
        principals |= {Principal("group", group) for group, members in self.groups.items() if user in members}
        places = {(room, None), (room, source)}
        return max(
            (
                RANK[role]
                for (where, part, whom), role in self.grants.items()
                if (where, part) in places and whom in principals
            ),
            default=0,
        )

    def sees_room(self, user: str, room: str) -> bool:
        """Whether the user may see anything of it."""
        return any(self.rank(user, room, source) for source in (None, *self.rooms[room].sources))

    def sources_seen(self, user: str, room: str) -> set[str]:
        """The sources of a collection that the user may see."""
        return {source for source in self.rooms[room].sources if self.rank(user, room, source)}

    def sees_paper(self, user: str, paper: Paper) -> bool:
        """Whether the user may see a document."""
        return self.rank(user, paper.collection, paper.source) > 0

    def papers_seen(self, user: str, room: str) -> set[str]:
        """The documents of a collection that the user may see."""
        inside = (paper for paper in self.papers.values() if paper.collection == room)
        return {paper.id for paper in inside if self.sees_paper(user, paper)}

    def tree(self, roots: set[str]) -> set[str]:
        """Documents with all that hangs on them."""
        ids = {root for root in roots if root in self.papers}
        while more := {paper.id for paper in self.papers.values() if paper.parent in ids} - ids:
            ids |= more
        return ids

    def hidden_words(self, user: str) -> Iterator[str]:
        """Every id, name and word that must not be in any answer to the user."""
        for room in self.rooms.values():
            if not self.sees_room(user, room.id):
                yield from (room.id, room.name)
            if not self.rank(user, room.id):
                yield from room.connections
            for source in room.sources.keys() - self.sources_seen(user, room.id):
                yield from (source, room.sources[source])
                yield from filter(None, [self.streams.get(source)])
        for paper in self.papers.values():
            if not self.sees_paper(user, paper):
                yield from (paper.id, *paper.words)
        others = (watch for watch in self.watches.values() if watch.owner != user)
        yield from (word for watch in others for word in (watch.id, watch.name))

    def all_streams(self) -> list[tuple[Room, str]]:
        """Every stream with its collection."""
        rooms = self.rooms.values()
        return [(room, source) for room in rooms for source in room.sources if source in self.streams]

    def track(self, stream: str, track: str) -> list[Paper]:
        """The captions or the events of a stream, in the order of time."""
        papers = [paper for paper in self.papers.values() if paper.source == stream and paper.track == track]
        return sorted(papers, key=lambda paper: paper.at)

    def tell(self, paper: Paper) -> None:
        """What alerts say of a caption that was written: to whoever sees it now."""
        for watch in self.watches.values():
            meant = watch.collection == paper.collection and paper.source in (watch.streams or {paper.source})
            able = not self.users[watch.owner].disabled and self.sees_paper(watch.owner, paper)
            if meant and able and watch.query in {SEEN, *paper.words[:2]}:
                watch.told.add(paper.id)

    def drop_papers(self, gone: set[str]) -> None:
        """Forget documents."""
        self.papers = {name: paper for name, paper in self.papers.items() if name not in gone}
        for watch in self.watches.values():
            watch.told -= gone

    def drop_source(self, room: str, source: str) -> None:
        """Forget a source with all that is in it and was granted on it."""
        del self.rooms[room].sources[source]
        self.streams.pop(source, None)
        self.drop_papers({paper.id for paper in self.papers.values() if paper.source == source})
        self.grants = {key: role for key, role in self.grants.items() if key[1] != source}

    def drop_room(self, room: str) -> None:
        """Forget a collection."""
        for source in list(self.rooms[room].sources):
            self.drop_source(room, source)
        del self.rooms[room]
        self.watches = {name: watch for name, watch in self.watches.items() if watch.collection != room}
        self.grants = {key: role for key, role in self.grants.items() if key[0] != room}

    def drop_user(self, user: str, heir: User) -> None:
        """Forget a user; what it owned belongs to the heir."""
        name = self.users.pop(user).name
        self.watches = {alert: watch for alert, watch in self.watches.items() if watch.owner != user}
        for members in self.groups.values():
            members.discard(user)
        gone = Principal("user", user)
        self.grants = {key: role for key, role in self.grants.items() if key[2] != gone}
        for room in self.rooms.values():
            if room.owner == user:
                bare = room.name.removeprefix(f"{name}/")
                room.owner = heir.id
                room.name = bare if heir.id == LOCAL else f"{heir.name}/{bare}"

    def clash(self, user: str, heir: User) -> bool:
        """Whether the heir has a collection that is called like one of the user's."""
        name = self.users[user].name
        moved = {room.name.removeprefix(f"{name}/") for room in self.rooms.values() if room.owner == user}
        theirs = {room.name.partition("/")[2] for room in self.rooms.values() if room.owner == heir.id}
        return bool(moved & theirs)
