"""Random histories of several people with memories and graphs, beside a plain model of who may see what."""

import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.support.permission_doing import outcome

from conspectus.engine import Engine
from conspectus.model.access import Principal, Role
from conspectus.model.graph import Fact, GraphExpansion, Traversal
from conspectus.model.memory import MEMORY, MemorySelection, NewMemory, Scope

LETTERS = "bcdfghjkmpqrtvwx"
HUB = "Marta Keller"
MOST = 500
View = Any
ROLES: tuple[Role, ...] = ("viewer", "editor")


@dataclass(slots=True)
class Kept:
    """A memory that is stored, with the words that only it has, in its text and in its facts."""

    id: str
    home: str
    words: list[str]
    named: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Someone:
    """A person with the roles that were given: on the collection (None), or on sources of it."""

    id: str
    view: View
    roles: dict[str | None, Role] = field(default_factory=dict)

    def sees(self, source: str) -> bool:
        return None in self.roles or source in self.roles

    def edits(self, source: str) -> bool:
        return "editor" in {self.roles.get(None), self.roles.get(source)}


class Rooms:
    """One history, with looks at it in between."""

    def __init__(self, owner: Engine, enter: Callable[[str], Awaitable[View]], seed: int) -> None:
        self.owner = owner
        self._enter = enter
        self.chance = random.Random(seed)
        self.people: list[Someone] = []
        self.kept: list[Kept] = []
        self.gone: list[str] = []
        self.homes: dict[str, Scope] = {}
        self.graphs: dict[str, str] = {}
        self._words = 0
        self._salt = "".join(self.chance.choices(LETTERS, k=5))
        self._instants: list[datetime] = []

    def word(self) -> str:
        """A name that nothing else has."""
        self._words += 1
        digits = "".join(LETTERS[int(each)] for each in f"{self._words:04d}")
        return f"Z{self._salt}{digits}z"

    async def begin(self) -> None:
        """A few people, and a few conversations of two users with a fact in each."""
        for _ in range(3):
            user = await self.owner.people.create_user(self.word())
            self.people.append(Someone(user.id, await self._enter(user.id)))
        for number in range(4):
            scope = Scope(f"user{number // 2}", "bot", f"talk{number % 2}")
            [done] = await self.owner.memory.add("We begin.", scope=scope)
            home = (await self.owner.documents.get(done.id)).source
            self.homes[home] = scope
            self.kept.append(Kept(done.id, home, []))
            await self._remember(self.owner, home)
        names = {f"graph/{each.user}/bot/{each.conversation}": home for home, each in self.homes.items()}
        self.graphs = {
            names[each.source.name]: each.source.id for each in await self.owner.graph.list(collection=MEMORY)
        }

    async def step(self) -> None:
        """One random thing."""
        usual: Sequence[Callable[[], Awaitable[None]]] = (
            self.give, self.give, self.take, self.tell, self.tell, self.change, self.forget,
        )  # fmt: skip
        await self.chance.choice(usual)()
        self._instants.append(datetime.now(UTC))

    async def give(self) -> None:
        """Someone is granted a role on all, a conversation, or a graph."""
        who = self.chance.choice(self.people)
        where = self.chance.choice([None, *self.homes, *self.homes, *self.graphs.values()])
        role = self.chance.choice(ROLES)
        await self.owner.people.grant(MEMORY, Principal("user", who.id), role, source=where)
        who.roles[where] = role

    async def take(self) -> None:
        """A role is taken away."""
        who = self.chance.choice(self.people)
        if who.roles:
            where = self.chance.choice(list(who.roles))
            assert await self.owner.people.revoke(MEMORY, Principal("user", who.id), source=where)
            del who.roles[where]

    async def tell(self) -> None:
        """Someone has something remembered, where that is allowed."""
        who, home = self.chance.choice([None, *self.people]), self.chance.choice(list(self.homes))
        if who is None:
            await self._remember(self.owner, home)
        elif who.roles:
            await self._remember(who.view, home, able=who.edits(home), whole=who.edits(self.graphs[home]))

    async def change(self) -> None:
        """Someone changes a memory, where that is allowed; what it was stays as a version."""
        kept, who = self.chance.choice(self.kept), self.chance.choice(self.people)
        scope, word = self.homes[kept.home], self.word()
        done, _ = await outcome(who.view.memory.update(kept.id, scope=scope, text=f"Later {word} came by."))
        seen = who.sees(kept.home)
        assert done == ("ok" if who.edits(kept.home) else "PermissionDenied" if seen else "NotFound")
        (kept.words if done == "ok" else self.gone).append(word)

    async def forget(self) -> None:
        """Someone forgets a memory, where that is allowed."""
        if len(self.kept) < 5:
            return
        kept, who = self.chance.choice(self.kept), self.chance.choice(self.people)
        if not who.roles:
            return
        scope = self.homes[kept.home]
        done, told = await outcome(who.view.memory.forget(MemorySelection(ids=(kept.id,)), scope=scope))
        if not who.sees(kept.home):
            assert (done, told.memories) == ("ok", 0)
        elif not who.edits(kept.home):
            assert done == "PermissionDenied"
        else:
            assert (done, told.ids) == ("ok", (kept.id,))
            self.kept.remove(kept)
            self.gone += [*kept.words, *kept.named, kept.id]

    async def _remember(self, view: View, home: str, *, able: bool = True, whole: bool = True) -> None:
        word, named = self.word(), self.word()
        fact = Fact(HUB, "knows", f"{named} Nagy", single=self.chance.random() < 0.5)
        stating = self.chance.random() < 0.6 or not self.graphs
        told = NewMemory(f"Today {HUB} met {word} Nagy.", fact=fact if stating else None)
        done, answer = await outcome(view.memory.add(told, scope=self.homes[home]))
        if not able or (stating and not whole):
            assert done in {"PermissionDenied", "NotFound"}
            self.gone += [word, named]
            return
        assert done == "ok", answer
        self.kept.append(Kept(answer[0].id, home, [word], [named] if stating else []))

    def hidden(self, who: Someone) -> set[str]:
        """All that no answer to someone may hold."""
        found = set(self.gone)
        for each in self.kept:
            if not who.sees(each.home):
                found |= {*each.words, each.id}
                if not who.sees(self.graphs[each.home]):
                    found |= set(each.named)
        for source in (*self.homes, *self.graphs.values()):
            if not who.sees(source):
                found.add(source)
        return found

    async def look(self) -> None:
        """Read all of it as one person: what was granted, and nothing else."""
        await self.owner.graph.wait_until_extracted(collection=MEMORY)
        who = self.chance.choice(self.people)
        told = [*await self._collection(who.view), *await self._graphs(who)]
        for home, scope in self.homes.items():
            told += await self._memories(who, home, scope)
        told.append(await self._pried(who))
        said = _flat(told)
        leaked = [each for each in self.hidden(who) if each.casefold() in said]
        assert leaked == []
        everything = _flat([*await self._collection(self.owner), *await self._owners()])
        assert [each for each in self.gone if each.casefold() in everything] == []

    async def _collection(self, view: View) -> list[Any]:
        place = {"collection": MEMORY}
        ask = GraphExpansion(hops=3)
        return [
            (await outcome(work))[1]
            for work in (
                view.collections.list_sources(**place),
                view.graph.list(**place),
                view.graph.list_entities(**place),
                view.documents.list(**place),
                view.documents.count(**place),
                view.retrieve(f"Whom did {HUB} meet?", graph=ask, **place),
                view.retrieve(f"Whom did {HUB} meet?", graph=ask, as_of=self._then(), **place),
                view.graph.extract_entities(f"{HUB} was here", **place),
                view.retention.list(**place),
            )
        ]

    async def _owners(self) -> list[Any]:
        """All that the owner sees of memories and graphs, as of several times too."""
        told: list[Any] = []
        everything = Someone("", self.owner, {None: "editor"})
        for home, scope in self.homes.items():
            told += await self._memories(everything, home, scope)
        return [*told, *await self._graphs(everything)]

    async def _memories(self, who: Someone, home: str, scope: Scope) -> list[Any]:
        view, seen = who.view, who.sees(home)
        asked = {
            "query": f"Whom did {HUB} meet today?",
            "scope": scope,
            "limit": 50,
            "graph": GraphExpansion(hops=3),
        }
        then = {"query": asked["query"], "scope": scope, "limit": 50, "as_of": self._then()}
        found, page = await outcome(view.memory.list(scope=scope, limit=MOST))
        assert found == ("ok" if who.roles else "NotFound")
        mine = [each for each in self.kept if each.home == home]
        if found == "ok":
            assert {each.id for each in page.memories} == ({each.id for each in mine} if seen else set())
            assert await view.memory.count(scope=scope) == (len(mine) if seen else 0)
            recalled = await view.memory.recall(**asked)
            assert {each.memory.id for each in recalled.memories} <= {each.id for each in mine if seen}
        return [page] + [
            (await outcome(work))[1]
            for work in (
                view.memory.recall(**asked),
                view.memory.recall(**then),
                view.memory.window(max_tokens=400, **asked),
                view.memory.window(max_tokens=400, **then),
                view.memory.list_recent(scope=scope),
                view.memory.list_conversations(scope=Scope(scope.user)),
                view.memory.stats(scope=Scope(scope.user)),
                view.memory.export(scope=Scope(scope.user)),
            )
        ]

    async def _graphs(self, who: Someone) -> list[Any]:
        told = []
        for graph in self.graphs.values():
            place = {"graph": graph, "collection": MEMORY}
            ways = Traversal(hops=2, limit=MOST)
            for work in (
                who.view.graph.list_nodes(limit=MOST, **place),
                who.view.graph.list_edges(limit=MOST, **place),
                who.view.graph.neighbors("marta keller", ways, **place),
                who.view.graph.search_nodes("Nagy Keller", limit=MOST, **place),
                who.view.graph.snapshot(datetime.now(UTC), **place),
                who.view.graph.export(**place),
                who.view.graph.link_entities(f"{HUB} was here.", **place),
                who.view.graph.list_merges(**place),
            ):
                found, answer = await outcome(work)
                assert who.sees(graph) or found == "NotFound"
                told.append(None if found == "NotFound" else answer)
        return told

    async def _pried(self, who: Someone) -> Any:
        """What is hidden is asked for as what is nowhere is, and the answers are the same."""
        secret = [word for each in self.kept if not who.sees(each.home) for word in each.words]
        if not secret or not who.roles:
            return None
        scope = self.chance.choice(list(self.homes.values()))
        answers = [
            await self._asked_of(who.view, scope, word) for word in (self.chance.choice(secret), self.word())
        ]
        assert answers[0] == answers[1]
        return answers[0]

    async def _asked_of(self, view: View, scope: Scope, word: str) -> str:
        text = f"Where is {word} Nagy?"
        told = [
            await view.memory.recall(text, scope=scope),
            await view.retrieve(text, collection=MEMORY, graph=GraphExpansion()),
            await view.graph.list_entities(collection=MEMORY, prefix=word),
            await view.graph.extract_entities(text, collection=MEMORY),
        ]
        return _flat(told).replace(word.casefold(), "word")

    def _then(self) -> datetime:
        return self.chance.choice(self._instants) if self._instants else datetime.now(UTC)


def _flat(told: Any) -> str:
    """All that was said, without how long it took."""
    return re.sub(r"timings=\{[^}]*\}", "", repr(told)).casefold()
