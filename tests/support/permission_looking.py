"""Looking at a store as one person, by every method that reads: all that was granted, and nothing else."""

import re
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from conspectus.errors import ConspectusError
from conspectus.model.access import Principal
from conspectus.model.channels import NewMessage
from conspectus.model.filter import EVERYTHING, And, Eq, Exists, Filter, In, Not
from conspectus.model.query import Query, QueryContext
from conspectus.model.records import NewDocument
from tests.support.permission_doing import outcome
from tests.support.permission_model import RANK, Paper, Room, Visitor
from tests.support.permission_recorded import read_records
from tests.support.permission_remembering import of_memories
from tests.support.permission_watching import (
    Attempt,
    Watching,
    in_a_collection,
    on_a_stream,
    on_an_alert,
)

BUDGET = 300
ANSWER_ID = re.compile(r"answer='[0-9a-f-]{36}'")
"""The id of an answer record, which is another one each time."""


def on_a_collection(grantee: Principal) -> Mapping[str, Attempt]:
    """Every method that takes a collection which has to be there."""
    return {
        "find": lambda view, name: view.collections.get(name),
        "sources": lambda view, name: view.collections.list_sources(collection=name),
        "list": lambda view, name: view.documents.list(collection=name),
        "count": lambda view, name: view.documents.count(collection=name),
        "status": lambda view, name: view.maintenance.status(collection=name),
        "settle": lambda view, name: view.documents.wait_until_embedded(collection=name),
        "retrieve": lambda view, name: view.retrieve("anything", collection=name),
        "window": lambda view, name: view.window("anything", BUDGET, collection=name),
        "explain": lambda view, name: view.explain("anything", BUDGET, collection=name),
        "explain as": lambda view, name: view.search.explain_as("x", BUDGET, user="any", collection=name),
        "roles": lambda view, name: view.access.effective_roles("any", collection=name),
        "rerank": lambda view, name: view.search.search_and_rerank("anything", collection=name),
        "augment": lambda view, name: view.search.augment("anything", BUDGET, collection=name),
        "source": lambda view, name: view.collections.get_source("any", collection=name),
        "latest": lambda view, name: view.channels.list_messages(channel="any", collection=name),
        "by key": lambda view, name: view.documents.get_by_key("any", source="any", collection=name),
        "channel": lambda view, name: view.channels.window("x", BUDGET, channel="any", collection=name),
        "change": lambda view, name: view.collections.update(name, description="x"),
        "rename": lambda view, name: view.collections.update(name, name="x"),
        "delete": lambda view, name: view.collections.delete(name),
        "delete where": lambda view, name: view.documents.delete_by_filter(EVERYTHING, collection=name),
        "reindex": lambda view, name: view.maintenance.reindex(collection=name),
        "reembed": lambda view, name: view.maintenance.reembed("none", collection=name),
        "grants": lambda view, name: view.access.list_grants(name),
        "grant": lambda view, name: view.access.grant(name, grantee, "viewer"),
        "revoke": lambda view, name: view.access.revoke(name, grantee),
        "jobs": lambda view, name: view.jobs.list(collection=name),
        "connections": lambda view, name: view.connections.list(collection=name),
        "disconnect": lambda view, name: view.connections.delete("any", collection=name),
        "sync": lambda view, name: view.connections.sync("any", collection=name),
        "report": lambda view, name: view.jobs.report(collection=name),
    }


def on_a_source(grantee: Principal, room: Room) -> Mapping[str, Attempt]:
    """Every method that takes a source, in a collection of which something may be seen."""
    home = room.id
    return {
        "find": lambda view, name: view.collections.get_source(name, collection=home),
        "find by id": lambda view, name: view.collections.get_source(name),
        "make": lambda view, name: view.collections.get_or_create_source(name, collection=home),
        "change": lambda view, name: view.collections.get_or_create_source(
            name, collection=home, metadata={"a": 1}
        ),
        "rename": lambda view, name: view.collections.update_source(name, collection=home, name="x"),
        "delete": lambda view, name: view.collections.delete_source(name, collection=home),
        "add": lambda view, name: view.add("x", source=name, collection=home),
        "grants": lambda view, name: view.access.list_grants(home, source=name),
        "grant": lambda view, name: view.access.grant(home, grantee, "viewer", source=name),
        "revoke": lambda view, name: view.access.revoke(home, grantee, source=name),
        "list": lambda view, name: view.documents.list(collection=home, filter=Eq("source", name)),
        "count": lambda view, name: view.documents.count(collection=home, filter=Eq("source", name)),
        "delete where": lambda view, name: view.documents.delete_by_filter(
            Eq("source", name), collection=home
        ),
        "retrieve": lambda view, name: view.retrieve("x", collection=home, filter=Eq("source", name)),
        "window": lambda view, name: view.window("x", BUDGET, collection=home, filter=Eq("source", name)),
        "post": lambda view, name: view.channels.add_messages(NewMessage("x"), channel=name, collection=home),
        "latest": lambda view, name: view.channels.list_messages(channel=name, collection=home),
        "by key": lambda view, name: view.documents.get_by_key("any", source=name, collection=home),
        "channel": lambda view, name: view.channels.window("x", BUDGET, channel=name, collection=home),
        "situation": lambda view, name: view.retrieve("x", collection=home, query_context=QueryContext(name)),
    }


