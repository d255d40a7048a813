"""Whatever stands in an export: only our own errors come out, and no well-formed message is lost."""

import json
import math
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st
from tests.chat_exports import discord, folder, posted, read, said, slack, zipped

from conspectus.errors import ConspectusError
from conspectus.ingest.document_fields import check_name, storable
from conspectus.model.channels import ARCHIVE_KINDS, ArchiveKind, ChatArchive
from conspectus.settings import Settings
from conspectus.sources.chats.irc_lines import IrcEntry, parse_line
from conspectus.text.clean import clean

FIELDS = (
    "id", "name", "type", "text", "ts", "user", "users", "profile", "display_name", "real_name",
    "is_bot", "bot_id", "bot_profile", "username", "user_profile", "thread_ts", "reply_count",
    "edited", "reactions", "count", "attachments", "title", "fallback", "pretext", "fields",
    "value", "blocks", "elements", "url", "user_id", "channel_id", "style", "files", "file", "mode",
    "preview", "comment", "members", "topic", "purpose", "is_private", "nickname", "isBot",
    "timestamp", "timestampEdited", "reference", "messageId", "mentions", "embeds", "description",
    "author", "fileName", "stickers", "forwardedMessage", "content", "emoji", "code", "isPinned",
    "category", "categoryId", "at", "date", "time", "key", "reply_to", "thread", "role", "channel",
    "metadata", "answers",
)  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.sampled_from(
        ["", " ", "1.5", "99999999999.9", "1e400", "U1", "2024-01-05", "rich_text", "text", "<@U1>"]
    )
)
JUNK = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
)
Wanted: TypeAlias = list[tuple[str, dict[str, object]]]
SLACK_FREE = sorted({*FIELDS, "client_msg_id", "replies"} - {"type", "text", "ts"})
DISCORD_FREE = sorted({*FIELDS, "embeds"} - {"id", "content"})
LINE_FREE = sorted({*FIELDS} - {"text", "id", "key"})
KINDS = st.sampled_from([None, "bot_message", "channel_topic", "me_message", "bot_add", "thread_broadcast"])
TEXT = st.text(min_size=1, max_size=30).filter(lambda text: text.strip() != "")


def extras(names: Sequence[str]) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(st.sampled_from(names), JUNK, max_size=6)


def some(names: Sequence[str]) -> st.SearchStrategy[Wanted]:
    """Texts that must be found again, each with fields that may hold anything."""
    return st.lists(st.tuples(TEXT, extras(names)), min_size=1, max_size=5)


def read_files(files: dict[str, object], kind: ArchiveKind | None = None) -> ChatArchive:
    with tempfile.TemporaryDirectory() as directory:
        return read(zipped(Path(directory) / "a.zip", files), kind)


def assert_sound(archive: ChatArchive) -> None:
    """What comes out can be stored as it is."""
    assert len({channel.name for channel in archive.channels}) == len(archive.channels)
    for channel in archive.channels:
        assert check_name("source", channel.name)
        storable(channel.metadata, Settings())
        keys = [message.key for message in channel.messages]
        assert len(set(keys)) == len(keys) > 0
        for message in channel.messages:
            assert message.text.strip() and clean(message.text) == message.text
            assert message.key and clean(message.key) == message.key
            assert message.author is None or (message.author.strip() and len(message.author) <= 200)
            assert message.at is None or (isinstance(message.at, datetime) and message.at.tzinfo is not None)
            storable(message.metadata, Settings())


def all_texts(archive: ChatArchive) -> set[str]:
    return {message.text for channel in archive.channels for message in channel.messages}


