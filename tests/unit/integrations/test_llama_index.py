import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.memory import Memory
from llama_index.core.schema import MetadataMode, QueryBundle
from llama_index.core.storage.chat_store.base_db import MessageStatus
from tests.support.served import served

import conspectus
from conspectus import Eq, NewDocument, Settings
from conspectus.errors import InvalidInput, NotFound
from conspectus.integrations.llama_index import (
    Ask,
    ConspectusAsyncChatStore,
    ConspectusMemoryBlock,
    ConspectusRetriever,
)
from conspectus.model.memory import NewMemory, Scope
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical")

TALK = [
    ChatMessage(role=MessageRole.SYSTEM, content="Be brief."),
    ChatMessage(role=MessageRole.USER, content="Où est Zürich? 🏔"),
    ChatMessage(role=MessageRole.ASSISTANT, content="", additional_kwargs={"tool_calls": [{"id": "c1"}]}),
    ChatMessage(role=MessageRole.TOOL, content="47.37\x00", additional_kwargs={"tool_call_id": "c1"}),
    ChatMessage(role=MessageRole.ASSISTANT, blocks=[TextBlock(text="There."), TextBlock(text="See?")]),
    ChatMessage(role=MessageRole.USER, blocks=[ImageBlock(url="http://127.0.0.1/x.png")]),
    ChatMessage(role=MessageRole.USER, content="long " * 50_000),
]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[BlockingEngine]:
    with conspectus.open(tmp_path, embedder=HashedEmbedder()) as opened:
        texts = [f"Meeting {number} is in room {number}. " * 6 for number in range(12)]
        documents = [NewDocument(text, title=f"Plan {n}", metadata={"n": n}) for n, text in enumerate(texts)]
        opened.add(documents, source="plans", wait=True)
        yield opened


def test_nodes_say_where_they_are_from_and_why(engine: BlockingEngine) -> None:
    nodes = ConspectusRetriever(engine, Ask(limit=3)).retrieve("room 7")
    assert len(nodes) == 3
    best = nodes[0]
    assert (best.metadata["title"], best.metadata["source"]) == ("Plan 7", "plans")
    assert best.score == pytest.approx(sum(best.metadata["parts"].values()))
    cited = best.metadata["citation"]
    assert engine.documents.get_text(cited["document"])[cited["start"] : cited["end"]] == best.text
    assert best.node.get_content(MetadataMode.LLM) == best.text == best.node.get_content(MetadataMode.EMBED)


def test_the_ask_holds(engine: BlockingEngine) -> None:
    narrow = ConspectusRetriever(engine, Ask(filter=Eq(("n",), 4)))
    assert [document.metadata["stored"] for document in narrow.retrieve(QueryBundle("meeting"))] == [{"n": 4}]
    nodes = ConspectusRetriever(engine, Ask(max_tokens=150)).retrieve("meeting")
    count = engine.asynchronous.tokenizer()
    assert 0 < count("\n\n".join(node.text for node in nodes)) <= 150
    assert ConspectusRetriever(engine, Ask(max_tokens=0)).retrieve("meeting") == []
    with pytest.raises(NotFound):
        ConspectusRetriever(engine, Ask("nowhere")).retrieve("meeting")