def on_a_document(room: Room, source: str) -> Mapping[str, Attempt]:
    """Every method that takes a document; the source is one that may be seen."""
    home = room.id
    return {
        "get": lambda view, name: view.documents.get(name),
        "text": lambda view, name: view.documents.get_text(name),
        "chunks": lambda view, name: view.documents.list_chunks(name),
        "chain": lambda view, name: view.channels.get_reply_chain(name),
        "texts": lambda view, name: view.documents.get_texts([name]),
        "update": lambda view, name: view.documents.update(name, title="x"),
        "expected": lambda view, name: view.documents.update(name, title="x", if_match="y"),
        "delete": lambda view, name: view.documents.delete(name),
        "delete chunks": lambda view, name: view.documents.delete_chunks(name),
        "explain": lambda view, name: view.explain("x", BUDGET, document=name, collection=home),
        "readers": lambda view, name: view.access.list_readers(name),
        "children": lambda view, name: view.documents.count(collection=home, filter=Eq("parent", name)),
        "adopt": lambda view, name: view.add(NewDocument("x", parent=name), source=source, collection=home),
        "list": lambda view, name: view.documents.list(collection=home, filter=In("document", (name,))),
        "delete where": lambda view, name: view.documents.delete_by_filter(
            Eq("document", name), collection=home
        ),
    }


def beside_documents() -> Mapping[str, Attempt]:
    """Every method that takes a collection of streams, memories or graphs."""
    return {**in_a_collection(), **of_memories()}


