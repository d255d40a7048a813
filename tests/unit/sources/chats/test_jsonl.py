"""Messages as JSON Lines: the names that fields go by, bad lines, and what becomes of all other fields."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.chat_exports import folder, only, read

from conspectus.errors import UnreadableFile, UnsupportedContent
from conspectus.model.channels import NewMessage
from conspectus.settings import Settings
from conspectus.sources.chats.archives import LocalArchives


def write_lines(path: Path, *rows: object) -> Path:
    """A file of lines."""
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    return folder(path, {"talk.jsonl": text + "\n"}) / "talk.jsonl"


def read_one(path: Path, **fields: object) -> NewMessage:
    (message,) = only(read(write_lines(path, {"text": "hi", **fields}))).messages
    return message


MOMENT = datetime(2024, 1, 5, 10, 20, 0, tzinfo=UTC)


def test_a_line_with_the_names_of_new_message(tmp_path: Path) -> None:
    fields = {"text": "hi", "key": "7", "author": "ann", "at": "2024-01-05T10:20:00Z", "reply_to": "6"}
    archive = read(
        write_lines(tmp_path, {**fields, "thread": "t", "role": "bot", "metadata": {"a": [1, None]}})
    )
    channel = only(archive)
    assert (archive.kind, channel.name, channel.metadata, archive.notices) == ("jsonl", "talk", {}, ())
    assert channel.messages == (
        NewMessage(
            "hi",
            key="7",
            author="ann",
            at=MOMENT,
            reply_to="6",
            thread="t",
            role="bot",
            metadata={"a": [1, None]},
        ),
    )


@pytest.mark.parametrize("name", ["text", "content", "body"])
def test_names_of_the_text(tmp_path: Path, name: str) -> None:
    assert only(read(write_lines(tmp_path, {name: " hi "}))).messages[0].text == " hi "


@pytest.mark.parametrize("name", ["author", "user", "sender", "name"])
@pytest.mark.parametrize("author", ["ann", {"name": "ann", "id": 5}, {"username": "ann"}])
def test_names_of_the_author(tmp_path: Path, name: str, author: object) -> None:
    assert read_one(tmp_path, **{name: author}).author == "ann"


@pytest.mark.parametrize("name", ["at", "time", "timestamp", "ts", "date"])
@pytest.mark.parametrize(
    "stamp",
    [
        "2024-01-05T12:20:00+02:00",
        "2024-01-05 10:20",
        1704450000,
        "1704450000.000",
        1704450000000,
        "1704450000000",
    ],
)
def test_names_and_forms_of_the_time(tmp_path: Path, name: str, stamp: object) -> None:
    assert read_one(tmp_path, **{name: stamp}).at == MOMENT


def test_a_date_and_a_time_of_day_are_one_moment(tmp_path: Path) -> None:
    message = read_one(tmp_path, date="2024-01-05", time="10:20")
    assert (message.at, message.metadata) == (MOMENT, {})
    assert read_one(tmp_path, date="2024-01-05", time=None).at is None


@pytest.mark.parametrize(
    ("name", "field"),
    [
        *((name, "key") for name in ("id", "key")),
        *((name, "reply_to") for name in ("reply_to", "parent", "in_reply_to")),
        *((name, "thread") for name in ("thread", "thread_id")),
    ],
)
def test_names_of_keys(tmp_path: Path, name: str, field: str) -> None:
    assert getattr(read_one(tmp_path, **{name: "a"}), field) == "a"
    assert getattr(read_one(tmp_path, **{name: 12}), field) == "12"


@pytest.mark.parametrize("name", ["channel", "room", "conv"])
def test_names_of_the_channel(tmp_path: Path, name: str) -> None:
    archive = read(
        write_lines(tmp_path, {"text": "a", name: "#x"}, {"text": "b", name: {"id": 3}}, {"text": "c"})
    )
    assert [channel.name for channel in archive.channels] == ["#x", "3", "talk"]


@pytest.mark.parametrize(
    ("sender", "role"), [("user", None), ("Human", None), ("assistant", "assistant"), ("system", "system")]
)
def test_people_have_no_role(tmp_path: Path, sender: str, role: str | None) -> None:
    assert read_one(tmp_path, role=sender).role == role


def test_lines_are_put_in_time_and_keys_told_apart(tmp_path: Path) -> None:
    archive = read(
        write_lines(
            tmp_path,
            {"text": "late", "at": 30, "id": 1},
            {"text": "unknown", "id": 2},
            {"text": "early", "at": 10, "id": 1},
        )
    )
    messages = [(message.key, message.text) for message in only(archive).messages]
    assert messages == [("1~2", "early"), ("1", "late"), ("2", "unknown")]


def test_bad_lines_are_counted_and_numbered(tmp_path: Path) -> None:
    deep = "[" * 100_000
    bad = ["{", deep, "[1]", "null", '"text"', '{"text": 5}', "{}", '{"text": "x"} {"text": "y"}']
    archive = read(write_lines(tmp_path, {"text": "good"}, "", *bad, {"text": " "}, {"text": "also"}))
    assert [message.text for message in only(archive).messages] == ["good", "also"]
    assert archive.notices == (
        "lines without a message, skipped: 8 (talk.jsonl:3, talk.jsonl:4, talk.jsonl:5, "
        "talk.jsonl:6, talk.jsonl:7, …)",
        "messages without text, skipped: 1 (talk.jsonl:11)",
    )


ROWS = [{"id": "1", "text": "one"}, {"id": "2"}, {"id": "3", "text": "two"}, {"id": "3", "deleted": True}]


@pytest.mark.parametrize(
    "text", [json.dumps(ROWS), json.dumps(ROWS, indent=1), "[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]"]
)
def test_a_list_of_messages_is_read_whole(tmp_path: Path, text: str) -> None:
    archive = read(folder(tmp_path / "a", {"talk.json": text}) / "talk.json")
    assert [message.text for message in only(archive).messages] == ["one"]
    assert archive.notices == (
        "lines without a message, skipped: 1 (talk.json:2)",
        "messages deleted on the platform, skipped: 1 (talk.json:4)",
    )


@pytest.mark.parametrize(
    "row", [{"type": "message", "user": "U1", "text": "hi", "ts": "1704449999.1"}, {}, 5]
)
def test_other_lists_are_no_messages(tmp_path: Path, row: object) -> None:
    with pytest.raises(UnsupportedContent, match="is not a known export"):
        read(folder(tmp_path / "a", {"talk.json": json.dumps([row])}) / "talk.json")


def test_a_file_of_bad_lines_only_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="skipped: 2"):
        read(write_lines(tmp_path, "{", "[]"), "jsonl")


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    odd = "a\u2028b\u0085c\x0bd"
    path = tmp_path / "a.jsonl"
    path.write_text(
        json.dumps({"text": odd, "id": "é"}, ensure_ascii=False).replace("\\u000b", "\x0b"), "utf-8"
    )
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\x0b", b"\\u000b") + b"\r\n\r\n")
    assert [message.text for message in only(read(path)).messages] == [odd]


def test_a_time_that_cannot_be_read_is_counted_and_kept(tmp_path: Path) -> None:
    archive = read(write_lines(tmp_path, {"text": "a", "time": "noon"}, {"text": "b", "ts": 1e300}))
    assert [(message.at, message.metadata) for message in only(archive).messages] == [
        (None, {"time": "noon"}),
        (None, {"ts": 1e300}),
    ]
    assert archive.notices[0].startswith("messages with an invalid time, kept without it: 2")


def test_other_fields_are_metadata_as_far_as_they_can_be_stored(tmp_path: Path) -> None:
    deep: object = 1
    for _ in range(16):
        deep = [deep]
    fields = {"text": "a", "mood": "good", "answers": "x", "deep": deep, "reply_to": None, "metadata": 3}
    text = json.dumps(fields)[:-1] + ', "huge": 1e999}'
    archive = read(write_lines(tmp_path, text))
    assert only(archive).messages[0].metadata == {"mood": "good", "metadata": 3}
    assert archive.notices == ("metadata that cannot be stored, skipped: 1 (talk.jsonl:1)",)
    large = write_lines(tmp_path, {"text": "a", "large": "é" * 40_000})
    assert only(read(large)).messages[0].metadata == {}
    assert read(large).notices == ("metadata over the size limit, skipped: 1 (talk.jsonl:1)",)
    roomy = LocalArchives(Settings(max_metadata_bytes=100_000)).read(large)
    assert only(roomy).messages[0].metadata == {"large": "é" * 40_000}


def test_halves_of_characters_and_endless_names_can_be_stored(tmp_path: Path) -> None:
    fields = {"text": "a\ud800b\0", "author": "\udfff" + "n" * 999, "id": "k" * 2000}
    (message,) = only(read(write_lines(tmp_path, fields))).messages
    assert message.text == "a\ufffdb\ufffd"
    assert message.author is not None and len(message.author) == 200 and message.author[0] == "\ufffd"
    assert message.key is not None and len(message.key) == 517
