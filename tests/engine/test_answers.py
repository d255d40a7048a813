"""Answer records through the engine: what is kept, who reads it, and when it ends."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import ChatNotConfigured, NotFound, PermissionDenied
from conspectus.model.access import SCOPES, Principal
from conspectus.model.chat import ChatRequest, Citations
from conspectus.model.filter import Eq
from conspectus.model.memory import MemorySelection, NewMemory, Scope
from conspectus.model.query import Query
from conspectus.model.records import NewDocument
from conspectus.model.results import Message
from conspectus.settings import Settings
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder

OpenStore = Callable[..., AbstractAsyncContextManager[Engine]]
QUESTION = "when does the backup run"
OPEN = NewDocument("The backup runs at two.", "Backups", key="backups")
HIDDEN = NewDocument("The secret backup runs at four.", "Secrets", key="secrets")
SETTINGS = Settings(answer_records="all", user_directory="open")


@pytest.fixture
def open_store(tmp_path: Path) -> OpenStore:
    """Opens a new store with an open and a hidden document, and three people who read the open one."""

    @asynccontextmanager
    async def opened(settings: Settings = SETTINGS, **options: Any) -> AsyncIterator[Engine]:
        async with conspectus.open(
            tmp_path / str(len([*tmp_path.iterdir()])),
            settings=settings,
            embedder=HashedEmbedder(),
            **options,
        ) as engine:
            await engine.add([OPEN], source="open", wait=True)
            await engine.add([HIDDEN], source="hidden", wait=True)
            for name in ("ann", "ben", "mia"):
                await engine.people.create_user(name)
                await engine.access.grant("default", Principal("user", name), "viewer", source="open")
            yield engine

    return opened


@pytest.fixture
async def owner(open_store: OpenStore) -> AsyncIterator[Engine]:
    async with open_store() as engine:
        yield engine


async def enter(owner: Engine, name: str, *scopes: Any) -> Engine:
    """The store as somebody with a key."""
    key = await owner.keys.create(name, scopes=scopes or SCOPES)
    return owner.as_person(await owner.keys.authenticate(key.secret))


async def list_questions(engine: Engine, **selection: Any) -> list[str]:
    return [summary.question for summary in (await engine.answers.list(**selection)).answers]


async def ask(engine: Engine, request: ChatRequest) -> Citations:
    events = [event async for event in engine.chat.stream(request)]
    return next(event for event in events if isinstance(event, Citations))


async def test_nothing_is_kept_by_default(open_store: OpenStore) -> None:
    async with open_store(Settings()) as engine:
        assert (await engine.window(QUESTION)).answer == ""
        assert (await engine.answers.list()).answers == ()


async def test_a_window_is_kept_with_what_led_to_it(owner: Engine) -> None:
    query = Query(QUESTION, min_similarity=-1.0, limit=5)
    window = await owner.window(query, 300)
    record = await owner.answers.get(window.answer)
    summary, options = record.summary, record.options
    assert (summary.kind, summary.question, summary.user_name) == ("window", QUESTION, "local")
    assert (summary.collection, summary.outcome, summary.tokens) == ("default", "found", window.tokens)
    assert (options.max_tokens, options.min_similarity, options.limit) == (300, -1.0, None)
    assert (record.text, record.citations) == (window.text, window.citations)
    assert [(candidate.chunk, candidate.status, candidate.title) for candidate in record.candidates] == [
        (entry.chunk, entry.status, entry.title) for entry in window.trace
    ]
    assert (record.left_out, record.changed) == ((), ())


@pytest.mark.parametrize("form", ["text", "xml", "json", "messages", "guarded"])
async def test_a_window_of_any_form_is_kept(owner: Engine, form: Any) -> None:
    window = await owner.window(QUESTION, 300, format=form, filter=Eq("key", "backups"))
    record = await owner.answers.get(window.answer)
    assert "The backup runs at two." in record.text
    assert (record.options.format, record.options.filter) == (form, Eq("key", "backups"))


async def test_explanations_and_searches_are_not_kept(owner: Engine) -> None:
    await owner.explain(QUESTION, 300)
    await owner.retrieve(QUESTION)
    await owner.search.explain_as(QUESTION, 300, user="ann")
    assert await list_questions(owner) == []


async def test_a_record_is_read_by_who_may_read_all_of_it_now(owner: Engine) -> None:
    """Colleagues too. Whose role is revoked reads it no more, the person who asked included."""
    ann, ben = await enter(owner, "ann"), await enter(owner, "ben")
    window = await ann.window(QUESTION)
    hidden = await owner.window("secret backup")
    assert await list_questions(ben) == [QUESTION]
    record = await ben.answers.get(window.answer)
    assert (record.summary.user_name, record.summary.user) == ("ann", ann._context.person.id)
    with pytest.raises(NotFound):
        await ben.answers.get(hidden.answer)
    await owner.access.revoke("default", Principal("user", "ann"), source="open")
    for reader, questions in ((ann, []), (ben, [QUESTION]), (owner, ["secret backup", QUESTION])):
        assert await list_questions(reader) == questions
    with pytest.raises(NotFound):
        await ann.answers.get(window.answer)


async def test_a_question_that_nothing_answers_is_the_askers_own(owner: Engine) -> None:
    ann, ben = await enter(owner, "ann"), await enter(owner, "ben")
    await ann.window("zebra", min_similarity=1.0, filter=Eq("key", "none"))
    assert await list_questions(ann) == ["zebra"]
    assert await list_questions(ben) == await list_questions(owner) == []


async def test_lists_are_of_a_person_a_kind_and_a_collection(owner: Engine) -> None:
    ann = await enter(owner, "ann")
    await ann.window("backup of ann")
    await owner.window("backup of the owner", collection="*")
    assert await list_questions(owner, user="ann") == ["backup of ann"]
    assert await list_questions(owner, collection="*") == ["backup of the owner"]
    assert await list_questions(owner, collection="default") == ["backup of ann"]
    assert await list_questions(owner, kind="chat") == []
    with pytest.raises(NotFound):
        await owner.answers.list(user="nobody")
    with pytest.raises(NotFound):
        await owner.answers.list(collection="nothing")


async def test_who_asked_and_the_owner_delete_a_record(owner: Engine) -> None:
    ann, ben = await enter(owner, "ann"), await enter(owner, "ben")
    reader = await enter(owner, "ann", "read")
    first, second = await ann.window(QUESTION), await ann.window("the backup")
    with pytest.raises(NotFound):
        await ben.answers.delete(first.answer)
    with pytest.raises(PermissionDenied):
        await reader.answers.delete(first.answer)
    await ann.answers.delete(first.answer)
    await owner.answers.delete(second.answer)
    assert await list_questions(owner) == []
    with pytest.raises(NotFound):
        await ann.answers.delete(first.answer)


async def test_a_record_ends_with_its_document_and_its_person(owner: Engine) -> None:
    ann = await enter(owner, "ann")
    await ann.window(QUESTION)
    await owner.window("secret backup")
    document = await owner.documents.get_by_key("secrets", source="hidden")
    receipt = await owner.documents.delete(document.id, purge=True)
    assert (receipt.answers, receipt.purged) == (1, True)
    assert await list_questions(owner) == [QUESTION]
    await owner.people.delete_user("ann")
    assert await list_questions(owner) == []


async def test_a_changed_document_is_named_until_a_purge(owner: Engine) -> None:
    window = await owner.window(QUESTION)
    document = await owner.documents.get_by_key("backups", source="open")
    await owner.documents.update(document.id, text="The backup runs at five.")
    assert (await owner.answers.get(window.answer)).changed == (document.id,)
    other = await owner.documents.get_by_key("secrets", source="hidden")
    await owner.documents.delete(other.id, purge=True)
    assert await list_questions(owner) == []


async def test_secrets_in_a_question_are_masked(open_store: OpenStore) -> None:
    settings = replace(SETTINGS, sensitive="emails=mask")
    async with open_store(settings) as engine:
        await engine.window("backup of ann@example.org")
        [question] = await list_questions(engine)
        assert "ann@example.org" not in question
    async with open_store(replace(SETTINGS, sensitive="emails=refuse")) as engine:
        assert (await engine.window("backup of ann@example.org")).answer == ""
        assert await list_questions(engine) == []


async def test_a_sample_is_kept(open_store: OpenStore) -> None:
    for percent, is_kept in ((0, False), (100, True)):
        settings = replace(SETTINGS, answer_records="sampled", answer_sample_percent=percent)
        async with open_store(settings) as engine:
            assert bool((await engine.window(QUESTION)).answer) == is_kept


async def test_a_large_record_loses_parts_before_it_is_not_kept(open_store: OpenStore) -> None:
    async with open_store(replace(SETTINGS, max_answer_bytes=600)) as engine:
        record = await engine.answers.get((await engine.window(QUESTION, limit=1)).answer)
        assert record.left_out == ("prompt", "candidates")
        assert record.candidates == ()
        assert record.text
    async with open_store(replace(SETTINGS, max_answer_bytes=50)) as engine:
        assert (await engine.window(QUESTION)).answer == ""


async def test_memories_are_kept_as_recalled(owner: Engine) -> None:
    scope = Scope("ann")
    await owner.memory.add(NewMemory("Ann likes short answers."), scope=scope, wait=True)
    recalled = await owner.memory.recall("short answers", scope=scope)
    record = await owner.answers.get(recalled.answer)
    assert (record.summary.kind, record.text) == ("recall", "[1] Ann likes short answers.")
    assert record.options.scope == scope
    window = await owner.memory.window("short answers", 300, scope=scope)
    stored = await owner.answers.get(window.window.answer)
    assert (stored.summary.kind, stored.text) == ("window", window.text)
    receipt = await owner.memory.forget(MemorySelection((recalled.memories[0].memory.id,)), scope=scope)
    assert receipt.answers == 2
    assert await list_questions(owner) == []


async def test_a_chat_is_kept_with_prompt_and_answer(open_store: OpenStore) -> None:
    model = ScriptedChatModel(["At two", " [1] and [9]."])
    async with open_store(chat_model=model) as engine:
        citations = await ask(engine, ChatRequest(QUESTION, collection="default"))
        record = await engine.answers.get(citations.answer)
        assert (record.summary.kind, record.summary.model) == ("chat", model.name)
        assert (record.answer, record.cited, record.unknown) == ("At two [1] and [9].", (1,), ("9",))
        assert [message.role for message in record.prompt] == ["system", "user"]
        assert record.text in record.prompt[-1].content
        assert "The secret backup runs at four." in record.text
        assert [citation.title for citation in record.citations] == ["Secrets"]
        assert await list_questions(engine, kind="window") == []


async def test_a_later_turn_has_the_documents_of_earlier_answers(open_store: OpenStore) -> None:
    """A model may repeat them. After an answer of unknown documents, neither prompt nor answer is kept."""
    model = ScriptedChatModel(["At four [1]."])
    async with open_store(chat_model=model) as engine:
        mia = await enter(engine, "mia")
        await engine.access.grant("default", Principal("user", "mia"), "viewer")
        await ask(mia, ChatRequest("secret backup", collection="default"))
        await engine.access.revoke("default", Principal("user", "mia"))
        history = (Message("user", "secret backup"), Message("assistant", "At four [1]."))
        request = ChatRequest("thanks", history, collection="default", use_context=False)
        repeated = await ask(mia, request)
        with pytest.raises(NotFound):
            await mia.answers.get(repeated.answer)
        assert (await engine.answers.get(repeated.answer)).answer == "At four [1]."
        other = (Message("user", "x"), Message("assistant", "I was told elsewhere."))
        unknown = await ask(engine, replace(request, history=other))
        record = await engine.answers.get(unknown.answer)
        assert (record.left_out, record.answer, record.prompt) == (("prompt", "answer"), "", ())
        again = (*other, Message("user", "y"), Message("assistant", "At four [1]."))
        third = await ask(engine, replace(request, history=again))
        assert (await engine.answers.get(third.answer)).left_out == ("prompt", "answer")


async def test_a_chat_that_fails_is_kept_with_its_code(open_store: OpenStore) -> None:
    async with open_store() as engine:
        _ = [event async for event in engine.chat.stream(ChatRequest(QUESTION, collection="default"))]
        [summary] = (await engine.answers.list()).answers
        assert (summary.kind, summary.failure) == ("chat", ChatNotConfigured.code)
