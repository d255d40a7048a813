"""Random histories of several people with memories and graphs, beside a plain model of who may see what."""

import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.support.permission_doing import outcome
from tests.support.permission_recorded import without_question

from conspectus.engine import Engine
from conspectus.model.access import Principal, Role
from conspectus.model.graph import Fact, GraphExpansion, Traversal
from conspectus.model.memory import MEMORY, MemorySelection, NewMemory, Scope

LETTERS = "bcdfghjkmpqrtvwx"
HUB = "Marta Keller"
MOST = 500
MAX_RECORDS = 25
View = Any
ROLES: tuple[Role, ...] = ("viewer", "editor")


@dataclass(slots=True)
class StoredMemory:
    """A memory that is stored, with the words that only it has, in its text and in its facts."""

    id: str
    home: str
    words: list[str]
    fact_words: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Member:
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
        self.people: list[Member] = []
        self.memories: list[StoredMemory] = []
        self.gone: list[str] = []
        self.homes: dict[str, Scope] = {}
        self.graphs: dict[str, str] = {}
        self._words = 0
        self._salt = "".join(self.chance.choices(LETTERS, k=5))
        self._instants: list[datetime] = []

    def new_word(self) -> str:
        """A name that nothing else has."""
        self._words += 1
        digits = "".join(LETTERS[int(digit)] for digit in f"{self._words:04d}")
        return f"Z{self._salt}{digits}z"

    async def begin(self) -> None:
        """A few people, and a few conversations of two users with a fact in each."""
        for _ in range(3):
            user = await self.owner.people.create_user(self.new_word())
            self.people.append(Member(user.id, await self._enter(user.id)))
        for number in range(4):
            scope = Scope(f"user{number // 2}", "bot", f"talk{number % 2}")
            [done] = await self.owner.memory.add("We begin.", scope=scope)
            home = (await self.owner.documents.get(done.id)).source
            self.homes[home] = scope
            self.memories.append(StoredMemory(done.id, home, []))
            await self._add_memory(self.owner, home)
        names = {f"graph/{scope.user}/bot/{scope.conversation}": home for home, scope in self.homes.items()}
        self.graphs = {
            names[graph.source.name]: graph.source.id
            for graph in await self.owner.graph.list(collection=MEMORY)
        }

    async def step(self) -> None:
        """One random thing."""
        usual: Sequence[Callable[[], Awaitable[None]]] = (
            self.grant_role, self.grant_role, self.revoke_role, self.add_memory, self.add_memory,
            self.update_memory, self.forget_memory,
        )  # fmt: skip
        await self.chance.choice(usual)()
        self._instants.append(datetime.now(UTC))

    async def grant_role(self) -> None:
        """Someone is granted a role on all, a conversation, or a graph."""
        who = self.chance.choice(self.people)
        where = self.chance.choice([None, *self.homes, *self.homes, *self.graphs.values()])
        role = self.chance.choice(ROLES)
        await self.owner.access.grant(MEMORY, Principal("user", who.id), role, source=where)
        who.roles[where] = role

    async def revoke_role(self) -> None:
        """A role is taken away."""
        who = self.chance.choice(self.people)
        if who.roles:
            where = self.chance.choice(list(who.roles))
            assert await self.owner.access.revoke(MEMORY, Principal("user", who.id), source=where)
            del who.roles[where]

    async def add_memory(self) -> None:
        """Someone has something remembered, where that is allowed."""
        who, home = self.chance.choice([None, *self.people]), self.chance.choice(list(self.homes))
        if who is None:
            await self._add_memory(self.owner, home)
        elif who.roles:
            await self._add_memory(
                who.view, home, may_write=who.edits(home), may_state=who.edits(self.graphs[home])
            )

    async def update_memory(self) -> None:
        """Someone changes a memory, where that is allowed; what it was stays as a version."""
        memory, who = self.chance.choice(self.memories), self.chance.choice(self.people)
        scope, word = self.homes[memory.home], self.new_word()
        done, _ = await outcome(who.view.memory.update(memory.id, scope=scope, text=f"Later {word} came by."))
        seen = who.sees(memory.home)
        assert done == ("ok" if who.edits(memory.home) else "PermissionDenied" if seen else "NotFound")
        (memory.words if done == "ok" else self.gone).append(word)

    async def forget_memory(self) -> None:
        """Someone forgets a memory, where that is allowed."""
        if len(self.memories) < 5:
            return
        memory, who = self.chance.choice(self.memories), self.chance.choice(self.people)
        if not who.roles:
            return
        scope = self.homes[memory.home]
        done, receipt = await outcome(who.view.memory.forget(MemorySelection(ids=(memory.id,)), scope=scope))
        if not who.sees(memory.home):
            assert (done, receipt.memories) == ("ok", 0)
        elif not who.edits(memory.home):
            assert done == "PermissionDenied"
        else:
            assert (done, receipt.ids) == ("ok", (memory.id,))
            self.memories.remove(memory)
            self.gone += [*memory.words, *memory.fact_words, memory.id]

    async def _add_memory(
        self, view: View, home: str, *, may_write: bool = True, may_state: bool = True
    ) -> None:
        word, named = self.new_word(), self.new_word()
        fact = Fact(HUB, "knows", f"{named} Nagy", single=self.chance.random() < 0.5)
        stating = self.chance.random() < 0.6 or not self.graphs
        new_memory = NewMemory(f"Today {HUB} met {word} Nagy.", fact=fact if stating else None)
        done, answer = await outcome(view.memory.add(new_memory, scope=self.homes[home]))
        if not may_write or (stating and not may_state):
            assert done in {"PermissionDenied", "NotFound"}
            self.gone += [word, named]
            return
        assert done == "ok", answer
        self.memories.append(StoredMemory(answer[0].id, home, [word], [named] if stating else []))

    def hidden_texts(self, who: Member) -> set[str]:
        """All that no answer to someone may hold."""
        secrets = set(self.gone)
        for memory in self.memories:
            if not who.sees(memory.home):
                secrets |= {*memory.words, memory.id}
                if not who.sees(self.graphs[memory.home]):
                    secrets |= set(memory.fact_words)
        for source in (*self.homes, *self.graphs.values()):
            if not who.sees(source):
                secrets.add(source)
        return secrets

    async def check_view(self) -> None:
        """Read all of it as one person: what was granted, and nothing else."""
        await self.owner.graph.wait_until_extracted(collection=MEMORY)
        who = self.chance.choice(self.people)
        answers = [*await self._collection_answers(who.view), *await self._graph_answers(who)]
        for home, scope in self.homes.items():
            answers += await self._memory_answers(who, home, scope)
        answers.append(await self._probe_secret(who))
        answers += await self._record_answers(who.view)
        text = _flatten(answers)
        leaked = [secret for secret in self.hidden_texts(who) if secret.casefold() in text]
        assert leaked == []
        everything = _flatten([*await self._collection_answers(self.owner), *await self._owner_answers()])
        assert [secret for secret in self.gone if secret.casefold() in everything] == []

    async def _collection_answers(self, view: View) -> list[Any]:
        location = {"collection": MEMORY}
        ask = GraphExpansion(hops=3)
        return [
            (await outcome(work))[1]
            for work in (
                view.collections.list_sources(**location),
                view.graph.list(**location),
                view.graph.list_entities(**location),
                view.documents.list(**location),
                view.documents.count(**location),
                view.retrieve(f"Whom did {HUB} meet?", graph=ask, **location),
                view.retrieve(f"Whom did {HUB} meet?", graph=ask, as_of=self._earlier_instant(), **location),
                view.graph.extract_entities(f"{HUB} was here", **location),
                view.retention.list(**location),
            )
        ]

    async def _owner_answers(self) -> list[Any]:
        """All that the owner sees of memories and graphs, as of several times too."""
        answers: list[Any] = []
        everything = Member("", self.owner, {None: "editor"})
        for home, scope in self.homes.items():
            answers += await self._memory_answers(everything, home, scope)
        answers += await self._record_answers(self.owner)
        return [*answers, *await self._graph_answers(everything)]

    async def _record_answers(self, view: View) -> list[Any]:
        """The newest answer records that a person may read, without what was asked."""
        page = await view.answers.list(limit=MAX_RECORDS)
        return [without_question(await view.answers.get(summary.id)) for summary in page.answers]

    async def _memory_answers(self, who: Member, home: str, scope: Scope) -> list[Any]:
        view, seen = who.view, who.sees(home)
        question = {
            "query": f"Whom did {HUB} meet today?",
            "scope": scope,
            "limit": 50,
            "graph": GraphExpansion(hops=3),
        }
        then = {"query": question["query"], "scope": scope, "limit": 50, "as_of": self._earlier_instant()}
        status, page = await outcome(view.memory.list(scope=scope, limit=MOST))
        assert status == ("ok" if who.roles else "NotFound")
        mine = [memory for memory in self.memories if memory.home == home]
        if status == "ok":
            assert {memory.id for memory in page.memories} == (
                {memory.id for memory in mine} if seen else set()
            )
            assert await view.memory.count(scope=scope) == (len(mine) if seen else 0)
            recalled = await view.memory.recall(**question)
            assert {hit.memory.id for hit in recalled.memories} <= {memory.id for memory in mine if seen}
        return [page] + [
            (await outcome(work))[1]
            for work in (
                view.memory.recall(**question),
                view.memory.recall(**then),
                view.memory.window(max_tokens=400, **question),
                view.memory.window(max_tokens=400, **then),
                view.memory.list_recent(scope=scope),
                view.memory.list_conversations(scope=Scope(scope.user)),
                view.memory.stats(scope=Scope(scope.user)),
                view.memory.export(scope=Scope(scope.user)),
            )
        ]

    async def _graph_answers(self, who: Member) -> list[Any]:
        answers = []
        for graph in self.graphs.values():
            location = {"graph": graph, "collection": MEMORY}
            ways = Traversal(hops=2, limit=MOST)
            for work in (
                who.view.graph.list_nodes(limit=MOST, **location),
                who.view.graph.list_edges(limit=MOST, **location),
                who.view.graph.neighbors("marta keller", ways, **location),
                who.view.graph.search_nodes("Nagy Keller", limit=MOST, **location),
                who.view.graph.snapshot(datetime.now(UTC), **location),
                who.view.graph.export(**location),
                who.view.graph.link_entities(f"{HUB} was here.", **location),
                who.view.graph.list_merges(**location),
            ):
                status, answer = await outcome(work)
                assert who.sees(graph) or status == "NotFound"
                answers.append(None if status == "NotFound" else answer)
        return answers

    async def _probe_secret(self, who: Member) -> Any:
        """What is hidden is asked for as what is nowhere is, and the answers are the same."""
        secret = [word for memory in self.memories if not who.sees(memory.home) for word in memory.words]
        if not secret or not who.roles:
            return None
        scope = self.chance.choice(list(self.homes.values()))
        answers = [
            await self._ask_about(who.view, scope, word)
            for word in (self.chance.choice(secret), self.new_word())
        ]
        assert answers[0] == answers[1]
        return answers[0]

    async def _ask_about(self, view: View, scope: Scope, word: str) -> str:
        text = f"Where is {word} Nagy?"
        answers = [
            await view.memory.recall(text, scope=scope),
            await view.retrieve(text, collection=MEMORY, graph=GraphExpansion()),
            await view.graph.list_entities(collection=MEMORY, prefix=word),
            await view.graph.extract_entities(text, collection=MEMORY),
        ]
        return _flatten(answers).replace(word.casefold(), "word")

    def _earlier_instant(self) -> datetime:
        return self.chance.choice(self._instants) if self._instants else datetime.now(UTC)


def _flatten(answers: Any) -> str:
    """All that was said, without how long it took."""
    return re.sub(r"timings=\{[^}]*\}", "", repr(answers)).casefold()
