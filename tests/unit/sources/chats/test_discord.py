"""Discord exports: replies, threads, forums, embeds, and files that are parts of one channel."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.chat_exports import discord, folder, only, posted, read, zipped

from conspectus.errors import UnreadableFile
from conspectus.model.channels import NewMessage


def test_a_channel_and_its_messages(tmp_path: Path) -> None:
    answer = posted("101", "hi <@1> <@!9> <:wave:5>", type="Reply", reference={"messageId": "100"})
    path = folder(tmp_path / "a", {"general [10].json": discord(posted("100", "hello"), answer)})
    archive = read(path)
    channel = only(archive)
    assert (archive.kind, channel.name, archive.notices) == ("discord", "general", ())
    assert channel.metadata == {"private": False, "topic": "all of it", "category": "Text", "guild": "Home"}
    moment = datetime(2024, 1, 5, 8, 0, 0, 123000, tzinfo=UTC)
    assert channel.messages == (
        NewMessage("hello", key="100", author="Annie", at=moment),
        NewMessage("hi @Annie @9 :wave:", key="101", author="Annie", at=moment, reply_to="100"),
    )


def test_one_file_alone_and_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    folder(tmp_path, {"export.json": discord(*(posted(str(n), f"text {n}") for n in range(500)))})
    assert len(only(read(path)).messages) == 500


def test_a_message_on_a_line_of_its_own_is_no_line_of_another_format(tmp_path: Path) -> None:
    """The last message of a file that is printed tightly has no comma behind it."""
    messages = [posted(str(number), f"text {number}") for number in range(3)]
    origin = json.dumps({name: part for name, part in discord().items() if name != "messages"})[:-1]
    rows = ",\n".join(map(json.dumps, messages))
    path = folder(tmp_path / "a", {"a.json": f'{origin},\n"messages": [\n{rows}\n],\n"messageCount": 3}}'})
    archive = read(path / "a.json")
    assert (archive.kind, archive.notices) == ("discord", ())
    assert [message.text for message in only(archive).messages] == ["text 0", "text 1", "text 2"]


def test_forwarded_embeds_stickers_and_files_are_text(tmp_path: Path) -> None:
    embed = {
        "title": "T",
        "description": "D",
        "author": {"name": "A"},
        "fields": [{"name": "n", "value": "v"}, 3],
    }
    message = posted(
        "1",
        "",
        embeds=[embed, None],
        attachments=[{"fileName": "a.png"}, {}],
        stickers=[{"name": "cat"}],
        poll={"question": {"text": "Tea?"}, "answers": [{"text": "yes", "votes": 2}, {}]},
        forwardedMessage={"content": "as I said", "forwardedMessage": {"content": "never"}},
        timestampEdited="2024-01-05T11:00:00+00:00",
        reactions=[{"emoji": {"name": "👍"}, "count": 2}, {"emoji": 5, "count": "x"}],
        isPinned=True,
    )
    (imported,) = only(read(folder(tmp_path / "a", {"a.json": discord(message)}))).messages
    assert imported.text == "A\nT\nD\nn: v\nFile: a.png\nSticker: cat\nTea?\n- yes\nas I said"
    assert imported.metadata == {
        "edited": "2024-01-05T11:00:00.000000Z",
        "reactions": {"👍": 2},
        "files": ["a.png"],
        "pinned": True,
    }


@pytest.mark.parametrize(
    ("kind", "bot", "role"),
    [
        ("Default", False, None),
        ("Default", True, "bot"),
        ("Reply", True, "bot"),
        ("20", True, "bot"),
        ("ThreadCreated", False, "system"),
        ("ChannelPinnedMessage", True, "system"),
        ("24", True, "system"),
        (None, False, None),
    ],
)
def test_roles(tmp_path: Path, kind: str | None, bot: bool, role: str | None) -> None:
    message = posted("1", "x", type=kind, author={"id": "1", "name": "a", "isBot": bot})
    (imported,) = only(read(folder(tmp_path / "a", {"a.json": discord(message)}))).messages
    assert imported.role == role
    assert imported.metadata == ({"event": kind} if role == "system" else {})


@pytest.mark.parametrize("kind", ["GuildMemberJoin", "RecipientAdd", "RecipientRemove", "7"])
def test_members_who_join_or_leave_are_no_content(tmp_path: Path, kind: str) -> None:
    joined = posted("1", "Joined the server.", type=kind)
    archive = read(folder(tmp_path / "a", {"a.json": discord(joined, posted("2", "hello"))}))
    assert [message.text for message in only(archive).messages] == ["hello"]
    assert archive.notices == ("members who join or leave, skipped: 1 (a.json#1)",)


def test_a_thread_stands_in_its_channel_with_the_message_that_began_it(tmp_path: Path) -> None:
    thread = {"id": "100", "type": "GuildPublicThread", "categoryId": "10", "category": "general"}
    files = {
        "b.json": discord(posted("100", "who knows?"), posted("102", "later")),
        "a.json": discord(posted("101", "I do"), **thread, name="Help", topic=None),
    }
    channel = only(read(folder(tmp_path / "a", files)))
    assert (channel.name, channel.metadata["topic"]) == ("general", "all of it")
    assert {(one.text, one.thread) for one in channel.messages} == {
        ("who knows?", "100"),
        ("I do", "100"),
        ("later", None),
    }
    assert {one.text: one.metadata for one in channel.messages}["I do"] == {"thread_title": "Help"}


def test_posts_of_a_forum_are_threads_that_begin_with_their_title(tmp_path: Path) -> None:
    post = {"type": "GuildPublicThread", "categoryId": "7", "category": "questions", "topic": None}
    files = {
        "a.json": discord(
            posted("100", "It fails."), posted("101", "Why?"), **post, id="100", name="Install"
        ),
        "b.json": discord(posted("200", "It works."), **post, id="200", name="Done"),
    }
    channel = only(read(zipped(tmp_path / "a.zip", files)))
    assert channel.name == "questions"
    assert [(one.text, one.thread) for one in channel.messages] == [
        ("Install\n\nIt fails.", "100"),
        ("Why?", "100"),
        ("Done\n\nIt works.", "200"),
    ]


def test_what_only_some_may_read_is_private_and_apart(tmp_path: Path) -> None:
    closed = {"id": "5", "type": "GuildPrivateThread", "categoryId": "10", "category": "general"}
    direct = {"id": "6", "type": "DirectTextChat", "category": "Private", "name": "ann"}
    files = {
        "a.json": discord(posted("1", "open")),
        "b.json": discord(posted("2", "closed"), **closed, name="talk"),
        "c.json": discord(posted("3", "psst"), **direct),
    }
    archive = read(folder(tmp_path / "a", files))
    channels = [(channel.name, channel.metadata["private"]) for channel in archive.channels]
    assert channels == [("general", False), ("general / talk", True), ("ann", True)]
    assert archive.channels[2].metadata["members"] == ["Annie"]


def test_parts_of_a_channel_are_one_and_overlaps_are_counted(tmp_path: Path) -> None:
    files = {
        "g [part 1].json": discord(posted("1", "a"), posted("2", "b")),
        "g [part 2].json": discord(posted("2", "b"), posted("3", "c")),
        "other.json": discord(posted("1", "x"), id="11", category="Elsewhere"),
        "more.json": discord(posted("1", "y"), id="12", category="Elsewhere", type="GuildVoiceChat"),
    }
    archive = read(folder(tmp_path / "a", files))
    assert {channel.name: len(channel.messages) for channel in archive.channels} == {
        "general": 3,
        "Elsewhere / general": 1,
        "Home / Elsewhere / general": 1,
    }
    assert archive.notices == ("duplicate messages, kept once: 1 (2)",)


def test_what_cannot_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    broken = posted("3", "when?", timestamp="yesterday", author="ann")
    nameless = posted("5", "b", author={"id": 3, "name": None})
    files = {
        "a.json": discord(posted("1", "a"), posted("2", ""), 5, broken, {"content": "bare"}, nameless),
        "b.json": '{"guild": {"id": ',
        "c.json": {"other": 1},
        "d.json": {**discord(), "messages": None},
        "picture.png": b"\x89PNG",
    }
    archive = read(folder(tmp_path / "x", files))
    messages = [
        (message.key, message.text, message.author, message.at is None) for message in only(archive).messages
    ]
    assert messages == [
        ("1", "a", "Annie", False),
        ("3", "when?", None, True),
        ("a.json#5", "bare", None, True),
        ("5", "b", "3", False),
    ]
    assert archive.notices == (
        "other files, skipped: 1 (picture.png)",
        "messages without text, skipped: 1 (a.json#2)",
        "entries that are not messages, skipped: 1 (a.json#3)",
        "messages with an invalid time, kept without it: 2 (a.json#4, a.json#5)",
        "files that are not JSON, skipped: 1 (b.json)",
        "files without a channel, skipped: 2 (c.json, d.json)",
    )


def test_pictures_beside_the_messages_are_not_looked_into(tmp_path: Path) -> None:
    pictures = {f"a_Files/{n}.png": b"\x89PNG\r\n" + bytes(range(256)) * 500 for n in range(50)}
    archive = read(folder(tmp_path / "x", {"a.json": discord(posted("1", "a")), **pictures}))
    assert len(only(archive).messages) == 1
    assert archive.notices[0].startswith("other files, skipped: 50 (a_Files/0.png")


def test_a_file_called_discord_that_is_not_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "x", {"a.json": [1, 2]}) / "a.json"
    with pytest.raises(UnreadableFile, match="without a channel"):
        read(path, "discord")
