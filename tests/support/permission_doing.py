"""What random people do to a store, every outcome foretold by the model of who may do it."""

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol
from uuid import UUID

from conspectus.errors import ConspectusError
from conspectus.model.access import ROLES, SCOPES, Principal, Scope, User
from conspectus.model.filter import EVERYTHING, Eq, Filter, In
from conspectus.model.ids import LOCAL
from conspectus.model.records import NewDocument
from tests.support.permission_model import GIVES, RANK, Paper, Room, Visitor, World

LETTERS = "bcdfghjkmpqrtvwxz"
SCOPE_SETS: tuple[tuple[Scope, ...], ...] = (SCOPES,) * 8 + (
    ("read",),
    ("read", "write"),
    ("read", "admin"),
    ("write", "admin"),
)


class Door(Protocol):
    """A way into a store: the engine itself, or a server in front of it. Views have the Engine's methods."""

    async def enter(self, visitor: Visitor) -> Any:
        """The store as that visitor may use it; of LOCAL, as the owner may."""
        ...


async def outcome(work: Awaitable[Any]) -> tuple[str, Any]:
    """What came of it: `ok` and the answer, or the name of the error and the error."""
    try:
        return "ok", await work
    except ConspectusError as fault:
        return type(fault).__name__, fault


class Doing:
    """One history: what people did, with the model of what there must be now."""

    def __init__(self, door: Door, owner: User, seed: int) -> None:
        self.door = door
        self.chance = random.Random(seed)
        self.world = World(users={owner.id: owner})
        self.owner = Visitor(owner, SCOPES)
        self._salt = "".join(self.chance.choices(LETTERS, k=6))
        self._words = 0

    def word(self) -> str:
        """A word that nothing else holds, and that is no part of another."""
        self._words += 1
        return f"z{self._salt}{self._words:05d}z"

    def ghost(self) -> str:
        """An id that nothing has."""
        return str(UUID(int=self.chance.getrandbits(128), version=5))

    def visitor(self) -> Visitor:
        """Someone who may come in, with a key for everything or for less."""
        able = [user for user in self.world.users.values() if not user.disabled]
        user = self.chance.choice(able)
        return self.owner if user.owner else Visitor(user, self.chance.choice(SCOPE_SETS))

    def guest(self, room: str, source: str) -> Visitor:
        """Anyone, but mostly someone who was granted something there, with a key for everything."""
        granted = [
            user
            for user in self.world.users.values()
            if not user.disabled and 0 < self.world.rank(user.id, room, source) < RANK["owner"]
        ]
        return Visitor(self.chance.choice(granted), SCOPES) if granted and self._often() else self.visitor()

    async def begin(self) -> None:
        """A few people with a few collections, so that there is something to hide from the first step on."""
        for _ in range(3):
            await self.come()
        for _ in range(2):
            await self.found_group()
        for _ in range(3):
            await self.open_room()
        for _ in range(6):
            await self.write()
        for _ in range(4):
            await self.give()

    async def step(self) -> None:
        """One random thing."""
        usual: Sequence[Callable[[], Awaitable[None]]] = (
            self.give, self.give, self.give, self.take, self.write, self.write, self.join, self.leave,
            self.open_room, self.shred, self.shred_matching, self.retitle, self.move, self.rename_part,
            self.connect,
        )  # fmt: skip
        rare = (self.come, self.go, self.disable, self.close_part, self.close_room, self.found_group)
        await self.chance.choice(rare if self.chance.random() < 0.12 else usual)()

    async def come(self) -> None:
        """A new user."""
        user = await (await self._as_owner()).people.create_user(self.word())
        self.world.users[user.id] = user

    async def go(self) -> None:
        """A user is deleted, and another one inherits."""
        leaving, heir = self._some_user(), self.chance.choice(list(self.world.users.values()))
        if leaving is None or leaving.id == heir.id:
            return
        expected = "Conflict" if self.world.clash(leaving.id, heir) else "ok"
        view = await self._as_owner()
        await self._expect(expected, view.people.delete_user(leaving.id, transfer_to=heir.name))
        if expected == "ok":
            self.world.drop_user(leaving.id, heir)

    async def disable(self) -> None:
        """A user is shut out, or let in again."""
        user = self._some_user()
        if user is not None:
            view = await self._as_owner()
            self.world.users[user.id] = await view.people.set_user_disabled(
                user.name, disabled=not user.disabled
            )

    async def found_group(self) -> None:
        """A new group."""
        group = await (await self._as_owner()).people.create_group(self.word())
        self.world.groups[group.id] = set()

    async def join(self) -> None:
        """Someone becomes a member."""
        group, user = self.chance.choice(list(self.world.groups)), self._some_user()
        if user is not None:
            await (await self._as_owner()).people.add_member(group, user.name)
            self.world.groups[group].add(user.id)

    async def leave(self) -> None:
        """Someone is no member any more."""
        group, user = self.chance.choice(list(self.world.groups)), self._some_user()
        if user is not None:
            await (await self._as_owner()).people.remove_member(group, user.name)
            self.world.groups[group].discard(user.id)

    async def open_room(self) -> None:
        """Someone makes a collection with two sources."""
        who, name, embeds = self.visitor(), self.word(), self.chance.random() < 0.3
        view = await self.door.enter(who)
        embedder = None if embeds else "none"
        expected = "ok" if who.has("read", "write") else "PermissionDenied"
        collection = await self._expect(expected, view.collections.create(name, embedder=embedder))
        if expected == "ok":
            room = self.world.rooms[collection.id] = Room(collection.id, collection.name, who.user.id, embeds)
            for _ in range(2):
                kind = self.chance.choice(["manual", "channel", "channel"])
                source = await view.collections.get_or_create_source(
                    self.word(), collection=room.id, kind=kind
                )
                room.sources[source.id] = source.name

    async def write(self) -> None:
        """Someone adds a document to a source, as a child of another one or not."""
        room = self._some_room()
        if room is None or not room.sources:
            return
        source = self.chance.choice(list(room.sources))
        who = self.guest(room.id, source)
        if not self.world.sees_room(who.user.id, room.id):
            return
        near = [paper.id for paper in self.world.papers.values() if paper.source == source]
        parent = self.chance.choice(near) if near and self.chance.random() < 0.3 else None
        allowed = who.has("read", "write") and self.world.rank(who.user.id, room.id, source) >= RANK["editor"]
        await self._add(who, Paper("", room.id, source, self.word(), parent, ()), allowed=allowed)

    async def shred(self) -> None:
        """Someone deletes a few documents, of which some may be hidden or not there."""
        papers = self._some_papers(2)
        who = self.guest(papers[0].collection, papers[0].source) if papers else self.visitor()
        ids = [paper.id for paper in papers] + [self.ghost()]
        await self._shred(who, set(ids), lambda view: view.documents.delete(ids))

    async def shred_matching(self) -> None:
        """Someone deletes what is in some sources, hidden ones among them, or holds some word."""
        who, room = self.visitor(), self._some_room()
        if room is None:
            return
        where, ids = self._matching(room)
        if who.has("read") and not self.world.sees_room(who.user.id, room.id):
            view = await self.door.enter(who)
            await self._expect("NotFound", view.documents.delete_by_filter(where, collection=room.id))
            return
        await self._shred(who, ids, lambda view: view.documents.delete_by_filter(where, collection=room.id))

    async def retitle(self) -> None:
        """Someone gives a document another title."""
        word = self.word()
        for paper in self._some_papers(1):
            who = self.guest(paper.collection, paper.source)
            rank = self.world.rank(who.user.id, paper.collection, paper.source)
            expected = self._judged(who, seen=rank > 0, able=rank >= RANK["editor"], scope="write")
            view = await self.door.enter(who)
            await self._expect(expected, view.documents.update(paper.id, title=word))
            if expected == "ok":
                paper.words += (word,)

    async def move(self) -> None:
        """A document goes to another source; a message under another key, as its replies name the old one."""
        room = self._some_room()
        for paper in self._some_papers(1):
            if room is None or not room.sources:
                return
            await (await self._as_owner()).documents.delete(paper.id)
            self.world.drop_papers(self.world.tree({paper.id}))
            target = self.chance.choice(list(room.sources))
            key, words = (self.word(), paper.words[:3]) if paper.message else (paper.key, paper.words)
            moved = Paper("", room.id, target, key, None, words)
            await self._add(self.owner, moved, allowed=True)

    async def rename_part(self) -> None:
        """Someone gives a source another name."""
        room, name = self._some_room(), self.word()
        if room is None or not room.sources:
            return
        source = self.chance.choice(list(room.sources))
        who = self.guest(room.id, source)
        rank = self.world.rank(who.user.id, room.id, source)
        able = self.world.rank(who.user.id, room.id) >= RANK["manager"]
        expected = self._judged(who, seen=rank > 0, able=able, scope="write")
        view = await self.door.enter(who)
        await self._expect(expected, view.collections.update_source(source, name=name))
        if expected == "ok":
            room.sources[source] = name

    async def connect(self) -> None:
        """Someone connects a collection with a wiki."""
        room, name = self._some_room(), self.word()
        if room is None or not room.sources:
            return
        who = self.guest(room.id, self.chance.choice(list(room.sources)))
        if not self.world.sees_room(who.user.id, room.id):
            return
        able = self.world.rank(who.user.id, room.id) >= RANK["manager"]
        expected = self._judged(who, seen=True, able=able, scope="write")
        view = await self.door.enter(who)
        options = {"address": "https://wiki.example/api.php"}
        await self._expect(expected, view.connections.create(name, "mediawiki", options, collection=room.id))
        if expected == "ok":
            room.connections.add(name)

    async def close_part(self) -> None:
        """Someone deletes a source."""
        room = self._some_room()
        if room is None or not room.sources:
            return
        source = self.chance.choice(list(room.sources))
        who = self.guest(room.id, source)
        rank = self.world.rank(who.user.id, room.id, source)
        expected = self._judged(who, seen=rank > 0, able=rank >= RANK["manager"], scope="write")
        view = await self.door.enter(who)
        await self._expect(expected, view.collections.delete_source(source))
        if expected == "ok":
            self.world.drop_source(room.id, source)

    async def close_room(self) -> None:
        """Someone deletes a collection."""
        who, room = self.visitor(), self._some_room()
        if room is None:
            return
        able = self.world.rank(who.user.id, room.id) >= RANK["owner"]
        seen = self.world.sees_room(who.user.id, room.id)
        expected = self._judged(who, seen=seen, able=able, scope="write")
        view = await self.door.enter(who)
        await self._expect(expected, view.collections.delete(room.id))
        if expected == "ok":
            self.world.drop_room(room.id)

    async def give(self) -> None:
        """Someone gives someone a role."""
        room, whom, role = self._some_room(), self._someone(), self.chance.choice(ROLES)
        if room is None:
            return
        host = self.world.users[room.owner]
        who = self.visitor() if host.disabled or not self._often() else Visitor(host, SCOPES)
        part = self.chance.choice([None, *room.sources])
        expected = self._may_change(who, room, part, whom, rank=RANK[role])
        view = await self.door.enter(who)
        await self._expect(expected, view.access.grant(room.id, whom, role, source=part))
        if expected == "ok":
            self.world.grants[room.id, part, whom] = role

    async def take(self) -> None:
        """Someone takes a role from someone, who may not have any."""
        who, room, whom = self.visitor(), self._some_room(), self._someone()
        grants = list(self.world.grants)
        if room is None:
            return
        part = self.chance.choice([None, *room.sources])
        if grants and self.chance.random() < 0.7:
            number, part, whom = self.chance.choice(grants)
            room = self.world.rooms[number]
        expected = self._may_change(who, room, part, whom, rank=1)
        view = await self.door.enter(who)
        revoked = await self._expect(expected, view.access.revoke(room.id, whom, source=part))
        if expected == "ok":
            assert revoked == ((room.id, part, whom) in self.world.grants)
            self.world.grants.pop((room.id, part, whom), None)

    def _may_change(self, who: Visitor, room: Room, part: str | None, whom: Principal, *, rank: int) -> str:
        """What comes of changing a grantee's role to or from a rank."""
        own_rank = self.world.rank(who.user.id, room.id, part)
        seen = self.world.sees_room(who.user.id, room.id) and (part is None or own_rank > 0)
        judged = self._judged(who, seen=seen, able=GIVES[own_rank] >= max(rank, 1), scope="admin")
        if who.has("read") and not who.has("admin") and self.world.sees_room(who.user.id, room.id):
            return "PermissionDenied"
        if judged != "ok" or whom == Principal("user", room.owner):
            return judged if judged != "ok" else "Conflict"
        current = self.world.grants.get((room.id, part, whom))
        return "ok" if current is None or GIVES[own_rank] >= RANK[current] else "PermissionDenied"

    def _judged(self, who: Visitor, *, seen: bool, able: bool, scope: Scope) -> str:
        if not who.has("read"):
            return "PermissionDenied"
        if not seen:
            return "NotFound"
        return "ok" if able and who.has(scope) else "PermissionDenied"

    async def _shred(self, who: Visitor, ids: set[str], work: Callable[[Any], Awaitable[Any]]) -> None:
        user = who.user.id
        papers = [self.world.papers[name] for name in ids if name in self.world.papers]
        seen = [paper for paper in papers if self.world.sees_paper(user, paper)]
        able = all(self.world.rank(user, paper.collection, paper.source) >= RANK["editor"] for paper in seen)
        expected = "ok" if able and who.has("read", "write") else "PermissionDenied"
        receipt = await self._expect(expected, work(await self.door.enter(who)))
        if expected == "ok":
            gone = self.world.tree({paper.id for paper in seen})
            assert receipt.documents == len(gone)
            self.world.drop_papers(gone)

    def _matching(self, room: Room) -> tuple[Filter, set[str]]:
        """A filter, and the documents of the collection that it matches."""
        inside = [paper for paper in self.world.papers.values() if paper.collection == room.id]
        if inside and self.chance.random() < 0.5:
            chosen = self.chance.choice(inside)
            return Eq(("word",), chosen.words[0]), {chosen.id}
        if self.chance.random() < 0.3:
            return EVERYTHING, {paper.id for paper in inside}
        parts = self.chance.sample(list(room.sources), min(1, len(room.sources)))
        return In("source", (*parts, self.ghost())), {paper.id for paper in inside if paper.source in parts}

    async def _add(self, who: Visitor, paper: Paper, *, allowed: bool) -> None:
        words = paper.words or (self.word(), self.word(), self.word())
        text, title, metadata = f"Of {words[0]} and {words[1]}.", f"On {words[2]}", {"word": words[0]}
        thread = paper.source if self.chance.random() < 0.5 else None
        new = NewDocument(
            text, title, key=paper.key, metadata=metadata, parent=paper.parent, thread=thread, author=words[1]
        )
        view = await self.door.enter(who)
        waits = self.world.rooms[paper.collection].embeds
        work = view.add(new, source=paper.source, collection=paper.collection, wait=waits)
        written = await self._expect("ok" if allowed else self._refused(who, paper), work)
        if allowed:
            paper.id, paper.words = written[0].id, (*words, paper.key)
            self.world.papers[paper.id] = paper

    def _refused(self, who: Visitor, paper: Paper) -> str:
        """How a write into a source of a visible collection is refused: a hidden source is not found."""
        hidden = not self.world.rank(who.user.id, paper.collection, paper.source)
        return "NotFound" if hidden and who.has("read", "write") else "PermissionDenied"

    async def _expect(self, expected: str, work: Awaitable[Any]) -> Any:
        outcome_name, answer = await outcome(work)
        assert outcome_name == expected, f"{outcome_name} ({answer!r}) instead of {expected}"
        return answer

    async def _as_owner(self) -> Any:
        return await self.door.enter(self.owner)

    def _often(self) -> bool:
        return self.chance.random() < 0.6

    def _some_user(self) -> User | None:
        users = [user for user in self.world.users.values() if user.id != LOCAL]
        return self.chance.choice(users) if users else None

    def _someone(self) -> Principal:
        users = [user for user in self.world.users if user != LOCAL]
        principals = [Principal("user", user) for user in users] * 2
        return self.chance.choice(principals + [Principal("group", group) for group in self.world.groups])

    def _some_room(self) -> Room | None:
        rooms = list(self.world.rooms.values())
        return self.chance.choice(rooms) if rooms else None

    def _some_papers(self, maximum: int) -> list[Paper]:
        papers = list(self.world.papers.values())
        return self.chance.sample(papers, min(maximum, len(papers)))
