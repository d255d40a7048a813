import asyncio
import inspect
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory

import conspectus
from conspectus import Eq, NewDocument
from conspectus.errors import InvalidInput, NotFound, StoreClosed, TooLarge
from conspectus.integrations.langchain import (
    ConspectusByteStore,
    ConspectusChatMessageHistory,
    ConspectusRetriever,
    ConspectusVectorStore,
)
from conspectus.integrations.values import ENCODED_PREFIX, Values
from conspectus.model.memory import NewMemory, Scope
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder

AWKWARD = {
    "empty": b"",
    "zeros": b"\x00\x00",
    "bytes": bytes(range(256)),
    "text": "Grüße, 世界 👩‍👩‍👧".encode(),
    "coded": f"{ENCODED_PREFIX}AAAA".encode(),
    "spaces": b" \n\t ",
    "lines": b"a\r\nb\rc\n",
    "ключ/ with spaces": b"x",
    "": b"of the empty key",
}
TALK: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("Where is Zürich? 🏔"),
    AIMessage("", tool_calls=[{"name": "find", "args": {"text": "Zürich" * 50}, "id": "c1"}]),
    ToolMessage("47.37\x00, 8.54", tool_call_id="c1", status="success"),
    AIMessage([{"type": "text", "text": "In Switzerland."}, {"type": "other", "x": [1, None]}], id="m1"),
    HumanMessage(" \n "),
    HumanMessage("long " * 50_000),
]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[BlockingEngine]:
    with conspectus.open(tmp_path, embedder=HashedEmbedder()) as opened:
        yield opened


@pytest.fixture
def filled(engine: BlockingEngine) -> BlockingEngine:
    texts = [f"Meeting {number} is on a Thursday in room {number}. " * 8 for number in range(20)]
    documents = [NewDocument(text, title=f"Plan {n}", metadata={"n": n}) for n, text in enumerate(texts)]
    engine.add(documents, source="plans", wait=True)
    return engine


@pytest.mark.parametrize("searchable", [False, True])
def test_values_come_back_byte_for_byte(engine: BlockingEngine, searchable: bool) -> None:
    store = ConspectusByteStore(engine, searchable=searchable)
    store.mset(list(AWKWARD.items()))
    assert store.mget([*AWKWARD, "missing"]) == [*AWKWARD.values(), None]
    other = ConspectusByteStore(engine, searchable=not searchable)
    assert other.mget(list(AWKWARD)) == list(AWKWARD.values())


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_have_a_form_that_can_be_stored(value: bytes, searchable: bool) -> None:
    values = Values("s", "c", searchable)
    assert values.decode(values.encode(value)) == value


def test_nothing_is_made_by_reading(engine: BlockingEngine) -> None:
    store = ConspectusByteStore(engine)
    assert store.mget(["a"]) == [None]
    assert list(store.yield_keys()) == []
    store.mdelete(["a"])
    store.mset([])
    assert engine.collections.list() == []


def test_keys_are_replaced_deleted_and_listed_by_prefix(engine: BlockingEngine) -> None:
    store = ConspectusByteStore(engine)
    store.mset([("a/1", b"old"), ("a/1", b"1"), ("a/2", b"2"), ("b", b"3")])
    store.mset([("a/2", b"other"), ("a_3", b"4")])
    store.mdelete(["b", "b", "missing"])
    assert store.mget(["a/2", "a/1", "a/2", "b"]) == [b"other", b"1", b"other", None]
    assert sorted(store.yield_keys(prefix="a/")) == ["a/1", "a/2"]
    assert sorted(store.yield_keys()) == ["a/1", "a/2", "a_3"]
    assert list(store.yield_keys(prefix="%")) == []


def test_more_keys_than_a_page(engine: BlockingEngine) -> None:
    store = ConspectusByteStore(engine)
    store.mset([(f"{number:05}", b"%d" % number) for number in range(1_100)])
    keys = sorted(store.yield_keys())
    assert keys == [f"{number:05}" for number in range(1_100)]
    assert store.mget(keys) == [b"%d" % number for number in range(1_100)]