@given(rows=some(SLACK_FREE), kind=KINDS, junk=st.lists(JUNK, max_size=3), users=JUNK, rooms=JUNK)
def test_slack(rows: Wanted, kind: str | None, junk: list[object], users: object, rooms: object) -> None:
    messages = [
        {**said(f"17044500{number:02}.000001", "x"), "subtype": kind, **more, "text": f"{number}:{text}"}
        for number, (text, more) in enumerate(rows)
    ]
    lists = {"users.json": users, "channels.json": rooms, "general/2024-01-06.json": rooms}
    archive = read_files(slack(*junk, *messages, **lists))
    assert_sound(archive)
    texts = all_texts(archive)
    assert all(any(text.startswith(f"{number}:") for text in texts) for number in range(len(rows)))
    keys = {message.key for channel in archive.channels for message in channel.messages}
    assert keys >= {f"17044500{number:02}.000001" for number in range(len(rows))}


@given(rows=some(DISCORD_FREE), junk=st.lists(JUNK, max_size=3), channel=JUNK, guild=JUNK)
def test_discord(rows: Wanted, junk: list[object], channel: object, guild: object) -> None:
    messages = [
        {**posted(str(1000 + number), "x"), **more, "content": f"{number}:{text}"}
        for number, (text, more) in enumerate(rows)
    ]
    about = channel if isinstance(channel, dict) else {}
    value = {**discord(*junk, *messages, **about), "guild": guild}
    archive = read_files({"a.json": value, "b.json": channel, "c.json": guild}, "discord")
    assert_sound(archive)
    texts = all_texts(archive)
    assert all(any(f"{number}:" in text for text in texts) for number in range(len(rows)))


@given(rows=some(LINE_FREE), junk=st.lists(JUNK, max_size=3))
def test_json_lines(rows: Wanted, junk: list[object]) -> None:
    values = [{**more, "text": f"{number}:{text}", "id": number} for number, (text, more) in enumerate(rows)]
    lines = "\n".join(json.dumps(line) for line in [*junk, *values])
    archive = read_files({"a.jsonl": lines}, "jsonl")
    assert_sound(archive)
    assert all_texts(archive) >= {clean(f"{number}:{text}") for number, (text, _) in enumerate(rows)}


@given(st.lists(TEXT.filter(lambda text: "\n" not in text), min_size=1, max_size=8), st.text(max_size=60))
def test_logs(texts: list[str], junk: str) -> None:
    lines = [f"[10:{number:02}] <ann> {number}:x{text}" for number, text in enumerate(texts)]
    archive = read_files({"#a/2024-01-05.log": "\n".join([*lines, junk]).encode("utf-8", "replace")}, "irc")
    assert_sound(archive)
    contents = all_texts(archive)
    assert all(any(text.startswith(f"{number}:x") for text in contents) for number in range(len(texts)))


@given(st.text(max_size=80) | st.from_regex(r"\[?\d\d:\d\d(:\d\d)?\]? .{0,40}", fullmatch=True))
def test_no_line_is_too_odd(line: str) -> None:
    parsed_line = parse_line(line)
    assert not isinstance(parsed_line, IrcEntry) or parsed_line.event or parsed_line.nick


@given(
    st.dictionaries(
        st.sampled_from(
            ["users.json", "channels.json", "x/2024-01-05.json", "a.json", "b.jsonl", "c.log", "../d"]
        ),
        st.binary(max_size=60) | JUNK,
        max_size=5,
    ),
    st.sampled_from([None, *ARCHIVE_KINDS]),
    st.booleans(),
)
def test_any_files_at_all(files: dict[str, object], kind: ArchiveKind | None, packed: bool) -> None:
    with tempfile.TemporaryDirectory() as directory, suppress(ConspectusError):
        make = zipped if packed else folder
        inside = {name: content for name, content in files.items() if packed or ".." not in name}
        assert_sound(read(make(Path(directory) / "a", inside), kind))


@given(st.binary(max_size=300), st.integers(0, 2000), st.integers(0, 20))
def test_any_damage_to_an_archive(patch: bytes, start: int, cut: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = zipped(Path(directory) / "a.zip", slack(said("1.0", "kept"), said("2.0", "too")))
        data = path.read_bytes()
        path.write_bytes(data[:start] + patch[:cut] + data[start + math.ceil(cut / 2) :])
        with suppress(ConspectusError):
            assert_sound(read(path))
