"""Random histories of permissions: after every step, each person reads what the server lets them read.

Each page has a word of its own, the mark, which its text has alone. What a person reads is the marks that a
way to read shows.
"""

import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from conspectus.connectors import EVERYONE
from conspectus.deferred import dataclass
from conspectus.engine.engine import Engine
from conspectus.errors import NotFound
from conspectus.model.access import LOCAL_OWNER, Person, Principal
from conspectus.testing.connectors.servers import GuardedServer, Interruptible
from conspectus.testing.connectors.synced_collections import COLLECTION, CONNECTION, SyncedCollection

SPACES: Final = ("Main", "Other")
NAMES: Final = tuple(f"page{number}" for number in range(6))
MARK: Final = re.compile(r"mark\d+")
WINDOW_TOKENS: Final = 10_000
NOBODY: Final = ("nobody mapped", "owner account")
"""Views of people whom the owner account mapped to nobody at the remote: they read nothing."""


@dataclass(slots=True)
class Tally:
    """Counts of comparisons of what is shown with the answers of the server.

    Args:
        comparisons: pairs of a person and a page, times the ways to read.
        after_change: those of pairs whose answer has changed with the last step.
        leaks: what was shown and not allowed, at most a few examples.
        over_hidings: what was allowed and not shown.
        revocations: pairs that were revoked.
        seconds: from each change to the end of its sync, the longest.
        requests: requests of the connector, if the server counts them.
    """

    comparisons: int = 0
    after_change: int = 0
    leaks: list[str] = field(default_factory=list)
    over_hidings: list[str] = field(default_factory=list)
    revocations: int = 0
    seconds: float = 0.0
    requests: int = 0


