"""Users by agents by conversations by every method: nobody reads, counts or deletes what is another's."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from tests.agent_stores import SETTINGS, store
from tests.support.served import served

import conspectus
from conspectus.errors import InvalidInput, NotFound
from conspectus.facades.agent import AgentContext, AsyncAgentContext
from conspectus.model.graph import Fact
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

USERS = ("ada", "bob", None)
AGENTS = ("clerk", None)
TALKS = ("monday", "tuesday", None)
OWNERS = tuple(product(USERS, AGENTS, TALKS))
ASKING = tuple(
    pytest.param(owner, marks=pytest.mark.slow) if {"bob", "tuesday"} & {*owner} else owner
    for owner in OWNERS
)
"""In `make test` all but those who only differ by a name from Ada or Monday."""
OLD = datetime.now(UTC) - timedelta(days=100)
Read = Callable[[AgentContext, str], Any]


def owner_arguments(owner: tuple[str | None, ...]) -> dict[str, str | None]:
    return dict(zip(("user_id", "agent_id", "conversation_id"), owner, strict=True))


def secret(owner: tuple[str | None, ...]) -> str:
    """A word that only this owner's memory has."""
    return "".join((owner or "none").capitalize() for owner in owner)


def may_read(reader: tuple[str | None, ...], owner: tuple[str | None, ...]) -> bool:
    """What a scope reaches: its user's only, and of agents and conversations the one named, or any."""
    return reader[0] == owner[0] and all(
        part is None or part == has for part, has in zip(reader[1:], owner[1:], strict=True)
    )


def fill(context: AgentContext) -> dict[tuple[str | None, ...], str]:
    """One memory for each owner, alike but for the secret word, with a fact and a name."""
    return {
        owner: context.store(
            f"The password of the vault is {secret(owner)}.",
            fact=Fact("vault", "opens with", secret(owner)),
            entities=["vault", secret(owner)],
            timestamp=OLD,
            metadata={"secret": secret(owner)},
            **owner_arguments(owner),
        )
        for owner in OWNERS
    }


READS: dict[str, Read] = {
    "retrieve": lambda c, _: c.retrieve("What is the password of the vault?", 50),
    "retrieve by graph": lambda c, _: c.retrieve("vault", 50, alpha=1.0, max_hops=5),
    "retrieve without graph": lambda c, _: c.retrieve("password vault", 50, use_graph=False),
    "retrieve as of": lambda c, _: c.retrieve("password", 50, as_of=datetime.now(UTC)),
    "search": lambda c, _: c.search("password", 50),
    "find_similar": lambda c, _: c.find_similar("The password of the vault", 50),
    "find_by_entity": lambda c, _: c.find_by_entity("vault"),
    "window": lambda c, _: c.query_with_context("password of the vault", max_tokens=5_000)["context"],
    "list": lambda c, _: c.list(None),
    "get_recent": lambda c, _: c.get_recent(50),
    "get_by_date": lambda c, _: c.get_by_date(OLD, OLD + timedelta(days=1)),
    "history": lambda c, _: c.get_conversation_history(),
    "short_term": lambda c, _: [turn.content for turn in c.short_term(agent_id=c._inner.scope.agent)],
    "export": lambda c, _: c.export(),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingEngine]:
    with store(tmp_path_factory.mktemp("agent")) as opened:
        yield opened


