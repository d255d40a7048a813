"""Messages that are odd, huge, timeless or many: what was said comes back, bounded and exact."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import TooLarge
from conspectus.model.channels import ANSWERS, REPLY_TO, NewMessage
from conspectus.settings import Settings
from conspectus.testing.embedders import HashedEmbedder
from conspectus.text.clean import clean

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SETTINGS = replace(Settings(), log_level="critical", max_thread_chunks=60)
CHANNEL = "help"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        yield engine


async def list_latest(engine: Engine, channel: str = CHANNEL) -> list[tuple[str, str]]:
    return [
        (message.document.key, message.text)
        for message in await engine.channels.list_messages(channel=channel, limit=1_000)
    ]


@pytest.mark.data
@pytest.mark.slow
async def test_naughty_strings_come_back(engine: Engine, evaluation: Callable[[str], Path]) -> None:
    """As texts, authors, keys, names of channels and of threads."""
    strings = json.loads((evaluation("naughty_strings") / "blns.json").read_text(encoding="utf-8"))
    messages = [
        NewMessage(text or "-", key=f"{text}#{position}", author=text or None, reply_to=text or None)
        for position, text in enumerate(strings)
    ]
    await engine.channels.add_messages(messages, channel=CHANNEL)
    quarantined = {document.key for document in (await engine.documents.list_quarantined()).documents}
    visible = [
        (clean(message.key or ""), clean(message.text))
        for message in messages
        if clean(message.text).strip() and clean(message.key or "") not in quarantined
    ]
    assert (len(quarantined), await list_latest(engine)) == (1, visible)
    for position, text in enumerate(strings[::9]):
        stored = await engine.documents.get_by_key(f"{text}#{position * 9}", source=CHANNEL)
        assert (await engine.channels.get_reply_chain(stored.id)).message == stored.id
        window = await engine.channels.window(text, 200, channel=CHANNEL, thread=text or None)
        assert window.tokens <= 200


@pytest.mark.data
async def test_naughty_channels_come_back(
    engine: Engine, evaluation: Callable[[str], Path], tmp_path: Path
) -> None:
    strings = json.loads((evaluation("naughty_strings") / "blns.json").read_text(encoding="utf-8"))[::7]
    rows = [
        {"channel": text, "id": text, "text": f"{text} said", "thread": text, "author": text}
        for text in strings
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    report = await engine.channels.import_archive(tmp_path / "log.jsonl", kind="jsonl")
    assert sum(report.channels.values()) == report.added == await engine.documents.count()
    for name, messages in report.channels.items():
        assert len(await list_latest(engine, name)) == messages
        assert (await engine.channels.window("said", 300, channel=name, min_similarity=0.0)).tokens <= 300
    again = await engine.channels.import_archive(tmp_path / "log.jsonl", kind="jsonl")
    assert (again.added, again.replaced) == (0, 0)


async def test_a_message_of_five_megabytes(engine: Engine) -> None:
    text = "and then the deploy failed again. " * 150_000
    await engine.channels.add_messages(
        [NewMessage("before", key="1"), NewMessage(text, key="2", reply_to="1")], channel=CHANNEL
    )
    await engine.channels.add_messages(NewMessage("after", key="3"), channel=CHANNEL, link=False)
    assert (await list_latest(engine))[1] == ("2", text)
    document = await engine.documents.get_by_key("2", source=CHANNEL)
    assert [
        len(message.text) for message in (await engine.channels.get_reply_chain(document.id)).messages
    ] == [
        6,
        len(text),
    ]
    window = await engine.channels.window("deploy", 500, channel=CHANNEL, min_similarity=0.0)
    assert 0 < window.tokens <= 500
    with pytest.raises(TooLarge):
        await engine.channels.add_messages(
            NewMessage("x" * (SETTINGS.max_document_characters + 1)), channel=CHANNEL
        )


@pytest.mark.parametrize("size", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
async def test_a_long_thread_is_bounded_and_counted(engine: Engine, size: int) -> None:
    root = NewMessage("how do I restart the billing service", key="0", at=NOON)
    replies = [
        NewMessage(f"reply {n} of them", key=str(n), at=NOON + timedelta(seconds=n), reply_to="0")
        for n in range(1, size)
    ]
    needle = NewMessage("the needle xyzzy", key="n", at=NOON + timedelta(seconds=900.5), reply_to="899")
    await engine.channels.add_messages([root, *replies, needle], channel=CHANNEL, wait=True)
    document = await engine.documents.get_by_key("n", source=CHANNEL)
    chain = await engine.channels.get_reply_chain(document.id, limit=10)
    keys = [message.document.key for message in chain.messages]
    assert (len(keys), keys[0], chain.left_out) == (10, "0", size - 9)
    assert {"n", "899"} <= set(keys)
    window = await engine.channels.window("xyzzy", 300, channel=CHANNEL, min_similarity=0.0)
    assert window.tokens <= 300
    assert "xyzzy" in window.window.text
    assert {document.key for document in window.messages} >= {"0", "n", "899"}


async def test_a_channel_of_the_future_goes_on(engine: Engine) -> None:
    """A message that is dated wrongly does not keep later ones from being linked."""
    await engine.channels.add_messages(
        NewMessage("from far away", key="f", at="2999-01-01T00:00:00Z"), channel=CHANNEL
    )
    question = NewMessage("how do I restart the billing service?", key="1", author="ann", at=NOON)
    await engine.channels.add_messages(question, channel=CHANNEL)
    answer = NewMessage(
        "ann: run systemctl restart billing", key="2", author="bo", at=NOON + timedelta(seconds=20)
    )
    await engine.channels.add_messages(answer, channel=CHANNEL)
    stored = await engine.documents.get_by_key("2", source=CHANNEL)
    assert (stored.thread, stored.metadata[ANSWERS]) == ("1", "1")
    assert [key for key, _ in await list_latest(engine)] == ["1", "2", "f"]


async def test_what_came_later_is_not_answered_by_what_came_before(engine: Engine) -> None:
    """An older archive that is taken in after a newer one is linked to what was there then."""
    await engine.channels.add_messages(
        NewMessage("ann: run systemctl restart billing", key="9", author="bo", at=NOON), channel=CHANNEL
    )
    early = NOON - timedelta(days=1)
    talk = [
        NewMessage("how do I restart the billing service?", key="1", author="ann", at=early),
        NewMessage("ann: run systemctl", key="2", author="bo", at=early + timedelta(seconds=9)),
    ]
    for message in talk:
        await engine.channels.add_messages(message, channel=CHANNEL)
    assert (await engine.documents.get_by_key("2", source=CHANNEL)).metadata[ANSWERS] == "1"
    assert (await engine.documents.get_by_key("1", source=CHANNEL)).metadata == {}


@pytest.mark.parametrize("fields", [{}, {"at": NOON}, {"author": "ann"}, {"sequence": 4}])
async def test_messages_of_which_little_is_known(engine: Engine, fields: dict[str, object]) -> None:
    messages = [NewMessage(f"note {n}", key=str(n), **fields) for n in range(12)]
    await engine.channels.add_messages(messages, channel=CHANNEL, wait=True)
    assert sorted(await list_latest(engine)) == sorted((str(n), f"note {n}") for n in range(12))
    window = await engine.channels.window("note 7", 400, channel=CHANNEL, min_similarity=0.0)
    assert "7" in {document.key for document in window.messages}
    for document in window.messages:
        assert len((await engine.channels.get_reply_chain(document.id)).messages) >= 1


async def test_a_circle_of_replies_is_read_to_its_end(engine: Engine) -> None:
    circle = [
        NewMessage(
            f"part {n} of the circle", key=str(n), at=NOON + timedelta(seconds=n), reply_to=str((n + 1) % 5)
        )
        for n in range(5)
    ]
    await engine.channels.add_messages(
        [*circle, NewMessage("myself", key="me", reply_to="me")], channel=CHANNEL, wait=True
    )
    for key in ("0", "4"):
        stored = await engine.documents.get_by_key(key, source=CHANNEL)
        assert len((await engine.channels.get_reply_chain(stored.id)).messages) == 5
    window = await engine.channels.window("circle", 400, channel=CHANNEL, min_similarity=0.0)
    assert {document.key for document in window.messages} >= set("01234")


def write_log(path: Path, numbers: range) -> Path:
    rows = [
        {"channel": "ops", "id": str(n), "text": f"note {n}", "time": f"2026-03-02T12:{n // 3:02}:00Z"}
        for n in numbers
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


async def test_archives_follow_each_other_and_grow(engine: Engine, tmp_path: Path) -> None:
    expected = [(str(n), f"note {n}") for n in range(90)]
    grown, first, last = (
        write_log(tmp_path / f"{r}.jsonl", r) for r in (range(90), range(45), range(45, 90))
    )
    assert (await engine.channels.import_archive(first)).added == 45
    report = await engine.channels.import_archive(grown)
    assert (report.added, report.replaced, report.unchanged) == (45, 0, 45)
    assert await list_latest(engine, "ops") == expected
    assert (await engine.channels.import_archive(last)).unchanged == 45
    other = "other"
    for archive in (last, first):
        assert (await engine.channels.import_archive(archive, collection=other)).added == 45
    messages = await engine.channels.list_messages(channel="ops", collection=other, limit=1_000)
    assert [(message.document.key, message.text) for message in messages] == expected


async def test_replies_name_what_was_deleted(engine: Engine) -> None:
    await engine.channels.add_messages(
        [NewMessage("a", key="1"), NewMessage("b", key="2", reply_to="1")], channel=CHANNEL
    )
    await engine.documents.delete((await engine.documents.get_by_key("1", source=CHANNEL)).id)
    await engine.channels.add_messages(NewMessage("c", key="3", reply_to="1"), channel=CHANNEL)
    await engine.channels.add_messages(NewMessage("a again", key="1"), channel=CHANNEL)
    threads = [
        (message.document.key, message.document.thread)
        for message in await engine.channels.list_messages(channel=CHANNEL)
    ]
    assert sorted(threads) == [("1", "1"), ("2", "1"), ("3", "1")]
    assert (await engine.documents.get_by_key("3", source=CHANNEL)).metadata == {REPLY_TO: "1"}
