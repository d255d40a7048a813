"""Two engines on one PostgreSQL: what one changes, the other knows when it is asked the next time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.errors import NotFound, Unauthenticated
from conspectus.model.access import Principal
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), log_level="critical", database_connections=4)
Two: TypeAlias = tuple[Engine, Engine]
ADA = Principal("user", "ada")


@pytest.fixture(params=["off", "on"], ids=["plain", "walled"])
async def engines(request: pytest.FixtureRequest, postgres_url: str, tmp_path: Path) -> AsyncIterator[Two]:
    """As two processes have them: they share the database and nothing else."""
    async with AsyncExitStack() as opened:
        both = []
        for name in ("one", "two"):
            cache = str(tmp_path / name)
            settings = replace(SETTINGS, cache=cache, row_security=request.param)
            engine = conspectus.open(postgres_url, settings=settings, embedder=HashedEmbedder())
            both.append(await opened.enter_async_context(engine))
        yield both[0], both[1]


async def find_everywhere(engine: Engine, question: str, collection: str) -> list[str]:
    """The texts of what is found, everywhere that a question looks."""
    hits = (await engine.retrieve(question, collection=collection)).hits
    return sorted(hit.chunk.text for hit in hits)


async def test_keys_and_accounts_end_for_the_next_request(engines: Two) -> None:
    one, two = engines
    await one.people.create_user("ada")
    first, second = [await one.keys.create("ada") for _ in range(2)]
    for _ in range(2):
        assert (await two.keys.authenticate(first.secret)).name == "ada"
    await one.keys.revoke(first.key.id)
    with pytest.raises(Unauthenticated):
        await two.keys.authenticate(first.secret)
    assert (await two.keys.authenticate(second.secret)).name == "ada"
    await one.people.set_user_disabled("ada")
    with pytest.raises(Unauthenticated):
        await two.keys.authenticate(second.secret)
    await one.people.set_user_disabled("ada", disabled=False)
    assert (await two.keys.authenticate(second.secret)).name == "ada"
    await one.people.delete_user("ada")
    with pytest.raises(Unauthenticated):
        await two.keys.authenticate(second.secret)


async def test_grants_and_memberships_hold_for_the_next_question(engines: Two) -> None:
    one, two = engines
    await one.people.create_user("ada")
    ada = two.as_person(await two.keys.authenticate((await one.keys.create("ada")).secret))
    await one.add([NewDocument("an open word", key="a")], source="open", collection="wiki", wait=True)
    await one.add([NewDocument("a secret word", key="b")], source="secret", collection="wiki", wait=True)
    for _ in range(2):
        with pytest.raises(NotFound):
            await find_everywhere(ada, "word", "wiki")
        await one.access.grant("wiki", ADA, "viewer", source="open")
        assert await find_everywhere(ada, "word", "wiki") == ["an open word"]
        await one.access.grant("wiki", ADA, "viewer")
        assert await find_everywhere(ada, "word", "wiki") == ["a secret word", "an open word"]
        await one.access.revoke("wiki", ADA)
        assert await find_everywhere(ada, "word", "wiki") == ["an open word"]
        await one.access.revoke("wiki", ADA, source="open")
    await one.people.create_group("all")
    await one.access.grant("wiki", Principal("group", "all"), "viewer")
    await one.people.add_member("all", "ada")
    assert len(await find_everywhere(ada, "word", "wiki")) == 2
    await one.people.remove_member("all", "ada")
    with pytest.raises(NotFound):
        await find_everywhere(ada, "word", "wiki")


async def test_collections_are_what_they_are_called_now(engines: Two) -> None:
    one, two = engines
    for engine, other in ((one, two), (two, one)):
        await engine.add(NewDocument("the old text", key="a"), collection="wiki", wait=True)
        assert await find_everywhere(other, "text", "wiki") == ["the old text"]
        await engine.collections.update("wiki", name="notes")
        assert await find_everywhere(other, "text", "notes") == ["the old text"]
        with pytest.raises(NotFound):
            await find_everywhere(other, "text", "wiki")
        await engine.add(NewDocument("the new text", key="a"), collection="wiki", wait=True)
        assert await find_everywhere(other, "text", "wiki") == ["the new text"]
        await engine.collections.delete("notes")
        await engine.collections.update("wiki", name="notes")
        assert await find_everywhere(other, "text", "notes") == ["the new text"]
        await engine.collections.delete("notes")
        with pytest.raises(NotFound):
            await find_everywhere(other, "text", "notes")


async def test_another_space_and_names_are_known_to_both(engines: Two) -> None:
    one, two = engines
    await one.add([NewDocument(f"Ada Lovelace met number {n}", key=str(n)) for n in range(9)], wait=True)
    assert len((await two.retrieve("number", retrievers=("vector",))).hits) == 9
    await one.maintenance.reembed("minilm")
    for engine in engines:
        answer = await engine.retrieve("whom did Lovelace meet", retrievers=("vector",))
        assert len(answer.hits) == 9
        assert (await engine.collections.get("default")).space is not None
    await one.graph.set_entity_extraction()
    await two.add(NewDocument("Grace Hopper met Ada Lovelace", key="g"), wait=True)
    await two.graph.wait_until_extracted()
    for engine in engines:
        assert "Ada Lovelace" in {entity.name for entity in await engine.graph.list_entities()}


async def test_what_both_write_at_once_has_numbers_of_its_own(engines: Two) -> None:
    one = engines[0]
    await one.add(NewDocument("begin", key="begin"), wait=True)
    batches = [
        [NewDocument(f"text {number} of {name}", key=f"{name}{number}") for number in range(40)]
        for name in ("one", "two")
    ]
    await asyncio.gather(
        *(engine.add(document) for engine, batch in zip(engines, batches, strict=True) for document in batch)
    )
    await asyncio.gather(*(engine.documents.wait_until_embedded() for engine in engines))
    for engine in engines:
        assert (await engine.documents.count()) == 81
        assert (await engine.maintenance.check()).clean
        hits = (await engine.retrieve("text", limit=200, retrievers=("keyword",))).hits
        assert len({hit.chunk.id for hit in hits}) == len(hits) == 80
