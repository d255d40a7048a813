"""Slack exports: who said what, when and in answer to what; nothing is lost without being counted."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.chat_exports import CHANNELS, USERS, folder, messages, only, read, said, slack, zipped

from conspectus.errors import UnreadableFile, UnsupportedContent
from conspectus.model.channels import NewMessage


@pytest.mark.data
def test_a_real_export_is_read_whole(evaluation: Callable[[str], Path]) -> None:
    archive = read(evaluation("slack_export_zip") / "testarchive.zip")
    assert (archive.kind, [channel.name for channel in archive.channels]) == (
        "slack",
        ["enrique", "traveling-sailor"],
    )
    everything = {message.key: message for channel in archive.channels for message in channel.messages}
    assert sum(len(channel.messages) for channel in archive.channels) == 150
    roles = [message.role for message in everything.values()]
    assert (roles.count("system"), roles.count("bot")) == (3, 94)
    comment = everything["1459106048.000018"]
    assert comment.text.startswith("```'cities': {")
    assert everything[comment.reply_to].text.startswith("@doubledeez uploaded a file: 10 cities")
    assert {m.author for m in everything.values() if m.role == "bot"} >= {"github"}
    assert archive.notices[0] == "other files, skipped: 1 (integration_logs.json)"
    assert archive.notices[1].startswith("members who join or leave, skipped: 8")


def test_the_same_export_as_zip_and_as_folder(tmp_path: Path) -> None:
    files = slack(said("1704450000.000100", "hello"), said("1704450001.000100", "world"))
    packed = read(zipped(tmp_path / "team.zip", files))
    assert packed == read(folder(tmp_path / "team", files))
    assert packed == read(zipped(tmp_path / "b.zip", {f"my export/{name}": files[name] for name in files}))
    assert packed.notices == ()
    channel = only(packed)
    assert channel.metadata == {
        "private": False,
        "topic": "A & B",
        "purpose": "talk to @Annie",
        "members": ["Annie", "Bob Ray", "U9"],
    }


def test_a_message_has_author_key_and_exact_time(tmp_path: Path) -> None:
    path = folder(tmp_path / "a", slack(said("1704450000.123456", "hello")))
    moment = datetime(2024, 1, 5, 10, 20, 0, 123456, tzinfo=UTC)
    assert only(read(path)).messages == (
        NewMessage("hello", key="1704450000.123456", author="Annie", at=moment),
    )


def test_threads_are_told_from_the_replies_and_the_parent(tmp_path: Path) -> None:
    path = folder(
        tmp_path / "a",
        slack(
            said("1704450003.000000", "more", thread_ts="1704450001.000000", user="U2"),
            said("1704450001.000000", "root", reply_count=2),
            said("1704450002.000000", "reply", thread_ts="1704450001.000000", subtype="thread_broadcast"),
            said("1704450004.000000", "alone"),
        ),
    )
    root, reply, more, alone = only(read(path)).messages
    assert [one.text for one in (root, reply, more, alone)] == ["root", "reply", "more", "alone"]
    assert (root.thread, root.reply_to) == (root.key, None)
    assert (reply.thread, reply.reply_to, reply.metadata) == (root.key, root.key, {"broadcast": True})
    assert (more.thread, more.reply_to, more.author) == (root.key, root.key, "Bob Ray")
    assert (alone.thread, alone.reply_to, alone.role) == (None, None, None)


def test_time_stamps_as_numbers_are_the_same_keys(tmp_path: Path) -> None:
    numbers = {"thread_ts": 1704450001.000002}
    by_key = messages(
        folder(
            tmp_path / "a",
            slack(said("1704450001.000002", "root"), {**said("", "x", **numbers), "ts": 1704450002}),
        )
    )
    assert list(by_key) == ["1704450001.000002", "1704450002.000000"]
    assert by_key["1704450002.000000"].reply_to == "1704450001.000002"


def test_two_messages_of_one_time_stamp_both_survive(tmp_path: Path) -> None:
    stamp = "1704450001.000002"
    path = folder(tmp_path / "a", slack(said(stamp, "one"), said(stamp, "two"), said(stamp, "three")))
    archive = read(path)
    imported = only(archive).messages
    assert [(message.key, message.text) for message in imported] == [
        (stamp, "one"),
        (f"{stamp}~2", "two"),
        (f"{stamp}~3", "three"),
    ]
    assert archive == read(path)
    assert archive.notices == (f"messages with a key that is taken, renumbered: 2 ({stamp}, {stamp})",)


def test_what_is_written_down_twice_is_kept_once_and_counted(tmp_path: Path) -> None:
    one = said("1704450001.000002", "one")
    archive = read(folder(tmp_path / "a", slack(one, one)))
    assert [message.text for message in only(archive).messages] == ["one"]
    assert archive.notices == ("duplicate messages, kept once: 1 (1704450001.000002)",)


def test_programs_and_the_platform_have_roles(tmp_path: Path) -> None:
    system = {"channel_topic", "channel_join", "group_leave", "pinned_item", "bot_add"}
    events = [said(f"170445000{n}.0", kind, subtype=kind) for n, kind in enumerate(sorted(system))]
    bots = [
        {
            "ts": "1704450010.0",
            "text": "a",
            "subtype": "bot_message",
            "username": "CI &amp; co",
            "bot_id": "B1",
        },
        {"ts": "1704450011.0", "text": "b", "bot_id": "B2", "bot_profile": {"name": "deployer"}},
        {"ts": "1704450012.0", "text": "c", "bot_id": "B3"},
        {"ts": "1704450013.0", "text": "d", "user": "U3", "bot_id": "B4"},
        {"ts": "1704450014.0", "text": "e", "user": "USLACKBOT"},
        {"ts": "1704450015.0", "text": "f", "user": "U7", "bot_id": "B7", "bot_profile": {"name": "App"}},
        {"ts": "1704450016.0", "text": "g", "user": "U7", "bot_id": "B7"},
        {"ts": "1704450017.0", "text": "h", "user": "U1", "bot_id": "B8"},
    ]
    by_key = messages(folder(tmp_path / "a", slack(*events, *bots)))
    events_of_system = {message.metadata["event"] for message in by_key.values() if message.role == "system"}
    assert events_of_system == system - {"channel_join", "group_leave"}
    assert [(message.text, message.author) for message in by_key.values() if message.role == "bot"] == [
        ("a", "CI & co"),
        ("b", "deployer"),
        ("c", "B3"),
        ("d", "Robo"),
        ("e", "Slackbot"),
        ("f", "App"),
        ("g", "App"),
    ]


def test_people_who_are_deleted_unknown_or_of_one_name_can_be_told_apart(tmp_path: Path) -> None:
    twin = {"id": "U4", "name": "ann2", "profile": {"display_name": "Annie"}}
    path = folder(
        tmp_path / "a",
        slack(
            said("1.0", "a", user="U2"),
            said("2.0", "b", user="U9"),
            said("3.0", "c", user="U8", user_profile={"real_name": "Guest", "name": "guest"}),
            said("4.0", "d", user="U4"),
            said("5.0", "e", user=None, username="via mail"),
            said("6.0", "f", user=["U1"]),
            **{"users.json": [*USERS, twin, {"name": "nobody"}, "x", None]},
        ),
    )
    authors = [message.author for message in only(read(path)).messages]
    assert authors == ["Bob Ray", "U9", "Guest", "Annie (ann2)", "via mail", None]


def test_edits_reactions_and_actions_are_kept(tmp_path: Path) -> None:
    reactions = [
        {"name": "tada", "users": ["U1", "U2"], "count": 2},
        {"name": "tada", "users": ["U1"]},
        7,
        {},
    ]
    message = said(
        "1.5", "x", subtype="me_message", edited={"user": "U1", "ts": "2.000001"}, reactions=reactions
    )
    (imported,) = only(read(folder(tmp_path / "a", slack(message)))).messages
    assert imported.metadata == {
        "action": True,
        "edited": "1970-01-01T00:00:02.000001Z",
        "reactions": {"tada": 3},
    }


def changed(stamp: str, text: str, at: str, **fields: object) -> dict[str, object]:
    edited = {"type": "message", "user": "U1", "text": text, "ts": stamp, **fields}
    return {"type": "message", "subtype": "message_changed", "hidden": True, "ts": at, "message": edited}


def deleted(stamp: str, at: str) -> dict[str, object]:
    return {"type": "message", "subtype": "message_deleted", "hidden": True, "ts": at, "deleted_ts": stamp}


def test_edits_and_deletions_that_are_events_are_obeyed(tmp_path: Path) -> None:
    archive = read(
        folder(
            tmp_path / "a",
            slack(
                said("1.000000", "old", thread_ts="1.000000"),
                changed("1.000000", "newer", "5.000000"),
                changed("1.000000", "newest", "6.000000"),
                said("2.000000", "secret"),
                deleted("2.000000", "7.000000"),
                said("3.000000", "reply", thread_ts="1.000000"),
                changed("4.000000", "only its edit is there", "8.000000"),
                changed("9.000000", "This message was deleted.", "10.000000", subtype="tombstone"),
            ),
        )
    )
    channel = only(archive)
    assert [(message.key, message.text) for message in channel.messages] == [
        ("1.000000", "newest"),
        ("3.000000", "reply"),
        ("4.000000", "only its edit is there"),
    ]
    assert channel.messages[0].thread == "1.000000"
    assert channel.messages[0].metadata["edited"] == "1970-01-01T00:00:06.000000Z"
    assert channel.deleted == ("2.000000", "9.000000")
    assert archive.notices == ("messages deleted on the platform, skipped: 2",)


def test_members_who_join_or_leave_are_no_content(tmp_path: Path) -> None:
    joins = [said(f"{n}.0", "<@U1> has joined the channel", subtype=kind) for n, kind in
             enumerate(["channel_join", "group_join", "mpim_leave", "channel_leave"], 1)]  # fmt: skip
    archive = read(folder(tmp_path / "a", slack(*joins, said("9.0", "hello"))))
    assert [message.text for message in only(archive).messages] == ["hello"]
    assert archive.notices[0].startswith("members who join or leave, skipped: 4")


def test_what_is_left_out_is_counted_by_reason(tmp_path: Path) -> None:
    archive = read(
        folder(
            tmp_path / "a",
            slack(
                said("1.0", "kept"),
                said("2.0", "This message was deleted.", subtype="tombstone"),
                said("3.0", "old", hidden=True, subtype="message_changed"),
                said("4.0", "   "),
                said("5.0", "", files=[{"id": "F1", "mode": "tombstone"}]),
                {"type": "presence"},
                "text",
                said("soon", "when?"),
            ),
        )
    )
    assert [message.text for message in only(archive).messages] == ["kept", "when?"]
    assert only(archive).messages[1].key == "soon"
    assert archive.notices == (
        "edits of unknown messages, skipped: 1 (general/2024-01-05.json#3)",
        "messages deleted on the platform, skipped: 1",
        "messages without text, skipped: 2 (general/2024-01-05.json#4, general/2024-01-05.json#5)",
        "entries that are not messages, skipped: 2 (general/2024-01-05.json#6, general/2024-01-05.json#7)",
        "messages with an invalid time, kept without it: 1 (general/2024-01-05.json#8)",
    )


def test_a_broken_day_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    files = slack(said("1.0", "kept"))
    files |= {"general/2024-01-06.json": '[{"ts": "2.0", ', "general/2024-01-07.json": {"ok": False}}
    files |= {"general/2024-01-08.json": b"\xff\xfe\x00\xd8", "general/2024-01-09.json": "[" * 100_000}
    archive = read(zipped(tmp_path / "a.zip", files))
    assert [message.text for message in only(archive).messages] == ["kept"]
    notices = " ".join(archive.notices)
    assert all(f"2024-01-0{day}.json" in notices for day in (6, 7, 8, 9))


def test_an_export_of_nothing_but_damage_is_no_success(tmp_path: Path) -> None:
    files = {"channels.json": CHANNELS, "general/2024-01-06.json": "[{"}
    with pytest.raises(UnreadableFile, match=r"not JSON, skipped: 1 \(general/2024-01-06\.json\)"):
        read(folder(tmp_path / "a", files))


def test_an_empty_export_says_so(tmp_path: Path) -> None:
    archive = read(folder(tmp_path / "a", {"users.json": [], "channels.json": CHANNELS}))
    assert archive.channels == ()
    assert archive.notices == (
        "channels without messages, skipped: 1 (general)",
        "exports without any message: 1 (a)",
    )


def test_private_channels_and_direct_messages(tmp_path: Path) -> None:
    files = {
        "users.json": USERS,
        "channels.json": [],
        "groups.json": [{"id": "G1", "name": "board", "members": ["U1"]}],
        "dms.json": [{"id": "D1", "members": ["U2", "U1"]}],
        "mpims.json": [{"id": "M1", "name": "mpdm-ann--bob--robo-1", "members": ["U1", "U2", "U3"]}],
        "board/2024-01-01.json": [said("1.0", "secret")],
        "D1/2024-01-01.json": [said("2.0", "psst")],
        "mpdm-ann--bob--robo-1/2024-01-01.json": [said("3.0", "we three")],
        "forgotten/2024-01-01.json": [said("4.0", "whose?")],
    }
    archive = read(folder(tmp_path / "a", files))
    is_private = {channel.name: channel.metadata["private"] for channel in archive.channels}
    assert is_private == {
        "dm-ann--bob": True,
        "board": True,
        "forgotten": True,
        "mpdm-ann--bob--robo-1": True,
    }
    assert archive.notices == ("channels missing from the lists, imported as private: 1 (forgotten)",)


def test_days_without_any_list_are_channels_by_their_folders(tmp_path: Path) -> None:
    files = {"random/2024-01-01.json": [said("1.0", "a")], "x/Zürich/2024-01-01.json": [said("2.0", "b")]}
    archive = read(folder(tmp_path / "a", files))
    assert [(channel.name, len(channel.messages)) for channel in archive.channels] == [
        ("random", 1),
        ("x/Zürich", 1),
    ]
    lone = folder(tmp_path / "lone", {"2024-01-01.json": [said("1.0", "a")]})
    assert only(read(lone)).name == "lone"


def test_lists_of_wrong_types_cost_names_and_no_messages(tmp_path: Path) -> None:
    files = slack(said("1.0", "hi <@U1>"))
    files |= {"users.json": {"U1": "Ann"}, "channels.json": [7, None, {"id": 3}, {"members": {}, "name": []}]}
    archive = read(folder(tmp_path / "a", files))
    assert [(message.author, message.text) for message in only(archive).messages] == [("U1", "hi @U1")]
    assert "files without a list, skipped: 1 (users.json)" in archive.notices


def test_what_is_not_slack_is_refused_when_called_slack(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "hi"}\n')
    with pytest.raises(UnsupportedContent, match="not an export of the kind slack"):
        read(path, "slack")
