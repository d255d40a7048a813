"""Feedback through the engine: who may give it, whom it moves, and when it ends."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine_samples import untimed

import conspectus
from conspectus.engine import Engine
from conspectus.errors import NotFound, PermissionDenied
from conspectus.model.access import SCOPES, Principal, Role
from conspectus.model.chat import ChatRequest
from conspectus.settings import Settings
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder

Enter = Callable[..., Any]
QUERY = "when does the backup run"
OPEN = ["The backup runs at two.", "The backup of the wiki runs daily.", "Who runs the backup? Ann."]
HIDDEN = "The secret backup runs at four, when nobody works."


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=HashedEmbedder()) as engine:
        for name in ("ed", "vera", "mia"):
            await engine.people.create_user(name)
        await engine.add(OPEN, source="open", wait=True)
        await engine.add([HIDDEN], source="hidden", wait=True)
        grants: list[tuple[str, Role, str | None]] = [
            ("ed", "editor", "open"),
            ("vera", "viewer", "open"),
            ("mia", "manager", None),
        ]
        for name, role, source in grants:
            await engine.access.grant("default", Principal("user", name), role, source=source)
        yield engine


@pytest.fixture
def enter(owner: Engine) -> Enter:
    """The store as somebody with a key."""

    async def entered(name: str, *scopes: Any) -> Engine:
        key = await owner.keys.create(name, scopes=scopes or SCOPES)
        return owner.as_person(await owner.keys.authenticate(key.secret))

    return entered


async def find_chunk(engine: Engine, text: str) -> int:
    retrieval = await engine.retrieve(QUERY, limit=20)
    return next(hit.chunk.id for hit in retrieval.hits if hit.chunk.text == text)


async def list_texts(engine: Engine, query: str = QUERY, limit: int = 20) -> list[str]:
    return [hit.chunk.text for hit in (await engine.retrieve(query, limit=limit)).hits]


async def test_feedback_reorders_similar_queries_for_everyone(owner: Engine, enter: Enter) -> None:
    ed, vera = await enter("ed"), await enter("vera")
    before = await list_texts(vera)
    elsewhere = await vera.retrieve("wiki")
    await ed.search.add_feedback(QUERY, used=[await find_chunk(ed, before[1])])
    assert (await list_texts(vera, "when do the backups run?"))[0] == (await list_texts(ed))[0] == before[1]
    assert untimed(await vera.retrieve("wiki")) == untimed(elsewhere)


async def test_a_wrong_passage_makes_room_for_the_next(owner: Engine) -> None:
    first, second, *_ = await list_texts(owner)
    assert await list_texts(owner, limit=1) == [first]
    await owner.search.add_feedback(QUERY, wrong=[await find_chunk(owner, first)])
    assert await list_texts(owner, limit=1) == [second]


async def test_a_passage_that_no_retriever_finds_is_found_again(owner: Engine) -> None:
    [written] = await owner.add("Nightly jobs start at two.", source="open", wait=True)
    [stored] = await owner.documents.list_chunks(written.id)
    await owner.add([f"backup run {number}" for number in range(150)], source="open", wait=True)
    options: dict[str, Any] = {"retrievers": ("keyword",), "limit": 200}
    assert stored.id not in [hit.chunk.id for hit in (await owner.retrieve(QUERY, **options)).hits]
    await owner.search.add_feedback(QUERY, used=[stored.id])
    hits = {hit.chunk.id: hit for hit in (await owner.retrieve(QUERY, **options)).hits}
    assert hits[stored.id].parts["feedback"] == 0.15


async def test_who_may_give_list_and_revoke(owner: Engine, enter: Enter) -> None:
    ed, vera, mia = await enter("ed"), await enter("vera"), await enter("mia")
    chunk = await find_chunk(vera, OPEN[0])
    for view in (vera, await enter("ed", "read")):
        with pytest.raises(PermissionDenied):
            await view.search.add_feedback(QUERY, used=[chunk])
    [feedback] = await ed.search.add_feedback(QUERY, used=[chunk])
    assert (await ed.search.list_feedback()).feedback == (feedback,)
    assert (await mia.search.list_feedback()).feedback == (feedback,)
    assert (await vera.search.list_feedback()).feedback == ()
    with pytest.raises(NotFound):
        await vera.search.revoke_feedback(feedback.id)
    await mia.search.revoke_feedback(feedback.id)
    assert (await ed.search.list_feedback()).feedback == ()


async def test_feedback_never_tells_of_what_one_may_not_read(owner: Engine, enter: Enter) -> None:
    """Not of the passage, and not that somebody judged it."""
    ed, vera = await enter("ed"), await enter("vera")
    hidden = await find_chunk(owner, HIDDEN)
    before = await vera.retrieve(QUERY, limit=1), await vera.window(QUERY, 200)
    assert await expect_refusal(ed, hidden) == await expect_refusal(ed, 999_999)
    await owner.search.add_feedback(QUERY, used=[hidden])
    assert "feedback" in (await owner.retrieve(QUERY)).hits[0].parts
    after = await vera.retrieve(QUERY, limit=1), await vera.window(QUERY, 200)
    assert [untimed(answer) for answer in after] == [untimed(answer) for answer in before]


async def expect_refusal(engine: Engine, chunk: int) -> str:
    with pytest.raises(NotFound) as caught:
        await engine.search.add_feedback(QUERY, used=[chunk])
    return str(caught.value).replace(str(chunk), "?")


async def test_own_feedback_is_hidden_with_its_source(owner: Engine, enter: Enter) -> None:
    ed = await enter("ed")
    [feedback] = await ed.search.add_feedback(QUERY, used=[await find_chunk(ed, OPEN[0])])
    await owner.access.revoke("default", Principal("user", "ed"), source="open")
    await owner.access.grant("default", Principal("user", "ed"), "viewer", source="hidden")
    assert (await ed.search.list_feedback()).feedback == ()
    await ed.search.revoke_feedback(feedback.id)
    assert (await owner.search.list_feedback()).feedback == ()


async def test_feedback_ends_with_its_document_and_its_user(owner: Engine, enter: Enter) -> None:
    ed = await enter("ed")
    before = untimed(await owner.retrieve(QUERY))
    await ed.search.add_feedback(QUERY, used=[await find_chunk(ed, OPEN[2])])
    [mine] = await owner.search.add_feedback("another query", used=[await find_chunk(owner, OPEN[0])])
    await owner.people.delete_user("ed")
    assert (await owner.search.list_feedback()).feedback == (mine,)
    assert untimed(await owner.retrieve(QUERY)) == before
    await owner.documents.delete(mine.document)
    assert (await owner.search.list_feedback()).feedback == ()


async def test_another_process_sees_it_at_once(owner: Engine, tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=HashedEmbedder()) as other:
        second = (await list_texts(other))[1]
        await owner.search.add_feedback(QUERY, used=[await find_chunk(owner, second)])
        assert (await list_texts(other))[0] == second


@pytest.mark.parametrize(
    ("setting", "answer", "count"),
    [("on", "At two [1].", 1), ("on", "At two [1][9].", 0), ("on", "At two.", 0), ("off", "At two [1].", 0)],
)
async def test_cited_passages_count_if_a_setting_says_so(
    tmp_path: Path, setting: str, answer: str, count: int
) -> None:
    settings, model = replace(Settings(), chat_feedback=setting), ScriptedChatModel([answer])
    async with conspectus.open(
        tmp_path, settings=settings, embedder=HashedEmbedder(), chat_model=model
    ) as engine:
        await engine.add(OPEN[:1], wait=True)
        events = [event async for event in engine.chat.stream(ChatRequest(QUERY, min_similarity=None))]
        feedback = (await engine.search.list_feedback()).feedback
    assert [(row.query, row.used) for row in feedback] == [(QUERY, True)] * count
    assert len(events) == 4


async def test_a_chat_of_somebody_who_may_not_edit_gives_none(tmp_path: Path) -> None:
    settings, model = replace(Settings(), chat_feedback="on"), ScriptedChatModel(["At two [1]."])
    async with conspectus.open(
        tmp_path, settings=settings, embedder=HashedEmbedder(), chat_model=model
    ) as engine:
        await engine.add(OPEN[:1], wait=True)
        await engine.people.create_user("vera")
        await engine.access.grant("default", Principal("user", "vera"), "viewer")
        key = await engine.keys.create("vera", scopes=SCOPES)
        vera = engine.as_person(await engine.keys.authenticate(key.secret))
        request = ChatRequest(QUERY, min_similarity=None)
        assert len([event async for event in vera.chat.stream(request)]) == 4
        assert (await engine.search.list_feedback()).feedback == ()