@dataclass(slots=True)
class PermissionHistory:
    """A server, the collection that mirrors it, and the views of its people."""

    synced: SyncedCollection
    remote: GuardedServer
    dice: random.Random
    views: dict[str, Engine] = field(default_factory=dict)
    pages: dict[str, str] = field(default_factory=dict)
    """The spaces of the pages that exist, by name."""
    marks: dict[str, str] = field(default_factory=dict)
    answers: dict[tuple[str, str], bool] = field(default_factory=dict)
    """The last answers of the server, by person and mark."""
    synced_marks: dict[str, str] = field(default_factory=dict)
    """The marks of the pages that the last sync has stored, by name."""
    untouched: set[str] = field(default_factory=set)
    """Names of the pages that were not written, moved or deleted since the last sync."""
    documents: set[str] = field(default_factory=set)
    windows: dict[str, str] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)

    async def admit_people(self) -> None:
        """Map all people of the remote but the last to users, with the role that reads everything here."""
        owner = self.synced.owner
        for name in (*self.remote.people[:-1], NOBODY[0]):
            user = await owner.people.create_user(re.sub(r"\W", "-", name))
            await owner.access.grant(COLLECTION, Principal("user", user.id), "manager")
            if name in self.remote.people:
                await owner.connections.map_person(CONNECTION, name, user.id, collection=COLLECTION)
            self.views[name] = owner.as_person(Person(user.name, id=user.id))
        self.views[NOBODY[1]] = owner.as_person(LOCAL_OWNER)

    async def change(self) -> None:
        """Make one random change at the server, as its users may."""
        viewers = frozenset(
            name
            for name in (*self.remote.people, *self.remote.groups, EVERYONE)
            if self.dice.random() < (0.1 if name == EVERYONE else 0.3)
        )
        name = self.dice.choice(NAMES)
        space = self.pages.get(name)
        match self.dice.randrange(8):
            case 0 if self.remote.groups:
                await self.remote.set_members(self.dice.choice(self.remote.groups), viewers - {EVERYONE})
            case 1 if space is not None:
                await self.remote.delete(space, name)
                self.untouched.discard(name)
                del self.pages[name], self.marks[name]
            case 2 if space is not None:
                self.untouched.discard(name)
                self.pages[name] = self.dice.choice(SPACES)
                if self.pages[name] != space:
                    await self.remote.move(space, name, to_space=self.pages[name], to_name=name)
            case 3 | 4 | 5 if space is not None:
                await self.remote.share(space, name, viewers)
            case _:
                await self._write(name, space or self.dice.choice(SPACES), viewers)

    async def _write(self, name: str, space: str, viewers: frozenset[str]) -> None:
        """Make a page, or change its text and its viewers."""
        self.untouched.discard(name)
        if name not in self.pages:
            self.marks[name] = f"mark{self.tally.comparisons}{self.dice.randrange(10**6):06}"
        self.pages[name] = space
        nights = self.dice.randrange(100)
        await self.remote.put(space, name, f"The lantern {self.marks[name]} has oil for {nights} nights.")
        await self.remote.share(space, name, viewers)

    async def compare(self) -> None:
        """Compare each way to read with the answers of the server, and count."""
        answers = await self._ask_server()
        changed = {pair for pair, answer in answers.items() if self.answers.get(pair, False) != answer}
        revoked = {pair for pair, answer in self.answers.items() if answer and not answers.get(pair, False)}
        self.tally.revocations += len(revoked)
        for person in self.views:
            allowed = {mark for mark in self.marks.values() if answers.get((person, mark), False)}
            for way, marks in (await self.read(person)).items():
                self.tally.leaks += [f"{person} by {way}: {mark}" for mark in sorted(marks - allowed)]
                self.tally.over_hidings += [f"{person} by {way}: {mark}" for mark in sorted(allowed - marks)]
                self.tally.comparisons += len(self.marks)
                self.tally.after_change += sum(1 for name, _ in changed | revoked if name == person)
        self.answers = answers
        self.synced_marks, self.untouched = dict(self.marks), set(self.pages)

    async def compare_before_sync(self) -> None:
        """Compare what is shown before the next sync with the answers of the server, and count.

        Only what the last sync has stored can be shown. What may be opened no more is hidden, and what did
        not change stays. The former text of a page that was made again is that of an earlier revision.
        """
        answers = await self._ask_server()
        former = {
            self.synced_marks[name]
            for name in self.pages
            if name in self.synced_marks and self.synced_marks[name] != self.marks[name]
        }
        unchanged = {self.marks[name] for name in self.untouched}
        revoked = {pair for pair, answer in self.answers.items() if answer and not answers.get(pair, False)}
        self.tally.revocations += len(revoked)
        for person in self.views:
            allowed = {mark for mark in self.marks.values() if answers.get((person, mark), False)}
            needed = {mark for mark in allowed & unchanged if self.answers.get((person, mark), False)}
            for way, marks in (await self.read(person)).items():
                leaks, hidden = sorted(marks - allowed - former), sorted(needed - marks)
                self.tally.leaks += [f"{person} by {way}, not synced: {mark}" for mark in leaks]
                self.tally.over_hidings += [f"{person} by {way}, not synced: {mark}" for mark in hidden]
                self.tally.comparisons += len(self.marks)
                self.tally.after_change += sum(1 for name, _ in revoked if name == person)

    async def _ask_server(self) -> dict[tuple[str, str], bool]:
        return {
            (person, self.marks[name]): await self.remote.may_read(person, space, name)
            for person in self.remote.people
            for name, space in self.pages.items()
        }

    async def read(self, person: str) -> Mapping[str, set[str]]:
        """The marks that each way to read shows to a person."""
        view = self.views[person]
        retrieval = await view.search.retrieve("lantern", collection=COLLECTION, limit=100)
        window = await view.window("lantern", WINDOW_TOKENS, collection=COLLECTION)
        former = self.windows.get(person, window.state)
        followed = await view.window("lantern", WINDOW_TOKENS, collection=COLLECTION, previous=former)
        self.windows[person] = followed.state
        page = await view.documents.list(collection=COLLECTION, limit=1_000)
        grep = await view.files.grep("lantern", path=f"/{COLLECTION}")
        exported = await view.documents.export(collection=COLLECTION)
        explained = await view.search.explain("lantern", WINDOW_TOKENS, collection=COLLECTION)
        texts = await view.documents.get_texts([document.id for document in page.documents])
        readable = await self._read_by_id(view, [document.id for document in page.documents])
        return {
            "search": marks_in([hit.text for hit in retrieval.hits]),
            "window": marks_in([window.text]),
            "window that goes on": marks_in([followed.text]),
            "listed texts": marks_in(list(texts.values())),
            "texts by id": marks_in(readable),
            "grep": marks_in([repr(grep)]),
            "export": marks_in([repr(exported)]),
            "why not": marks_in([explained.text, repr(explained.trace)]),
        }

    async def _read_by_id(self, view: Engine, listed: Sequence[str]) -> list[str]:
        """Return what a person reads of all documents whose ids anybody has ever seen."""
        self.documents |= set(listed)
        texts: list[str] = []
        for document in sorted(self.documents):
            try:
                texts.append(await view.documents.get_text(document))
            except NotFound:
                continue
        return texts

    async def step(self, changes: int, *, verifies: bool = False) -> None:
        """Make changes, compare before the sync if the connector verifies, sync, and compare."""
        for _ in range(changes):
            await self.change()
        if verifies:
            await self.compare_before_sync()
        begin = time.perf_counter()
        before = self.remote.requests if isinstance(self.remote, Interruptible) else 0
        await self.synced.sync_fully()
        after = self.remote.requests if isinstance(self.remote, Interruptible) else 0
        self.tally.requests += after - before
        self.tally.seconds = max(self.tally.seconds, time.perf_counter() - begin)
        await self.compare()


def marks_in(texts: Sequence[str]) -> set[str]:
    """Return the marks in texts."""
    return {mark for text in texts for mark in MARK.findall(text)}