async def test_a_server_gives_the_same(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as local:
        await local.add([f"Meeting {number} is in room {number}." for number in range(9)], wait=True)
        owner = await local.keys.create_first()
        assert owner is not None
        async with (
            served(application(local, SETTINGS)) as url,
            conspectus.connect(url, api_key=owner.secret, settings=SETTINGS) as remote,
        ):
            for ask in (Ask(limit=3), Ask(max_tokens=80)):
                here = await ConspectusRetriever(local, ask).aretrieve("room 7")
                assert here
                assert await ConspectusRetriever(remote, ask).aretrieve("room 7") == here
            store = ConspectusAsyncChatStore(engine=remote, user="ann")
            await store.set_messages("c", TALK)
            assert await store.get_messages("c") == TALK
            assert await ConspectusAsyncChatStore(engine=local, user="ann").get_keys() == ["c"]
            assert await store.delete_message("c", -1) == TALK[-1]
            query = [ChatMessage(content="Where is Zürich?")]
            assert await ConspectusMemoryBlock(engine=remote, user="ann").aget(query)


async def test_retrieving_in_a_loop(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        await engine.add("The meeting is in room 7.", wait=True)
        retriever = ConspectusRetriever(engine)
        assert [document.text for document in await retriever.aretrieve("meeting")] == [
            "The meeting is in room 7."
        ]
        assert len(await asyncio.to_thread(retriever.retrieve, "meeting")) == 1
        with pytest.raises(InvalidInput, match="asynchronous"):
            retriever.retrieve("meeting")


async def test_messages_come_back_as_they_were_given(engine: BlockingEngine) -> None:
    store = ConspectusAsyncChatStore(engine=engine, user="ann")
    await store.set_messages("c", TALK[:3])
    for message in TALK[3:]:
        await store.add_message("c", message)
    assert await store.get_messages("c") == TALK
    await store.set_messages("d", TALK[:1])
    await store.set_messages("d", TALK[1:2])
    assert await store.get_messages("d") == TALK[1:2]
    assert sorted(await store.get_keys()) == ["c", "d"]
    await store.delete_messages("c")
    assert (await store.get_messages("c"), await store.get_messages("d")) == ([], TALK[1:2])


async def test_single_messages_are_taken_by_their_place(engine: BlockingEngine) -> None:
    store = ConspectusAsyncChatStore(engine=engine)
    await store.set_messages("c", TALK[:5])
    assert await store.delete_message("c", 5) is None
    assert await store.delete_message("c", -6) is None
    assert await store.delete_message("c", 1) == TALK[1]
    assert await store.delete_message("c", -2) == TALK[3]
    assert await store.delete_message("c", -1) == TALK[4]
    assert await store.get_messages("c") == [TALK[0], TALK[2]]


async def test_a_database_chat_store_archives_the_oldest(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        store = ConspectusAsyncChatStore(engine=engine, user="ann")
        assert (await store.get_messages("c"), await store.count_messages("c")) == ([], 0)
        assert (await store.get_keys(), await store.archive_oldest_messages("c", 1)) == ([], [])
        await store.add_messages("c", TALK[:6])
        await store.add_message("d", TALK[0], MessageStatus.ARCHIVED)
        assert await store.get_messages("c", limit=2, offset=1) == TALK[1:3]
        assert await store.archive_oldest_messages("c", 2) == TALK[:2]
        assert await store.delete_oldest_messages("c", 1) == TALK[2:3]
        assert await store.get_messages("c", MessageStatus.ARCHIVED) == TALK[:2]
        assert await store.get_messages("c", None) == TALK[:2] + TALK[3:6]
        assert (await store.delete_message("c", 1), await store.delete_message("c", 9)) == (TALK[4], None)
        assert (await store.count_messages("c"), await store.count_messages("d")) == (2, 0)
        await store.delete_messages("c", MessageStatus.ARCHIVED)
        assert await store.get_messages("c", None) == [TALK[3], TALK[5]]
        await store.set_messages("c", TALK[6:])
        assert await store.get_messages("c", None) == TALK[6:]
        assert await store.get_keys() == ["d", "c"]
        with pytest.raises(InvalidInput, match="limit"):
            await store.get_messages("c", limit=-1)


async def test_a_memory_of_llama_index_lives_in_the_store(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        store = ConspectusAsyncChatStore(engine=engine, user="ann")
        memory = Memory.from_defaults(
            session_id="c", token_limit=60, chat_history_token_ratio=0.5, token_flush_size=10,
            tokenizer_fn=str.split, chat_store=store,
        )  # fmt: skip
        messages = [ChatMessage(role="user", content=f"Turn {n} " + "word " * 10) for n in range(6)]
        for message in messages:
            await memory.aput(message)
        archived = await store.get_messages("c", MessageStatus.ARCHIVED)
        assert archived and archived == messages[: len(archived)]
        assert await store.get_messages("c") == messages[len(archived) :]


async def test_users_are_apart(engine: BlockingEngine) -> None:
    ann, bob = (ConspectusAsyncChatStore(engine=engine, user=user) for user in ("ann", "bob"))
    await ann.set_messages("c", TALK[:2])
    await bob.set_messages("c", TALK[2:4])
    await ann.delete_messages("c")
    assert (await ann.get_keys(), await bob.get_keys(), await bob.get_messages("c")) == ([], ["c"], TALK[2:4])


async def test_a_memory_lives_on_in_another_process(tmp_path: Path) -> None:
    for start in (0, 2):
        store = ConspectusAsyncChatStore(engine=tmp_path, user="ann")
        memory = Memory.from_defaults(session_id="c", tokenizer_fn=str.split, chat_store=store)
        for message in TALK[start : start + 2]:
            await memory.aput(message)
        assert await memory.aget_all() == TALK[: start + 2]
        store.close()


async def test_what_is_not_json_is_refused(engine: BlockingEngine) -> None:
    store = ConspectusAsyncChatStore(engine=engine)
    with pytest.raises(InvalidInput, match="JSON"):
        await store.add_message("c", ChatMessage(content="x", additional_kwargs={"a": object()}))
    assert await store.get_messages("c") == []


async def test_a_block_gives_what_answers_within_its_budget(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        block = ConspectusMemoryBlock(engine=engine, user="ann", max_tokens=60)
        query = [ChatMessage(content="Where is the meeting?")]
        assert (await block.aget(query), await block.aget([]), await block.aget(None)) == ("", "", "")
        messages = [ChatMessage(content=f"The meeting {n} is in room {n}. " * 3) for n in range(9)]
        await block.aput(messages, session_id="c")
        await engine.memory.add(NewMemory("A secret of the meeting."), scope=Scope("bob"))
        text = await block.aget(query, session_id="d")
        assert "room" in text
        assert "secret" not in text
        assert engine.tokenizer()(text) <= 60
        assert len((await engine.memory.list(scope=Scope("ann", None, "c"))).memories) == 9
