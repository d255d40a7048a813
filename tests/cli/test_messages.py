"""Channels on the command line, on a store and on a server."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chat_exports import said, slack, zipped
from tests.cli.conftest import Outcome, Remote, Shell

EXPORT = slack(
    said("1704448800.000100", "How do I restart the billing service?"),
    said("1704448860.000200", "Run systemctl restart billing", thread_ts="1704448800.000100"),
    said("1704448920.000300", "Lunch is soup today"),
)
TALK = (
    ("1", "how do I set up my API key", "ann", None),
    ("2", "go to settings", "bo", "1"),
    ("3", "I do not see it there", "ann", "2"),
    ("4", "it is under developer settings", "bo", "3"),
)


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return zipped(tmp_path / "export.zip", EXPORT)


def add_messages(run: Callable[..., Outcome], channel: str = "help") -> None:
    for key, text, author, answered in TALK:
        more = ["--reply-to", answered] if answered else []
        done = run("messages", "add", channel, text, "--author", author, "--key", key, *more)
        assert (done.code, done.out.split()[0]) == (0, "added")


def message_keys(outcome: Outcome) -> list[str]:
    return [message["document"]["key"] for message in outcome.json["messages"]]


def test_an_export_is_taken_in_once(shell: Shell, export: Path) -> None:
    first = shell("messages", "import", export)
    assert (first.code, "general" in first.out) == (0, True)
    assert "3 added, 0 replaced, 0 unchanged\n" in first.out
    again = shell("messages", "import", export, "--json").json
    assert (again["kind"], again["channels"], again["added"], again["unchanged"]) == (
        "slack",
        {"general": 3},
        0,
        3,
    )
    assert shell("messages", "import", export, "--kind", "slack", "--no-infer-replies", "--no-wait").code == 0
    messages = shell("messages", "list", "general", "--json").json
    assert [message["document"]["thread"] for message in messages][:2] == ["1704448800.000100"] * 2


@pytest.mark.data
def test_a_real_export(shell: Shell, evaluation: Callable[[str], Path]) -> None:
    [archive] = evaluation("slack_export_zip").glob("*.zip")
    first = shell("messages", "import", archive, "--json")
    assert first.code == 0
    assert first.json["kind"] == "slack"
    assert first.json["added"] == sum(first.json["channels"].values()) > 0
    again = shell("messages", "import", archive, "--json").json
    assert (again["added"], again["replaced"], again["unchanged"]) == (0, 0, first.json["added"])
    for channel, messages in first.json["channels"].items():
        listed = shell("messages", "list", channel, "--limit", "1000", "--json")
        assert len(listed.json) == messages


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("nothing.zip", None),
        ("broken.zip", b"PK\x03\x04 and then nonsense"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\x00\x00"),
        ("empty.log", b""),
    ],
)
def test_what_is_no_export(shell: Shell, name: str, content: bytes | None) -> None:
    if content is not None:
        (shell.folder / name).write_bytes(content)
    done = shell("messages", "import", shell.folder / name, "--json")
    assert done.code == 2
    assert done.json["error"]["message"]


def test_an_unknown_kind_of_export_is_refused(shell: Shell) -> None:
    (shell.folder / "export.zip").write_bytes(b"")
    assert shell("messages", "import", shell.folder / "export.zip", "--kind", "teams").code == 2


def test_private_channels_are_told_of(shell: Shell) -> None:
    group = {"id": "G1", "name": "leads", "members": ["U1"]}
    days = {"leads/2024-01-05.json": [said("1.0001", "hush")]}
    done = shell(
        "messages", "import", zipped(shell.folder / "x.zip", slack(**{"groups.json": [group]}, **days))
    )
    assert (done.code, "everyone who sees the collection sees 1 private channel in it" in done.err) == (
        0,
        True,
    )


def test_messages_are_sent_edited_shown_and_deleted(shell: Shell) -> None:
    add_messages(shell)
    table = shell("messages", "list", "help", "--limit", "2")
    assert "it is under developer settings" in table.out
    assert "go to settings" not in table.out
    edited = shell("messages", "add", "help", "open the cogwheel menu", "--key", "2", "--json")
    assert edited.json["outcome"] == "replaced"
    second = shell("messages", "list", "help", "--json").json[1]
    assert (second["text"], second["document"]["author"]) == ("open the cogwheel menu", "bo")
    assert second["document"]["metadata"] == {"reply_to": "1"}
    assert shell("messages", "delete", "help", "2", "--json").json["documents"] == 1
    again = shell("messages", "delete", "help", "2")
    assert (again.code, "no document '2'" in again.err) == (3, True)
    assert len(shell("messages", "list", "help", "--json").json) == 3


def test_a_chain_is_shown_within_its_limit(shell: Shell) -> None:
    add_messages(shell)
    assert message_keys(shell("messages", "thread", "help", "4", "--json")) == ["1", "2", "3", "4"]
    short = shell("messages", "thread", "help", "4", "--limit", "2")
    assert (short.code, "2 more messages in the thread" in short.err) == (0, True)
    assert shell("messages", "thread", "help", "4", "--limit", "100000").code == 2
    assert shell("messages", "thread", "help", "99").code == 3
    assert shell("messages", "thread", "nowhere", "4").code == 3


def test_a_window_of_several_channels_names_the_channel_of_a_message(shell: Shell) -> None:
    add_messages(shell)
    assert "help," not in shell("context", "API key").out
    shell("messages", "add", "other", "the API key of the other team")
    printed = shell("context", "API key").out
    assert ("] help, 2" in printed, "] other, 2" in printed) == (True, True)
    documents = json.loads(shell("context", "API key", "--format", "json", "--json").json["text"])[
        "documents"
    ]
    assert {document["title"] for document in documents} == {"help", "other"}


def test_context_is_printed_and_nothing_is_said_so(shell: Shell) -> None:
    add_messages(shell)
    shell("messages", "add", "other", "the API key of the other team")
    printed = shell("messages", "context", "help", "API key", "--max-tokens", "400")
    assert (printed.code, "ann: how do I set up my API key" in printed.out) == (0, True)
    assert "from help" in printed.err
    for more, channels in ((["--related"], ["help", "other"]), ([], ["help"])):
        window = shell("messages", "context", "help", "API key", *more, "--json").json
        assert window["channels"] == channels
    vague = shell("messages", "context", "help", "Did that work?", "--thread", "1")
    assert (vague.code, "ann: how do I set up my API key" in vague.out) == (0, True)
    assert shell("messages", "context", "help", "API key", "--max-tokens", "0").code == 2
    assert shell("messages", "context", "help", "API key", "--min-similarity", "2").code == 2
    assert shell("messages", "context", "help", "API key", "--at", "yesterday").code == 2
    assert shell("messages", "context", "nowhere", "API key").code == 3


def test_where_nothing_is_there_is_nothing(shell: Shell) -> None:
    assert shell("messages", "list", "help").code == 3
    add_messages(shell)
    assert shell("messages", "list", "nowhere").code == 3
    assert shell("messages", "list", "help", "--collection", "other").code == 3
    assert shell("messages", "list", "help", "--limit", "0").code == 2
    for key, *_ in TALK:
        shell("messages", "delete", "help", key)
    empty = shell("messages", "list", "help", "--json")
    assert (empty.code, empty.json) == (3, [])


def test_messages_without_times_are_shown_in_their_order(shell: Shell) -> None:
    rows = [{"channel": "old", "id": f"m{9 - n}", "text": f"note {n}"} for n in range(4)]
    (shell.folder / "log.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert shell("messages", "import", shell.folder / "log.jsonl").code == 0
    messages = shell("messages", "list", "old", "--limit", "3", "--json").json
    assert [message["text"] for message in messages] == ["note 1", "note 2", "note 3"]


def test_messages_with_and_without_times_are_all_shown(shell: Shell) -> None:
    rows = [{"channel": "old", "text": f"note {n}"} for n in range(3)]
    rows[1]["time"] = "2024-01-01T10:00:00Z"
    (shell.folder / "log.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert shell("messages", "import", shell.folder / "log.jsonl").code == 0
    messages = shell("messages", "list", "old", "--json").json
    assert [message["text"] for message in messages] == ["note 0", "note 2", "note 1"]


def test_what_is_said_cannot_forge_the_screen(shell: Shell) -> None:
    shell(
        "messages",
        "send",
        "help\x1b[31m",
        "a\x1b[2Jb\nforged: line \u202e",
        "--author",
        "\x1b[0m",
        "--key",
        "\x1b",
    )
    out = shell("messages", "list", "help\x1b[31m").out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_the_same_over_a_server(remote: Remote, export: Path) -> None:
    add_messages(remote)
    assert message_keys(remote("messages", "thread", "help", "4", "--json")) == ["1", "2", "3", "4"]
    assert remote("messages", "import", export, "--json").json["added"] == 3
    assert remote("messages", "import", export, "--json").json["unchanged"] == 3
    window = remote("messages", "context", "help", "API key", "--json").json
    assert (window["channels"], bool(window["messages"])) == (["help"], True)
    assert remote("messages", "delete", "help", "1", "--json").json["documents"] == 1
    assert remote("messages", "delete", "help", "1").code == 3
    assert len(remote("messages", "list", "help", "--json").json) == 3
    assert remote("messages", "list", "nowhere").code == 3
    assert remote("messages", "import", remote.shell.folder / "nothing.zip").code == 2


def test_who_may_only_read_cannot_post(remote: Remote) -> None:
    add_messages(remote)
    assert remote("users", "add", "reader").code == 0
    key = remote("keys", "create", "reader", "--json").json["secret"]
    assert remote("messages", "list", "help", CONSPECTUS_API_KEY=key).code == 3
    assert remote("grants", "add", "viewer", "--user", "reader").code == 0
    assert remote("messages", "list", "help", CONSPECTUS_API_KEY=key).code == 0
    for words in (["add", "help", "x"], ["delete", "help", "1"], ["add", "new", "x"]):
        refused = remote("messages", *words, "--json", CONSPECTUS_API_KEY=key)
        assert (refused.code, refused.json["error"]["code"]) == (1, "permission_denied")