@pytest.fixture(scope="module")
def filled(engine: BlockingEngine) -> dict[tuple[str | None, ...], str]:
    memory_ids = fill(AgentContext(engine))
    engine.documents.wait_until_embedded(collection="memory")
    engine.graph.wait_until_extracted(collection="memory")
    return memory_ids


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the memories of all that is closed, to be copied."""
    folder = tmp_path_factory.mktemp("written")
    with store(folder) as opened:
        fill(AgentContext(opened))
    return folder


@pytest.mark.parametrize("reader", ASKING, ids=secret)
@pytest.mark.parametrize("name", READS)
def test_reading_reaches_its_own_only(
    engine: BlockingEngine,
    filled: dict[tuple[str | None, ...], str],
    name: str,
    reader: tuple[str | None, ...],
) -> None:
    context = AgentContext(engine, short_term_limit=100, token_limit=5_000, **owner_arguments(reader))
    output = json.dumps(READS[name](context, ""), default=str)
    readable = {secret(owner) for owner in OWNERS if may_read(reader, owner)}
    others = {secret(owner) for owner in OWNERS} - readable
    assert {text for text in others if text in output} == set()
    assert {text for text in readable if text not in output} == set()


@pytest.mark.parametrize("reader", ASKING, ids=secret)
def test_numbers_are_of_its_own_only(
    engine: BlockingEngine, filled: dict[tuple[str | None, ...], str], reader: tuple[str | None, ...]
) -> None:
    context = AgentContext(engine, **owner_arguments(reader))
    readable = [owner for owner in OWNERS if may_read(reader, owner)]
    numbers = context.stats()
    assert (context.count(), numbers["memories"], numbers["facts"]) == (len(readable),) * 3
    listed = [
        (conversation["user_id"], conversation["agent_id"], conversation["conversation_id"])
        for conversation in context.list_conversations()
    ]
    assert sorted(map(str, listed)) == sorted(map(str, readable))
    assert context.count(metadata={"secret": secret(reader)}) == 1
    assert context.health()["memories"] == len(readable)


@pytest.mark.parametrize("reader", ASKING, ids=secret)
def test_ids_of_others_are_unknown(
    engine: BlockingEngine, filled: dict[tuple[str | None, ...], str], reader: tuple[str | None, ...]
) -> None:
    context = AgentContext(engine, **owner_arguments(reader))
    for owner, memory in filled.items():
        is_readable = may_read(reader, owner)
        assert context.exists(memory) is is_readable
        assert (context.get(memory) is not None) is is_readable
        assert bool(context.versions(memory)) is is_readable
        if not is_readable:
            assert context.update(memory, "Taken over.") is False
            assert (context.forget(memory), context.batch_delete([memory])) == (0, 0)
            assert context.batch_update([{"id": memory, "content": "Taken over."}]) == 0
            assert secret(owner) not in json.dumps(context.find_similar(memory, 50), default=str)
    assert AgentContext(engine).get(filled[None, None, None])["content"] != "Taken over."


def list_secrets(engine: BlockingEngine, owners: tuple[Any, ...]) -> set[str]:
    """The secrets that are still there."""
    context = AgentContext(engine)
    return {
        secret(owner)
        for owner in owners
        if context.count({"secret": secret(owner)}, **owner_arguments(owner))
    }


DELETES: dict[str, Read] = {
    "clear": lambda c, _: c.clear(),
    "forget by age": lambda c, _: c.forget(days_old=50),
    "forget before": lambda c, _: c.forget(before=datetime.now(UTC) - timedelta(days=50)),
    "retention": lambda c, _: AgentContext(
        c, retention_days=50, **owner_arguments(owner_of(c))
    ).apply_retention()["deleted"],
    "number": lambda c, _: AgentContext(c, max_memories=0, **owner_arguments(owner_of(c))).apply_retention()[
        "deleted"
    ],
}


def owner_of(context: AgentContext) -> tuple[str | None, ...]:
    scope = context._inner.scope
    return (scope.user, scope.agent, scope.conversation)


@pytest.mark.parametrize("reader", [("ada", "clerk", "monday"), ("ada", None, None), (None, None, "monday")])
@pytest.mark.parametrize("name", DELETES)
def test_deleting_reaches_its_own_only(
    written: Path, tmp_path: Path, name: str, reader: tuple[str | None, ...]
) -> None:
    with store(copytree(written, tmp_path / "store")) as engine:
        readable = {secret(owner) for owner in OWNERS if may_read(reader, owner)}
        assert DELETES[name](AgentContext(engine, **owner_arguments(reader)), "") == len(readable)
        assert list_secrets(engine, OWNERS) == {secret(owner) for owner in OWNERS} - readable


def test_a_conversation_and_a_user_go_alone(written: Path, tmp_path: Path) -> None:
    with store(copytree(written, tmp_path / "store")) as engine:
        context = AgentContext(engine)
        assert context.delete_conversation("monday", user_id="ada") == 2
        gone = {secret(("ada", agent, "monday")) for agent in AGENTS}
        assert list_secrets(engine, OWNERS) == {secret(owner) for owner in OWNERS} - gone
        assert context.forget(user_id="bob") == 6
        assert not any(owner.startswith("Bob") for owner in list_secrets(engine, OWNERS))
        assert len(list_secrets(engine, OWNERS)) == len(OWNERS) - 8


def test_names_are_told_apart_however_they_are_written(engine: BlockingEngine) -> None:
    odd = ("a", "a/b", "a%2Fb", "A", "a ", "ä", "a\u0308", "*", "..", "ad", "aa", "a.b", "a_b", "🎈")
    context = AgentContext(engine)
    stored = []
    for name in odd:
        try:
            context.store(f"of {name!r}", user_id=name, conversation_id=name)
        except InvalidInput:
            continue
        stored.append(name)
    assert {"a", "a/b", "a%2Fb", "A", "*", "..", "a_b", "🎈"} <= set(stored)
    for name in stored:
        assert [memory["content"] for memory in context.list(user_id=name)] == [f"of {name!r}"]
        assert [memory["content"] for memory in context.conversation(name, user_id=name)] == [f"of {name!r}"]
    for name in ("", " ", "x" * 1_000, "\x00"):
        with pytest.raises(InvalidInput):
            context.store("nobody's", user_id=name)


def test_lines_of_another_become_ones_own(engine: BlockingEngine) -> None:
    bob, eve = AgentContext(engine, user_id="bob the giver"), AgentContext(engine, user_id="eve")
    memory_id = bob.store("A gift.", conversation_id="a")
    assert eve.import_memories(bob.export()) == 1
    assert [memory["user_id"] for memory in eve.list()] == ["eve"]
    assert eve.clear() == 1 and bob.exists(memory_id)


def test_graphs_of_others_are_not_walked(engine: BlockingEngine) -> None:
    ada, bob = AgentContext(engine, user_id="ada walks"), AgentContext(engine, user_id="bob walks")
    ada.graph.add_nodes([{"id": "harbour", "content": "Ada hides gold at the harbour."}])
    bob.store("Nothing of note.")
    for context in (
        bob,
        AgentContext(engine),
        AgentContext(engine, user_id="ada walks", conversation_id="x"),
    ):
        assert "gold" not in json.dumps(
            context.retrieve("harbour", user_id=owner_of(context)[0]), default=str
        )
        assert context.graph.query("harbour") == []
        with pytest.raises(NotFound):
            context.get_neighbors("harbour")
    assert "gold" in json.dumps(ada.retrieve("harbour"), default=str)
    assert "gold" not in json.dumps(ada.retrieve("harbour", user_id="bob walks"), default=str)


async def test_on_a_server_it_is_no_different(tmp_path: Path) -> None:
    embedder = HashedEmbedder()
    async with (
        conspectus.open(tmp_path, settings=SETTINGS, embedder=embedder) as engine,
        served(application(engine, SETTINGS)) as url,
        conspectus.connect(url, settings=SETTINGS) as remote,
    ):
        everything = AsyncAgentContext(remote)
        memory_ids = {
            owner: await everything.store(f"The password is {secret(owner)}.", **owner_arguments(owner))
            for owner in OWNERS
        }
        for scope in (("ada", "clerk", "monday"), ("ada", None, None), (None, None, None)):
            context = AsyncAgentContext(remote, **owner_arguments(scope))
            readable = {secret(owner) for owner in OWNERS if may_read(scope, owner)}
            seen = [await context.retrieve("password", 50), await context.list(None), await context.export()]
            for output in (json.dumps(answer, default=str) for answer in seen):
                assert {secret(owner) for owner in OWNERS if secret(owner) in output} == readable
            assert await context.count() == len(readable)
            for owner, memory in memory_ids.items():
                assert await context.exists(memory) is may_read(scope, owner)
        ada = AsyncAgentContext(remote, user_id="ada", agent_id="clerk")
        assert await ada.batch_delete(memory_ids.values()) == 3
        assert await ada.clear() == 0
        assert [await everything.count(user_id=user) for user in USERS] == [3, 6, 6]


def test_conversations_of_one_name_are_told_apart(
    engine: BlockingEngine, filled: dict[tuple[str | None, ...], str], tmp_path: Path
) -> None:
    for user, agent, talk in OWNERS:
        if talk is None:
            continue
        context = AgentContext(engine, user_id=user, agent_id=agent)
        readable = {secret(owner) for owner in OWNERS if may_read((user, agent, talk), owner)}
        output = json.dumps([context.conversation(talk), context.get_conversation_history(talk)], default=str)
        assert {secret(owner) for owner in OWNERS if secret(owner) in output} == readable
        assert context.conversation_summary(talk)["memories"] == len(readable)
        assert context.save(tmp_path / secret((user, agent, talk)), conversation_id=talk) == len(readable)
        saved = (tmp_path / secret((user, agent, talk)) / "memories.jsonl").read_text("utf-8")
        assert {secret(owner) for owner in OWNERS if secret(owner) in saved} == readable


def test_every_method_that_reads_or_writes_is_in_the_matrix() -> None:
    written = Path(__file__).read_text(encoding="utf-8")
    elsewhere = {"close", "place", "owns", "flush", "get_memory", "short_term_memory", "store_vectors"}
    of_the_graph = {"link", "build_graph", "graph", "linker", "retriever"}
    same = {"batch_store", "export_to", "backup", "load", "prune", "retain"}
    public = {name for name in dir(AgentContext) if not name.startswith("_")}
    assert {name for name in public - elsewhere - of_the_graph - same if f".{name}(" not in written} == set()
