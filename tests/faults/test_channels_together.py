"""Many people at once in one channel, from two processes: no message is lost, and replies stay together."""

import asyncio
import random
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import ConspectusError, NotFound, PreconditionFailed
from conspectus.model.channels import REPLY_TO, NewMessage
from conspectus.model.records import Document
from tests.faults.poster import SETTINGS

POSTER = Path(__file__).with_name("poster.py")
CHANNEL = "help"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "store", settings=SETTINGS) as engine:
        yield engine


async def documents_by_key(engine: Engine) -> dict[str, Document]:
    page = await engine.documents.list(limit=1_000)
    assert page.next is None
    assert len({document.key for document in page.documents}) == len(page.documents)
    return {document.key: document for document in page.documents}


def assert_replies_in_threads(messages: dict[str, Document]) -> None:
    """Every reply stands in the thread of what it answers, while that is there."""
    for message in messages.values():
        answered = messages.get(str(message.metadata.get(REPLY_TO)))
        if answered is not None:
            assert message.thread == answered.thread, (message.key, answered.key)


async def test_many_tasks_answer_each_other(engine: Engine) -> None:
    await engine.channels.add_messages(NewMessage("the first", key="0"), channel=CHANNEL)
    posted_keys = ["0"]

    async def post_replies(name: int) -> None:
        chance = random.Random(name)
        for number in range(12):
            key, answered = f"{name}-{number}", chance.choice(posted_keys)
            [written] = await engine.channels.add_messages(
                NewMessage(f"note {key} on {answered}", key=key, author=str(name), reply_to=answered),
                channel=CHANNEL,
            )
            assert written.outcome == "added"
            posted_keys.append(key)

    await asyncio.gather(*map(post_replies, range(8)))
    messages = await documents_by_key(engine)
    assert messages.keys() == set(posted_keys)
    assert {message.thread for message in messages.values()} == {"0"}
    assert len((await engine.channels.get_reply_chain(messages["7-11"].id, limit=100)).messages) == 97
    assert (await engine.maintenance.check()).clean


async def test_the_same_keys_are_edited_and_deleted_at_once(engine: Engine) -> None:
    faults: list[ConspectusError] = []

    async def change_messages(name: int) -> None:
        chance = random.Random(name)
        for number in range(15):
            key = str(chance.randrange(4))
            try:
                if chance.random() < 0.3:
                    await engine.documents.delete((await engine.documents.get_by_key(key, source=CHANNEL)).id)
                elif chance.random() < 0.3:
                    document = await engine.documents.get_by_key(key, source=CHANNEL)
                    text = f"changed {name} {number} " * chance.choice([1, 200])
                    await engine.documents.update(document.id, text=text)
                else:
                    text = f"said {name} {number} " * chance.choice([1, 200])
                    message = NewMessage(text, key=key, author=str(name))
                    await engine.channels.add_messages(message, channel=CHANNEL)
                await engine.channels.list_messages(channel=CHANNEL)
                await engine.channels.window("said", 300, channel=CHANNEL)
            except ConspectusError as fault:
                faults.append(fault)

    await engine.collections.get_or_create_source(CHANNEL, kind="channel")
    await asyncio.gather(*map(change_messages, range(6)))
    unexpected = [fault for fault in faults if not isinstance(fault, NotFound | PreconditionFailed)]
    assert unexpected == []
    for message in await engine.channels.list_messages(channel=CHANNEL):
        assert len(set(message.text.split())) == 3
        assert message.text == await engine.documents.get_text(message.document.id)
    assert (await engine.maintenance.check()).clean


async def test_a_message_is_edited_while_it_is_answered(engine: Engine) -> None:
    await engine.channels.add_messages(
        [NewMessage("root", key="r"), NewMessage("in it", key="1", reply_to="r")], channel=CHANNEL
    )
    edits = [NewMessage(f"edited {number}", key="1") for number in range(10)]
    replies = [NewMessage(f"reply {number}", key=f"a{number}", reply_to="1") for number in range(10)]
    turns = [turn for pair in zip(edits, replies, strict=True) for turn in pair]
    await asyncio.gather(*(engine.channels.add_messages(message, channel=CHANNEL) for message in turns))
    messages = await documents_by_key(engine)
    assert len(messages) == 12
    assert {message.thread for message in messages.values()} == {"r"}
    assert messages["1"].metadata == {REPLY_TO: "r"}


@pytest.mark.slow
async def test_two_processes_post_into_one_channel(engine: Engine, tmp_path: Path) -> None:
    await engine.collections.get_or_create_source(CHANNEL, kind="channel")
    command = [str(POSTER), str(tmp_path / "store"), "post", CHANNEL]
    others = [
        await asyncio.create_subprocess_exec(sys.executable, *command, str(seed), "40", stdout=PIPE)
        for seed in (1, 2)
    ]
    own_posts = asyncio.gather(
        *(
            engine.channels.add_messages(
                NewMessage(f"own {number}", key=f"own-{number}", author="own"), channel=CHANNEL
            )
            for number in range(40)
        )
    )
    outputs = [
        output.decode().splitlines()
        for output, _ in await asyncio.gather(*(process.communicate() for process in others))
    ]
    await own_posts
    assert [process.returncode for process in others] == [0, 0]
    there: set[str] = {f"own-{number}" for number in range(40)}
    for line in (line for lines in outputs for line in lines if line.startswith("done ")):
        _, operation, key, _ = line.split(" ", 3)
        there = there | {key} if operation == "put" else there - {key}
    messages = await documents_by_key(engine)
    assert messages.keys() == there
    assert_replies_in_threads(messages)
    assert (await engine.maintenance.check()).clean