class Looking(Watching):
    """The same history, with looks at it in between."""

    async def look(self) -> None:
        """Read everything as one person, and pry into what is hidden from it."""
        who = self.visitor()
        view = await self.door.enter(who)
        if not who.has("read"):
            for attempt in (*on_a_collection(self._someone()).values(), *beside_documents().values()):
                outcome_name, _ = await outcome(attempt(view, self.ghost()))
                assert outcome_name == "PermissionDenied"
            return
        answers = [await self._all_collections(who, view)]
        for room in self._few(self.world.rooms.values(), 2):
            if self.world.sees_room(who.user.id, room.id):
                answers += await self._inside(who, view, room)
                await self._pry_into_sources(who, view, room)
            else:
                await self._pry(view, (room.id, room.name), on_a_collection(self._someone()))
                await self._pry(view, (room.id, room.name), beside_documents())
        for paper in self._few(self.world.papers.values(), 3):
            answers += await self._ask_about(who, view, paper)
        answers += await self.listen(who, view)
        answers += await self.watch(who, view)
        answers += await read_records(self.world, who, view, await self.door.enter(self.owner))
        await self.watch_in_part()
        await self._pry_into_alerts(who, view)
        if who.user.id != self.owner.user.id:
            await self._pry_into_people(who, view)
        self._none_hidden(who, answers)

    async def look_from_outside(self, user: Any) -> None:
        """A user who was shut out gets no answer at all."""
        outcome_name, _ = await outcome(self._entered_and_asked(Visitor(user, self.owner.scopes)))
        assert outcome_name == "Unauthenticated"

    async def _entered_and_asked(self, who: Visitor) -> Any:
        return await (await self.door.enter(who)).collections()

    async def _all_collections(self, who: Visitor, view: Any) -> Any:
        collections = await view.collections.list()
        user = who.user.id
        mine = {collection.id for collection in collections if collection.id in self.world.rooms}
        assert mine == {room for room in self.world.rooms if self.world.sees_room(user, room)}
        assert user == self.owner.user.id or len(mine) == len(collections)
        for each in collections:
            if each.id in mine and not self.world.rank(user, each.id):
                assert each.sequence == 0
        return collections

    async def _inside(self, who: Visitor, view: Any, room: Room) -> list[Any]:
        """What can be read of a collection of which something may be seen."""
        user, name = who.user.id, self.chance.choice([room.id, room.name])
        papers, parts = self.world.papers_seen(user, room.id), self.world.sources_seen(user, room.id)
        sources = await view.collections.list_sources(collection=name)
        assert {source.id for source in sources} == parts
        listed, cursor = [], None
        while True:
            page = await view.documents.list(
                collection=name, after=cursor, limit=self.chance.choice([1, 2, 50])
            )
            listed += page.documents
            cursor = page.next
            if cursor is None:
                break
        assert [document.id for document in listed] == list(dict.fromkeys(document.id for document in listed))
        assert {document.id for document in listed} == papers
        assert await view.documents.count(collection=name) == len(papers)
        where = self._condition(room)
        matching = await view.documents.list(collection=name, filter=where)
        assert await view.documents.count(collection=name, filter=where) == len(matching.documents)
        answers = [sources, listed, matching, await view.collections.get(name)]
        links = await view.connections.list(collection=name)
        assert {connection.name for connection in links} == (
            room.connections if self.world.rank(user, room.id) else set()
        )
        answers += [links, await view.jobs.list(collection=name), await view.jobs.report(collection=name)]
        return answers + await self._numbers(who, view, room) + await self._roles(who, view, room)

    async def _numbers(self, who: Visitor, view: Any, room: Room) -> list[Any]:
        """Only a collection of which everything may be seen has numbers."""
        user = who.user.id
        rank = self.world.rank(user, room.id)
        outcome_name, status = await outcome(view.maintenance.status(collection=room.id))
        assert outcome_name == ("ok" if rank else "PermissionDenied")
        if rank:
            [numbers] = status.collections
            inside = [paper for paper in self.world.papers.values() if paper.collection == room.id]
            assert (numbers.documents, numbers.sources) == (len(inside), len(room.sources))
        everything = await view.maintenance.status()
        named = {status.name for status in everything.collections}
        visible = {room.name for room in self.world.rooms.values() if self.world.rank(user, room.id)}
        assert named >= visible
        assert user == self.owner.user.id or named == visible
        return [status, everything]

    async def _roles(self, who: Visitor, view: Any, room: Room) -> list[Any]:
        """Only managers see who was granted what."""
        user = who.user.id
        part = self.chance.choice([None, *sorted(self.world.sources_seen(user, room.id))])
        outcome_name, grants = await outcome(view.access.list_grants(room.id, source=part))
        able = self.world.rank(user, room.id, part) >= RANK["manager"] and who.has("admin")
        assert outcome_name == ("ok" if able else "PermissionDenied")
        if able:
            here = [key for key in self.world.grants if key[0] == room.id and part in {None, key[1]}]
            assert {(grant.collection, grant.source, grant.grantee) for grant in grants} == set(here)
        return [grants]

    async def _ask_about(self, who: Visitor, view: Any, paper: Paper) -> list[Any]:
        """Look for a document by what only it holds, in every way there is."""
        word = self.chance.choice(paper.words[:3])
        seen = self.world.sees_paper(who.user.id, paper)
        only: Filter = Eq(("word",), paper.words[0])
        where = self.chance.choice([EVERYTHING, Not(Eq("source", self.ghost())), only])
        near = paper.collection if seen else "*"
        retrieval = await view.retrieve(Query(word, near, where, limit=self.chance.choice([10, 100])))
        broad = await view.retrieve(word, collection="*")
        window = await view.window(word, BUDGET, collection=near)
        augmented = await view.search.augment(word, BUDGET, min_similarity=0.0)
        reranked = await view.search.search_and_rerank(word, collection="*", filter=where)
        ids = {hit.document.id for hit in (*retrieval.hits, *broad.hits)}
        assert all(self._visible(who.user.id, document) for document in ids)
        if seen and word in paper.words[:2]:
            assert paper.id in ids
            assert word in window.text
        answers = [retrieval, broad, window, augmented, reranked]
        for room in self.world.rooms.values():
            if room.embeds and self.world.sees_room(who.user.id, room.id):
                answers.append(await view.retrieve(word, collection=room.id, retrievers=("vector",)))
        answers += await self._open(view, paper, word, seen=seen)
        if not seen:
            await self._pry_into_document(who, view, paper)
        return answers if seen else [_without(answer, word) for answer in answers]

    async def _open(self, view: Any, paper: Paper, word: str, *, seen: bool) -> list[Any]:
        answers = []
        for work in (
            view.documents.get(paper.id),
            view.documents.get_text(paper.id),
            view.documents.list_chunks(paper.id),
            view.explain(word, BUDGET, document=paper.id, collection="*"),
        ):
            outcome_name, answer = await outcome(work)
            assert outcome_name == ("ok" if seen else "NotFound")
            answers += [answer] if seen else []
        return answers

    async def _pry_into_document(self, who: Visitor, view: Any, paper: Paper) -> None:
        for room in self._few(self.world.rooms.values(), 4):
            parts = sorted(self.world.sources_seen(who.user.id, room.id))
            if parts:
                attempts = on_a_document(room, self.chance.choice(parts))
                await self._pry(view, (paper.id,), attempts)
                return

    async def _pry_into_sources(self, who: Visitor, view: Any, room: Room) -> None:
        parts = self.world.sources_seen(who.user.id, room.id)
        hidden = sorted(room.sources.keys() - parts)
        if hidden:
            names = (hidden[0], room.sources[hidden[0]])
            await self._pry(view, names, on_a_source(self._someone(), room))
            await self._pry(view, names, on_a_stream(room.id))
            for part in self._few(sorted(parts), 1):
                await self._same(view, names[1], partial(_rename, part))

    async def _pry_into_alerts(self, who: Visitor, view: Any) -> None:
        """Alerts of others are the others' to know."""
        hidden = [watch.id for watch in self.world.watches.values() if not self.knows(who, watch)]
        for alert in self._few(hidden, 1):
            await self._pry(view, (alert,), on_an_alert())

    async def _pry_into_people(self, who: Visitor, view: Any) -> None:
        """Accounts, groups and keys of others, which are the owner's to know."""
        other = self.chance.choice(list(self.world.users.values()))
        group = self.chance.choice(list(self.world.groups))
        attempts: Iterable[Attempt] = (
            lambda view, _: view.people.list_users(),
            lambda view, _: view.people.list_groups(),
            lambda view, name: view.people.get_user(name),
            lambda view, name: view.people.create_user(name),
            lambda view, name: view.people.set_user_disabled(name),
            lambda view, name: view.people.delete_user(name),
            lambda view, name: view.people.create_group(name),
            lambda view, name: view.people.list_members(name),
            lambda view, name: view.people.delete_group(name),
            lambda view, name: view.people.add_member(name, who.user.id),
            lambda view, _: view.maintenance.check(),
        )
        for attempt in self._few(attempts, 4):
            for name in (other.name, group, self.ghost()):
                assert (await outcome(attempt(view, name)))[0] == "PermissionDenied"
        if other.id != who.user.id:
            assert (await outcome(view.keys.list(other.name)))[0] == "PermissionDenied"
            assert (await outcome(view.keys.create(other.id)))[0] == "PermissionDenied"

    async def _pry(self, view: Any, names: tuple[str, ...], attempts: Mapping[str, Attempt]) -> None:
        for what in self._few(sorted(attempts), 5):
            await self._same(view, self.chance.choice(names), attempts[what])

    async def _same(self, view: Any, hidden: str, attempt: Attempt) -> None:
        """What is hidden answers as what does not exist, word for word."""
        ghost = self.ghost() if hidden.count("-") == 4 else self.word()
        answers = []
        for name in (hidden, ghost):
            outcome_name, answer = await outcome(attempt(view, name))
            answers.append((outcome_name, _told(answer).replace(name, "NAME")))
        assert answers[0] == answers[1], f"{answers[0]} is not {answers[1]}"
        assert answers[0][0] != "AttributeError"

    def _visible(self, user: str, document: str) -> bool:
        paper = self.world.papers.get(document)
        return self.world.sees_paper(user, paper) if paper else user == self.owner.user.id

    def _condition(self, room: Room) -> Filter:
        """A filter of the kind that might let something through."""
        parts = tuple(room.sources)
        some: list[Filter] = [Exists("source"), In("source", parts), Not(In("source", parts[:1])), And()]
        return self.chance.choice(some)


def _rename(part: str, view: Any, name: str) -> Awaitable[Any]:
    work: Awaitable[Any] = view.collections.update_source(part, name=name)
    return work


def _told(answer: Any) -> str:
    """What an answer says, apart from how long it took."""
    if isinstance(answer, ConspectusError):
        return f"{answer} {vars(answer)}"
    text = repr(replace(answer, timings={}) if hasattr(answer, "timings") else answer)
    return ANSWER_ID.sub("answer=''", text)


def _without(answer: Any, word: str) -> str:
    """An answer's words without the one that was asked for, which it may repeat."""
    return repr(answer).replace(word, "WORD")
