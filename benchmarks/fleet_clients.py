"""The clients of a fleet of servers: their operations, and the checks of the answers."""

import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np

HOME = "shared"
USERS = 16
COMMON = "tides turn in the harbour while"
WORDS = ("gulls", "lamps", "ropes", "nets", "crates", "anchors", "sails", "storms", "charts", "buoys")
MARK = re.compile(r"q(\d+)v(\d+)s(\d+)")
OVERLOAD = frozenset({429, 503})
MEMORIES = 1_000
"""Source numbers from here on are those of a user's memories."""
KINDS: dict[str, int] = {
    "retrieve": 34, "context": 14, "add": 14, "update": 8, "delete": 5, "remember": 7, "recall": 7,
    "grant or revoke": 8, "new key": 3,
}  # fmt: skip

Mark = tuple[int, int, int]
"""A text: its number, its version, and the number of its source."""


def written(mark: Mark) -> str:
    """A text that names itself."""
    return f"q{mark[0]}v{mark[1]}s{mark[2]} {COMMON} {' '.join(random.sample(WORDS, 4))}"


@dataclass
class Truth:
    """The known state, with times; data that are being changed are in none of the fields."""

    revoked: dict[tuple[int, int], float] = field(default_factory=dict)
    granted: dict[tuple[int, int], float] = field(default_factory=dict)
    there: dict[Mark, float] = field(default_factory=dict)
    gone: dict[Mark, float] = field(default_factory=dict)
    unsure: set[int] = field(default_factory=set)
    wrongs: list[str] = field(default_factory=list)

    def hold(self, answer: str, user: int, begun: float, what: str) -> set[Mark]:
        """Note what an answer shows that it must not; the texts that it shows."""
        marks = {(int(n), int(v), int(s)) for n, v, s in MARK.findall(answer)}
        for mark in marks:
            if self.revoked.get((user, mark[2]), np.inf) <= begun:
                self.wrongs.append(f"{what} showed user {user} {mark}, which is not theirs to see")
            if self.gone.get(mark, np.inf) <= begun:
                self.wrongs.append(f"{what} showed user {user} {mark}, which was gone")
        return marks

    def since(self, user: int, mark: Mark) -> tuple[float, float]:
        """The time since which the text exists and the user may read it."""
        return self.there.get(mark, np.inf), self.granted.get((user, mark[2]), np.inf)


@dataclass
class Tally:
    """The results of the requests."""

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    faults: list[str] = field(default_factory=list)


@dataclass
class Fleet:
    """The servers, who may ask them, and what is known."""

    servers: Sequence[httpx.AsyncClient]
    owner: str
    users: Sequence[str]
    truth: Truth = field(default_factory=Truth)
    tally: Tally = field(default_factory=Tally)
    changing: set[tuple[int, int]] = field(default_factory=set)
    clients: list["Client"] = field(default_factory=list)
    numbers: int = 0

    async def ask(
        self, kind: str, method: str, path: str, key: str, *, expected: int = 0, **content: Any
    ) -> httpx.Response | None:
        """The response of any of the servers; None if there is none."""
        server = random.choice(self.servers)
        begun = time.perf_counter()
        try:
            answer = await server.request(
                method, f"/api/v1{path}", headers={"Authorization": f"Bearer {key}"}, **content
            )
        except httpx.HTTPError as fault:
            self.tally.statuses[kind][type(fault).__name__] += 1
            self.tally.faults.append(f"{kind}: {fault!r}")
            return None
        self.tally.times[kind].append((time.perf_counter() - begun) * 1_000)
        self.tally.statuses[kind][str(answer.status_code)] += 1
        if answer.is_success or answer.status_code == expected:
            return answer
        if answer.status_code not in OVERLOAD:
            self.tally.faults.append(f"{kind}: {answer.status_code} {answer.text[:300]}")
        return None