def test_sources_are_apart_and_only_searchable_values_are_found(engine: BlockingEngine) -> None:
    one, other = (
        ConspectusByteStore(engine, source="one"),
        ConspectusByteStore(engine, source="two", searchable=True),
    )
    one.mset([("k", b"hidden zebra")])
    other.mset([("k", b"striped zebra")])
    assert [one.mget(["k"]), other.mget(["k"])] == [[b"hidden zebra"], [b"striped zebra"]]
    memories = engine.retrieve("zebra", collection="langchain").hits
    assert [hit.chunk.text for hit in memories] == ["striped zebra"]
    one.mdelete(["k"])
    assert other.mget(["k"]) == [b"striped zebra"]


def test_what_cannot_be_stored_is_refused_whole(engine: BlockingEngine) -> None:
    store = ConspectusByteStore(engine)
    with pytest.raises(InvalidInput):
        store.mset([("good", b"1"), ("bad\x00", b"2")])
    with pytest.raises(TooLarge):
        store.mset([("huge", bytes(40_000_000))])
    assert store.mget(["good", "huge"]) == [None, None]


def test_many_threads_write_at_once(engine: BlockingEngine) -> None:
    store = ConspectusByteStore(engine)

    def write(number: int) -> None:
        store.mset([(f"{number}", b"%d" % number), ("shared", b"%d" % number)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    assert store.mget([f"{number}" for number in range(40)]) == [b"%d" % n for n in range(40)]
    assert store.mget(["shared"])[0] in {b"%d" % n for n in range(40)}


def test_a_path_is_opened_when_needed_and_keeps_what_it_was_given(tmp_path: Path) -> None:
    store = ConspectusByteStore(tmp_path / "s")
    assert not (tmp_path / "s").exists()
    store.mset([("k", b"v")])
    store.close()
    store.close()
    with pytest.raises(StoreClosed, match="closed"):
        store.mget(["k"])
    again = ConspectusByteStore(str(tmp_path / "s"))
    assert again.mget(["k"]) == [b"v"]
    again.close()


async def test_blocking_calls_in_a_loop_never_wait_for_ever(tmp_path: Path) -> None:
    private = ConspectusByteStore(tmp_path / "own")
    private.mset([("k", b"v")])
    assert await private.amget(["k"]) == private.mget(["k"])
    private.close()
    async with conspectus.open(tmp_path / "s", embedder=HashedEmbedder()) as engine:
        store = ConspectusByteStore(engine)
        with pytest.raises(InvalidInput, match="asynchronous"):
            store.mget(["k"])
        await store.amset([("k", b"v"), ("l", b"w")])
        assert await asyncio.to_thread(store.mget, ["k"]) == [b"v"]
        assert await asyncio.to_thread(lambda: asyncio.run(store.amget(["l"]))) == [b"w"]
        assert sorted([key async for key in store.ayield_keys()]) == ["k", "l"]
        await store.amdelete(["k"])
        assert [key async for key in store.ayield_keys(prefix="k")] == []


def test_an_engine_whose_loop_is_over_is_named(tmp_path: Path) -> None:
    async def left() -> ConspectusByteStore:
        async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
            return ConspectusByteStore(engine)

    store = asyncio.run(left())
    with pytest.raises(InvalidInput, match="does not run"):
        store.mget(["k"])
    with pytest.raises(InvalidInput, match="does not run"):
        asyncio.run(store.amget(["k"]))


async def test_a_blocking_engine_serves_tasks_of_a_loop(engine: BlockingEngine) -> None:
    store = ConspectusByteStore(engine)
    await asyncio.gather(*(store.amset([(f"{number}", b"v")]) for number in range(10)))
    assert await store.amget(["9", "10"]) == [b"v", None]


def test_passages_say_where_they_are_from_and_why(filled: BlockingEngine) -> None:
    retriever = ConspectusRetriever(engine=filled, limit=3)
    documents = retriever.invoke("room 7")
    assert len(documents) == 3
    best = documents[0]
    assert best.metadata["title"] == "Plan 7"
    assert best.metadata["source"] == "plans"
    assert best.metadata["stored"] == {"n": 7}
    assert best.metadata["score"] == pytest.approx(sum(best.metadata["parts"].values()))
    cited = best.metadata["citation"]
    text = filled.documents.get_text(cited["document"])
    assert text[cited["start"] : cited["end"]] == best.page_content
    assert best.id == best.metadata["id"]


@pytest.mark.parametrize("budget", [0, 5, 60, 100, 333, 1_000, 100_000])
def test_all_passages_together_fit_into_the_budget(filled: BlockingEngine, budget: int) -> None:
    filled.add("Thursday is the day of meetings. " * 2_000, source="plans")
    documents = ConspectusRetriever(engine=filled, max_tokens=budget).invoke("meeting on Thursday")
    texts = [document.page_content for document in documents]
    count = filled.asynchronous.tokenizer()
    assert sum(map(count, texts)) <= budget if texts else budget < 60
    assert count("\n\n".join(texts)) <= budget or not texts
    for document in documents:
        cited = document.metadata["citation"]
        assert (
            filled.documents.get_text(cited["document"])[cited["start"] : cited["end"]]
            == document.page_content
        )
        assert document.metadata["parts"]


def test_filters_limits_and_options_are_those_of_a_query(filled: BlockingEngine) -> None:
    narrow = ConspectusRetriever(engine=filled, filter=Eq(("n",), 4))
    assert [document.metadata["stored"] for document in narrow.invoke("meeting")] == [{"n": 4}]
    assert len(ConspectusRetriever(engine=filled, max_tokens=5_000, limit=2).invoke("meeting")) == 2
    assert ConspectusRetriever(engine=filled, limit=0).invoke("meeting") == []
    assert (
        ConspectusRetriever(engine=filled, options={"min_similarity": 0.999}).invoke("zebra crossing") == []
    )
    assert len(ConspectusRetriever(engine=filled, collection="*").invoke("meeting")) == 10


def test_failures_are_never_empty_answers(filled: BlockingEngine) -> None:
    with pytest.raises(NotFound):
        ConspectusRetriever(engine=filled, collection="nowhere").invoke("meeting")
    with pytest.raises(InvalidInput):
        ConspectusRetriever(engine=filled, limit=-1).invoke("meeting")
    with pytest.raises(InvalidInput):
        ConspectusRetriever(engine=filled, max_tokens=-1).invoke("meeting")


async def test_a_retriever_works_in_and_beside_a_loop(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        await engine.add("The meeting is in room 7.", wait=True)
        retriever = ConspectusRetriever(engine=engine)
        batches = await retriever.abatch(["meeting", "room 7"])
        assert [[document.page_content for document in batch] for batch in batches] == [
            ["The meeting is in room 7."],
            ["The meeting is in room 7."],
        ]
        assert len(await asyncio.to_thread(retriever.invoke, "meeting")) == 1
        with pytest.raises(InvalidInput, match="asynchronous"):
            retriever.invoke("meeting")


def test_messages_come_back_as_they_were_given(engine: BlockingEngine) -> None:
    history = ConspectusChatMessageHistory("c", engine, user="ann")
    assert history.messages == []
    history.add_messages(TALK)
    history.add_user_message("And Basel?")
    assert history.messages == [*TALK, HumanMessage("And Basel?")]
    roles = [memory.document.role for memory in engine.memory.list(scope=Scope("ann")).memories]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "user", "user"]
    history.messages = TALK[:2]
    assert history.messages == TALK[:2]
    history.clear()
    history.clear()
    assert history.messages == []


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
def test_a_chain_of_langchain_looks_up_answers_and_keeps_the_talk(filled: BlockingEngine) -> None:
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Use: {context}"), MessagesPlaceholder("before"), ("user", "{question}")]
    )
    look_up = itemgetter("question") | ConspectusRetriever(engine=filled, max_tokens=100)
    model = FakeListChatModel(responses=["In room 7.", "In room 8."])
    chain = RunnableWithMessageHistory(
        RunnablePassthrough.assign(context=look_up) | prompt | model,
        lambda session_id: ConspectusChatMessageHistory(session_id, filled, user="ann"),
        input_messages_key="question",
        history_messages_key="before",
    )
    for question in ("Where is meeting 7?", "And meeting 8?"):
        chain.invoke({"question": question}, {"configurable": {"session_id": "c"}})
    messages = ConspectusChatMessageHistory("c", filled, user="ann").messages
    assert [message.content for message in messages] == [
        "Where is meeting 7?", "In room 7.", "And meeting 8?", "In room 8."
    ]  # fmt: skip


def test_conversations_of_users_are_apart(engine: BlockingEngine) -> None:
    names = [("ann", "c"), ("ann", "c2"), ("bob", "c"), (None, "c"), ("ann/b", "c"), ("ann", "C")]
    histories = {name: ConspectusChatMessageHistory(name[1], engine, user=name[0]) for name in names}
    for name, history in histories.items():
        history.add_user_message(f"I am {name}")
    histories["ann", "c"].clear()
    for name, history in histories.items():
        messages = [] if name == ("ann", "c") else [HumanMessage(f"I am {name}")]
        assert history.messages == messages


def test_what_was_remembered_in_another_way_is_a_plain_message(engine: BlockingEngine) -> None:
    history = ConspectusChatMessageHistory("c", engine, user="ann")
    history.add_user_message("Hi")
    scope = Scope("ann", None, "c")
    turns = [("assistant", "Hello"), (None, "anonymous"), ("narrator", "Later")]
    engine.memory.add([NewMemory(text, role=role) for role, text in turns], scope=scope)
    engine.memory.add(NewMemory("A standing note.", kind="note"), scope=scope)
    messages = [
        (message.type, getattr(message, "role", None), message.content) for message in history.messages
    ]
    assert messages[1:] == [
        ("ai", None, "Hello"), ("human", None, "anonymous"), ("chat", "narrator", "Later")
    ]  # fmt: skip
    history.clear()
    assert [memory.text for memory in engine.memory.list(scope=scope).memories] == ["A standing note."]


def test_a_history_survives_a_restart_and_is_recalled(tmp_path: Path) -> None:
    with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        ConspectusChatMessageHistory("c", engine, user="ann").add_messages(TALK)
    with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        assert ConspectusChatMessageHistory("c", engine, user="ann").messages == TALK
        question = {"query": "Switzerland", "scope": Scope("ann")}
        assert "In Switzerland." in [hit.memory.text for hit in engine.memory.recall(**question).memories]


async def test_messages_that_come_at_once_stay_whole_and_in_order(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        history = ConspectusChatMessageHistory("c", engine)
        pairs = [[HumanMessage(f"q{n}"), AIMessage(f"a{n}")] for n in range(12)]
        await asyncio.gather(*(history.aadd_messages(pair) for pair in pairs))
        messages = [message.content for message in await history.aget_messages()]
        assert sorted(messages) == sorted(message.content for pair in pairs for message in pair)
        assert all(
            answer == f"a{question[1:]}"
            for question, answer in zip(messages[::2], messages[1::2], strict=True)
        )
        with pytest.raises(InvalidInput, match="asynchronous"):
            _ = history.messages
        await history.aclear()
        assert await history.aget_messages() == []


def test_a_message_that_is_not_json_is_refused(engine: BlockingEngine) -> None:
    history = ConspectusChatMessageHistory("c", engine)
    with pytest.raises(InvalidInput, match="JSON"):
        history.add_messages([HumanMessage("fine"), ToolMessage("x", tool_call_id="1", artifact=object())])
    assert history.messages == []


def test_without_the_library_the_extra_is_named() -> None:
    missing = {
        "langchain": "langchain_core",
        "google_adk": "google.adk",
        "haystack": "haystack",
        "langgraph": "langgraph",
        "llama_index": "llama_index",
        "openai_agents": "agents",
        "pydantic_ai": "pydantic_ai",
    }
    program = f"""
import importlib, sys
import conspectus, conspectus.cli.main
missing = {missing!r}
assert not missing.values() & sys.modules.keys()
for module, library in missing.items():
    sys.modules[library] = None
    try:
        importlib.import_module(f"conspectus.integrations.{{module}}")
    except conspectus.errors.MissingExtra as filled:
        print(filled)
    del sys.modules[library]
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    advice = [line.partition("pip install ")[2] for line in ran.stdout.splitlines()]
    assert advice == [f"'conspectus[{module.replace('_', '-')}]'" for module in missing], ran.stderr


def test_methods_have_the_parameters_of_what_they_do() -> None:
    waiting, awaited = ConspectusVectorStore.get_by_ids, ConspectusVectorStore.aget_by_ids
    assert (
        [*inspect.signature(waiting).parameters]
        == [*inspect.signature(awaited).parameters]
        == ["self", "ids"]
    )
    assert inspect.iscoroutinefunction(awaited) and not inspect.iscoroutinefunction(waiting)
    with pytest.raises(TypeError, match="idz"):
        inspect.signature(waiting).bind(None, ["1"], idz=1)
