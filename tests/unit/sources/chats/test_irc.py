"""IRC logs in the shapes that clients and bouncers write, with their days and what is no message."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.chat_exports import folder, only, read, zipped

from conspectus.errors import UnreadableFile
from conspectus.model.channels import NewMessage

ZONELESS = "times without a time zone, read as UTC"


def read_log(path: Path, name: str, text: str | bytes) -> tuple[NewMessage, ...]:
    return only(read(folder(path, {name: text}) / name, "irc")).messages


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "author", "text", "role"),
    [
        ("[12:00] <ann> hello", "ann", "hello", None),
        ("12:00 <ann> hello", "ann", "hello", None),
        ("12:00 < ann> hello", "ann", "hello", None),
        ("12:00 <@ann> hello", "ann", "hello", None),
        ("[12:00:00] <|ann|> a <b> c", "|ann|", "a <b> c", None),
        ("[12:00:00] <bridge bot> hi", "bridge bot", "hi", None),
        ("(12:00:00) <ann> hi", "ann", "hi", None),
        ("[12:00:00.5] <ann> hi", "ann", "hi", None),
        ("[12:00 AM] <ann> hi", "ann", "hi", None),
        ("2024-01-05 12:00:00\tann\thello\tyou", "ann", "hello\tyou", None),
        ("2024-01-05 12:00:00\t@ann\thello", "ann", "hello", None),
        ("2024-01-05 12:00:00\t *\tann waves", "ann", "waves", None),
        ("2024-01-05T12:00:00Z <ann> hi", "ann", "hi", None),
        ("Jan 05 12:00:00 <ann>\thi", "ann", "hi", None),
        ("12:00 * ann waves", "ann", "waves", None),
        ("12:00 * ann has left the building", "ann", "has left the building", None),
        ("12:00 * ann is now known as anna", None, "ann is now known as anna", "system"),
        ("12:00 -ChanServ:#x- be nice", "ChanServ", "be nice", None),
        ("\x0312,4[12:00]\x03 <\x02ann\x0f> \x1dhi\x1f", "ann", "hi", None),
        ("dec 31 21:11:55 --- bob gives voice to ann", None, "bob gives voice to ann", "system"),
        ("2026-06-10T14:03:01.123456Z\tann\thi", "ann", "hi", None),
        ("[12:00:00]<ann> hi", "ann", "hi", None),
        ("<ann> no time", "ann", "no time", None),
    ],
)
def test_shapes(tmp_path: Path, line: str, author: str | None, text: str, role: str | None) -> None:
    (message,) = read_log(tmp_path, "x.log", f"{line}\r\n")
    assert (message.author, message.text, message.role) == (author, text, role)
    assert message.metadata == ({"action": True} if " waves" in line or " building" in line else {})


@pytest.mark.parametrize(
    "line",
    [
        "2024-01-05 12:00:00\t-->\tann (a@b) has joined #x",
        "12:00 * ann (a@b) has joined #x",
        "12:00 -!- ann [a@b] has joined #x",
        "[12:00:00] *** Joins: ann (a@b)",
        "=== ann joined",
        "[12:00] ann (a@b) joined #x.",
        "12:00 -!- ann [a@b] has quit [Leaving]",
        "[12:00:00] *** Parts: ann (a@b)",
    ],
)
def test_members_who_join_or_leave_are_no_content(tmp_path: Path, line: str) -> None:
    path = folder(tmp_path, {"x.log": f"{line}\n12:01 <ann> hello\n"}) / "x.log"
    archive = read(path, "irc")
    assert [message.text for message in only(archive).messages] == ["hello"]
    assert archive.notices[-1].startswith("members who join or leave, skipped: 1") or "skipped: 1" in str(
        archive.notices
    )


def test_irssi_days_are_told_by_lines_of_their_own(tmp_path: Path) -> None:
    text = (
        "--- Log opened Fri Jan 05 23:58:00 2024\n23:59 <ann> one\n--- Day changed Sat Jan 06 2024\n"
        "00:01 <bob> two\n--- Log closed Sat Jan 06 00:02:00 2024\n"
        "--- Log opened Mon Jan 08 10:00:00 2024\n10:00 <ann> three\n"
    )
    path = folder(tmp_path, {"#dev.log": text}) / "#dev.log"
    archive = read(path)
    channel = only(archive)
    assert (archive.kind, channel.name) == ("irc", "#dev")
    assert [(one.key, one.at) for one in channel.messages] == [
        ("#dev.log:2", utc(2024, 1, 5, 23, 59)),
        ("#dev.log:4", utc(2024, 1, 6, 0, 1)),
        ("#dev.log:7", utc(2024, 1, 8, 10, 0)),
    ]
    assert archive.notices == (f"{ZONELESS}: 3",)


def test_znc_has_a_file_a_day_below_the_channel(tmp_path: Path) -> None:
    files = {
        "net/#dev/2024-01-06.log": "[00:01:02] <bob> two\n",
        "net/#dev/2024-01-05.log": "[23:59:59] <ann> one\n[00:00:01] <ann> past midnight\n",
        "net/#ops/2024-01-05.log": "[10:00:00] <x> here\n",
        "other/#dev/2024-01-05.log": "[10:00:00] <eve> elsewhere\n",
        "readme.md": "# logs\n",
    }
    archive = read(zipped(tmp_path / "a.zip", files))
    assert [(channel.name, len(channel.messages)) for channel in archive.channels] == [
        ("#dev", 3),
        ("#ops", 1),
        ("other/#dev", 1),
    ]
    moments = [(one.key, one.at) for one in archive.channels[0].messages]
    assert moments == [
        ("2024-01-05.log:1", utc(2024, 1, 5, 23, 59, 59)),
        ("2024-01-05.log:2", utc(2024, 1, 6, 0, 0, 1)),
        ("2024-01-06.log:1", utc(2024, 1, 6, 0, 1, 2)),
    ]
    assert archive.notices == ("other files, skipped: 1 (readme.md)", f"{ZONELESS}: 5")


def test_without_a_day_times_are_unknown_and_the_order_stays(tmp_path: Path) -> None:
    path = folder(tmp_path, {"chat.txt": "23:00 <a> one\n01:00 <b> two\n00:30 <c> three\n"}) / "chat.txt"
    archive = read(path)
    messages = only(archive).messages
    assert [(message.text, message.at) for message in messages] == [
        ("one", None),
        ("two", None),
        ("three", None),
    ]
    assert archive.notices == ("messages without a date, kept without a time: 3",)


def test_a_clock_that_is_put_back_does_not_begin_a_day(tmp_path: Path) -> None:
    text = "[02:59] <a> x\n[02:00] <a> y\n[23:00] <a> z\n[20:00] <a> next\n"
    moments = [one.at for one in read_log(tmp_path, "#a_20240105.log", text)]
    assert moments == [
        utc(2024, 1, 5, 2, 59),
        utc(2024, 1, 5, 2, 0),
        utc(2024, 1, 5, 23, 0),
        utc(2024, 1, 6, 20, 0),
    ]


def test_months_that_begin_anew_begin_a_year(tmp_path: Path) -> None:
    text = (
        "**** BEGIN LOGGING AT Sun Dec 31 10:00:00 2023\n\nDec 31 23:59:00 <a>\tx\nJan 01 00:01:00 <a>\ty\n"
    )
    assert [one.at for one in read_log(tmp_path, "x.log", text)] == [
        utc(2023, 12, 31, 23, 59),
        utc(2024, 1, 1, 0, 1),
    ]


def test_zones_are_respected(tmp_path: Path) -> None:
    messages = read_log(tmp_path, "x.log", "[2024-01-05 01:00:00+0200] <a> x\n2024-01-05T01:00:00Z <a> y\n")
    assert [message.at for message in messages] == [utc(2024, 1, 4, 23), utc(2024, 1, 5, 1)]


@pytest.mark.parametrize(
    "line",
    [
        "25:00 <a> x",
        "12:61 <a> x",
        "[13:00 PM] <a> x",
        "[2024-13-01 10:00:00] <a> x",
        "just text",
        "[2024-01-05 10:00:00] INFO started",
    ],
)
def test_lines_of_no_shape_are_counted_with_their_numbers(tmp_path: Path, line: str) -> None:
    path = folder(tmp_path, {"a.log": f"[10:00] <a> x\n\n{line}\n[10:01] <a>\n"}) / "a.log"
    notices = read(path, "irc").notices
    assert notices[:2] == (
        "messages without a date, kept without a time: 1",
        "messages without text, skipped: 1 (a.log:4)",
    )
    assert notices[2] == "lines in an unknown format, skipped: 1 (a.log:3)"


@pytest.mark.parametrize("day", ["9999-12-31", "1988-01-01"])
def test_days_at_the_ends_of_time(tmp_path: Path, day: str) -> None:
    text = f"{day} 23:00:00\ta\tx\n01:00 <a> y\n[{day} 23:59:60] <a> z\n[{day} 00:00:00+2359] <a> w\n"
    assert [one.text for one in read_log(tmp_path, "x.log", text)] == ["x", "y", "z", "w"]


def test_old_encodings_and_only_newlines_end_lines(tmp_path: Path) -> None:
    text = "[10:00] <jürgen> größer, schöner\x0b\x85 und weiter\n[10:01] <é> à bientôt, déjà vu\n"
    messages = read_log(tmp_path, "x.log", text.replace("\x85", " ").encode("cp1252"))
    assert [message.author for message in messages] == ["jürgen", "é"]


@pytest.mark.parametrize(
    "unit", ["<", "< ", "<a ", "* ", "-a:", "-a:-", "12:00 ", "\t", "<a><", "--- Log Jan "]
)
def test_endless_lines_are_read_in_time_that_grows_with_them(tmp_path: Path, unit: str) -> None:
    path = folder(tmp_path, {"a.log": f"[10:00] <a> x\n{unit * 200_000}\n12:00 {unit * 200_000}\n"}) / "a.log"
    assert only(read(path, "irc")).messages[0].text == "x"


def test_a_log_without_a_single_message_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, {"a.log": "dear diary\ntoday\n"}) / "a.log"
    with pytest.raises(UnreadableFile, match="files without messages"):
        read(path, "irc")