class Client:
    """One of many: a user who writes to a source and asks about all of them."""

    def __init__(self, fleet: Fleet, number: int, key: str, key_id: str) -> None:
        self.fleet, self.number = fleet, number
        self.user = number % USERS
        self.key, self.key_id = key, key_id
        self.own: list[tuple[str, Mark]] = []
        self.remembered: list[Mark] = []

    async def work(self, until: float) -> None:
        """One thing after the other."""
        doing: dict[str, Callable[[], Awaitable[None]]] = {
            "retrieve": self.retrieve, "context": self.context, "add": self.add, "update": self.update,
            "delete": self.delete, "remember": self.remember, "recall": self.recall,
            "grant or revoke": self.regrant, "new key": self.new_key,
        }  # fmt: skip
        chance = random.Random(self.number)
        while time.monotonic() < until:
            [kind] = chance.choices(list(KINDS), list(KINDS.values()))
            await doing[kind]()

    async def retrieve(self) -> None:
        """Search for one text that must be found, or for a word that all of them have."""
        truth, begun = self.fleet.truth, time.monotonic()
        mark = self._any_text() if random.random() < 0.7 else None
        before = (np.inf, np.inf) if mark is None else truth.since(self.user, mark)
        text = COMMON if mark is None else "q{}v{}s{}".format(*mark)
        body = {"query": text, "limit": 20, "collection": HOME}
        answer = await self.fleet.ask("retrieve", "POST", "/search", self.key, json=body)
        if answer is None:
            return
        marks = truth.hold(_found(answer), self.user, begun, "retrieve")
        if mark is None or mark in marks or max(before) > begun:
            return
        if truth.since(self.user, mark) == before:
            truth.wrongs.append(f"retrieve did not show user {self.user} {mark}, which was there")

    async def context(self) -> None:
        """Check a window over the readable texts."""
        begun = time.monotonic()
        query = f"{COMMON} {random.choice(WORDS)}"
        body = {"query": query, "collection": HOME, "max_tokens": 600}
        answer = await self.fleet.ask("context", "POST", "/context", self.key, json=body)
        if answer is not None:
            self.fleet.truth.hold(answer.text, self.user, begun, "context")

    async def add(self) -> None:
        """A text to the own source."""
        mark = self._next(self.number)
        body = {"documents": [{"text": written(mark)}], "source": f"s{self.number}"}
        path = f"/collections/{HOME}/documents"
        answer = await self.fleet.ask("add", "POST", path, self.key, json=body)
        if answer is None:
            self.fleet.truth.unsure.add(mark[0])
            return
        self.own.append((answer.json()[0]["id"], mark))
        self.fleet.truth.there[mark] = time.monotonic()

    async def update(self) -> None:
        """Another text in the place of an own one."""
        if not self.own:
            return
        index = random.randrange(len(self.own))
        document, old = self.own[index]
        new = (old[0], old[1] + 1, old[2])
        truth = self.fleet.truth
        truth.there.pop(old, None)
        body = {"text": written(new)}
        answer = await self.fleet.ask("update", "PATCH", f"/documents/{document}", self.key, json=body)
        if answer is None:
            truth.unsure.add(old[0])
            self.own.pop(index)
            return
        self.own[index] = (document, new)
        truth.gone[old] = truth.there[new] = time.monotonic()

    async def delete(self) -> None:
        """An own text, for good."""
        if len(self.own) < 4:
            return
        document, mark = self.own.pop(random.randrange(len(self.own)))
        truth = self.fleet.truth
        truth.there.pop(mark, None)
        answer = await self.fleet.ask("delete", "DELETE", f"/documents/{document}", self.key)
        if answer is None:
            truth.unsure.add(mark[0])
            return
        truth.gone[mark] = time.monotonic()

    async def remember(self) -> None:
        """Store a memory that no other user may see."""
        mark = self._next(MEMORIES + self.user)
        body = {"memories": [{"text": written(mark)}], "collection": f"m{self.user}", "user": "me"}
        answer = await self.fleet.ask("remember", "POST", "/memories", self.key, json=body)
        if answer is None:
            self.fleet.truth.unsure.add(mark[0])
            return
        self.remembered.append(mark)
        self.fleet.truth.there[mark] = time.monotonic()

    async def recall(self) -> None:
        """Check the memories, one of them by its name."""
        if not self.remembered:
            return
        mark, begun = random.choice(self.remembered), time.monotonic()
        body = {"query": "q{}v{}s{}".format(*mark), "collection": f"m{self.user}", "user": "me", "limit": 5}
        answer = await self.fleet.ask("recall", "POST", "/memories/recall", self.key, json=body)
        if answer is not None:
            truth = self.fleet.truth
            if mark not in truth.hold(answer.text, self.user, begun, "recall"):
                truth.wrongs.append(f"recall did not show user {self.user} {mark}, which was remembered")

    async def regrant(self) -> None:
        """Grant a user a source, or revoke it."""
        user, source = random.randrange(USERS), random.randrange(self.fleet.numbers)
        pair, truth = (user, source), self.fleet.truth
        if source % USERS == user or pair in self.fleet.changing:
            return
        self.fleet.changing.add(pair)
        grantee = {"kind": "user", "id": self.fleet.users[user]}
        path = f"/collections/{HOME}/grants"
        if truth.granted.pop(pair, None) is None:
            truth.revoked.pop(pair, None)
            body = {"grantee": grantee, "role": "viewer", "source": f"s{source}"}
            answer = await self.fleet.ask("grant or revoke", "PUT", path, self.fleet.owner, json=body)
            if answer is not None:
                truth.granted[pair] = time.monotonic()
        else:
            params = {**grantee, "source": f"s{source}"}
            answer = await self.fleet.ask("grant or revoke", "DELETE", path, self.fleet.owner, params=params)
            if answer is not None:
                truth.revoked[pair] = time.monotonic()
        self.fleet.changing.discard(pair)

    async def new_key(self) -> None:
        """Another key in the place of this one, which must be worth nothing from then on, anywhere."""
        fleet = self.fleet
        body = {"user": fleet.users[self.user], "scopes": ["read", "write", "admin"]}
        new_key = await fleet.ask("new key", "POST", "/keys", fleet.owner, json=body)
        if new_key is None:
            return
        old, old_id = self.key, self.key_id
        self.key, self.key_id = new_key.json()["secret"], new_key.json()["key"]["id"]
        if await fleet.ask("new key", "DELETE", f"/keys/{old_id}", fleet.owner) is None:
            return
        for _ in fleet.servers:
            answer = await fleet.ask("new key", "GET", "/me", old, expected=401)
            if answer is not None and answer.is_success:
                fleet.truth.wrongs.append(f"a key of user {self.user} let in after it was revoked")

    def _any_text(self) -> Mark | None:
        """A recently written text, readable or not."""
        lately = [mark for mark in list(self.fleet.truth.there)[-500:] if mark[2] < MEMORIES]
        return random.choice(lately) if lately else None

    def _next(self, source: int) -> Mark:
        Client.count += 1
        return (Client.count, 0, source)

    count = 0


def _found(answer: httpx.Response) -> str:
    """The passages of an answer, without the query that it may repeat."""
    return json.dumps([hit["chunk"]["text"] for hit in answer.json()["hits"]])
