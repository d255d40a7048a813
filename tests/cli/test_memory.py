"""Memories on the command line, on a store and on a server."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Outcome, Remote, Shell

Run = Callable[..., Outcome]
ANN = ["--user", "ann", "--conversation", "one"]
BONN = ["--fact", "Ann | lives in | Bonn", "--valid-from", "2019-01-01"]
REFUSED: list[tuple[list[str], int]] = [
    (["add", " "], 2),
    (["add", "x", "--at", "noon"], 2),
    (["add", "x", "--fact", "Ann | lives"], 2),
    (["add", "x", "--user", ""], 2),
    (["update", "nothing"], 2),
    (["update", "nothing", "--text", "x"], 3),
    (["pin", "nothing"], 3),
    (["delete"], 2),
    (["delete", "--all", "--before", "2020-01-01"], 2),
    (["delete", "--older-than", "-1"], 2),
    (["retention", "set"], 2),
    (["retention", "set", "--off", "--days", "3"], 2),
    (["retention", "set", "--days", "-3"], 2),
    (["recall", "x", "--as-of", "noon"], 2),
    (["recall", "x", "--alpha", "2"], 2),
    (["list", "--filter", "{"], 2),
    (["conversations"], 3),
    (["import", "nowhere.jsonl"], 2),
]


def add_memory(run: Run, text: str, *options: str) -> str:
    """Remember something; its id."""
    done = run("memory", "add", text, *options, "--json")
    assert done.code == 0, done.err
    return str(done.json["id"])


def list_texts(run: Run, *options: str) -> list[str]:
    return [memory["text"] for memory in run("memory", "list", *options, "--json").json["memories"]]


def run_commands(run: Run, folder: Path) -> None:
    """The same commands, with the same answers, whoever is asked."""
    tea = add_memory(
        run, "I like green tea.", *ANN, "--role", "user", "--author", "Ann", "--at", "2026-03-02T08:00Z"
    )
    home = add_memory(run, "I live in Bonn.", *ANN, *BONN)
    add_memory(run, "Answer briefly.", "--user", "ann", "--kind", "note", "--pin")
    moved = run("memory", "add", "I live in Köln.", *ANN, "--fact", "Ann | lives in | Köln")
    assert (moved.code, f"ended the fact of {home}" in moved.out) == (0, True)
    recalled = run("memory", "recall", "green tea", *ANN)
    assert (recalled.code, "I like green tea." in recalled.out, "Ann" in recalled.out) == (0, True, True)
    window = run("memory", "context", "where does Ann live?", *ANN, "--max-tokens", "200")
    assert all(text in window.out for text in ("Answer briefly.", "I live in Köln."))
    assert "of 200 tokens" in window.err
    assert list_texts(run, *ANN)[0] == "I like green tea."
    assert list_texts(run, "--user", "ann", "--kind", "note") == ["Answer briefly."]
    assert run("memory", "update", tea, *ANN, "--text", "I like black tea.").code == 0
    assert run("memory", "pin", tea, *ANN).code == 0
    details = run("memory", "get", tea, *ANN).out
    assert all(text in details for text in ("I like black tea.", "2026-03-02 08:00:00", "turn, pinned"))
    versions = run("memory", "versions", tea, *ANN, "--json").json
    assert [version["text"] for version in versions][::2] == ["I like green tea.", "I like black tea."]
    check_export_and_retention(run, folder)
    assert run("memory", "delete", tea, *ANN, "--yes").code == 0
    assert run("memory", "get", tea, *ANN).code == 3


def check_export_and_retention(run: Run, folder: Path) -> None:
    """Numbers, export and import, and what the retention lets go."""
    stats = run("memory", "stats", "--user", "ann", "--json").json
    assert (stats["memories"], stats["notes"], stats["pinned"], stats["facts"]) == (4, 1, 2, 2)
    assert "one" in run("memory", "conversations", "--user", "ann").out
    lines = folder / "ann.jsonl"
    assert "4 memories" in run("memory", "export", "--user", "ann", "-o", lines).out
    assert run("memory", "export", "--user", "ann").out == lines.read_text(encoding="utf-8")
    assert "4 unchanged" in run("memory", "import", lines).out
    assert "4 added" in run("memory", "import", lines, "--user", "eve").out
    assert list_texts(run, "--user", "eve") == list_texts(run, "--user", "ann")
    assert run("memory", "retention", "set", *ANN, "--max-count", "1").code == 0
    assert "at most 1 in each" in run("memory", "retention", "list").out
    preview = run("memory", "retention", "apply", *ANN, "--dry-run", "--json").json
    gone = run("memory", "retention", "apply", *ANN, "--json").json
    assert preview["memories"] == gone["memories"] == 1
    assert run("memory", "retention", "set", *ANN, "--off").code == 0
    assert run("memory", "retention", "list").code == 3


def test_on_a_store(shell: Shell) -> None:
    run_commands(shell, shell.folder)


def test_on_a_server(remote: Remote) -> None:
    run_commands(remote, remote.shell.folder)


def test_memories_have_a_collection_of_their_own(shell: Shell) -> None:
    add_memory(shell, "I like tea.")
    assert list_texts(shell, "--collection", "memory") == list_texts(shell) == ["I like tea."]
    add_memory(shell, "Elsewhere.", "--collection", "work")
    assert list_texts(shell, "--collection", "work") == ["Elsewhere."]
    done = shell("memory", "list", "--json", CONSPECTUS_DEFAULT_COLLECTION="work").json
    assert [memory["text"] for memory in done["memories"]] == ["Elsewhere."]


def test_nobody_reads_what_is_not_theirs(shell: Shell) -> None:
    mine = add_memory(shell, "My secret is tea.", *ANN)
    for other in ([], ["--user", "ann", "--conversation", "two"]):
        for command in (["get", mine], ["update", mine, "--text", "x"], ["delete", mine, "--yes"]):
            assert shell("memory", *command, *other).code == 3
        for command in (["recall", "tea"], ["context", "tea"], ["export"]):
            done = shell("memory", *command, *other)
            assert (done.code, "secret" in done.out) == (3, False)
    assert list_texts(shell, *ANN) == ["My secret is tea."]


def test_what_is_forgotten_is_shown_before(shell: Shell) -> None:
    add_memory(shell, "I like tea.", *ANN)
    add_memory(shell, "Keep this.", *ANN, "--pin")
    preview = shell("memory", "delete", *ANN, "--all", "--dry-run")
    assert (preview.code, "would delete 1 memory" in preview.out) == (0, True)
    cancelled = shell("memory", "delete", *ANN, "--all", typed="n\n")
    assert (cancelled.code, "Delete 1 memory of user ann, conversation one?" in cancelled.err) == (1, True)
    assert len(list_texts(shell, *ANN)) == 2
    gone = shell("memory", "delete", *ANN, "--all", "--pinned", "--purge", typed="y\n")
    assert (gone.code, "deleted 2 memories" in gone.out, "erased" in gone.out) == (0, True, True), gone.err
    assert shell("memory", "delete", *ANN, "--all", "--yes").code == 3


def test_what_was_known_then(shell: Shell) -> None:
    add_memory(shell, "I like tea.", *ANN)
    then = shell("memory", "recall", "tea", *ANN, "--as-of", "2020-01-01T00:00:00Z")
    assert (then.code, "1 recorded" in then.err) == (3, True)


def test_what_is_not_there_and_what_cannot_be(shell: Shell) -> None:
    add_memory(shell, "I like tea.", *ANN)
    for arguments, code in REFUSED:
        done = shell("memory", *arguments)
        assert (arguments, done.code) == (arguments, code), done.err


def test_a_line_that_cannot_be_taken_in_is_named(shell: Shell) -> None:
    add_memory(shell, "I like tea.", *ANN)
    good = shell("memory", "export", *ANN).out
    for bad in ("{}", "nonsense", json.dumps({"text": 1})):
        done = shell("memory", "import", "-", typed=f"{good}\n{bad}\n")
        assert (done.code, "line 3" in done.err) == (2, True)
    done = shell("memory", "import", "-", typed=good.encode() + b"\xff\xfe\n")
    assert (done.code, "line 2" in done.err) == (2, True)


def test_what_is_said_cannot_forge_the_screen(shell: Shell) -> None:
    evil = add_memory(shell, "I like \x1b[2J tea\u202e .", *ANN, "--author", "A\x1b[31mnn")
    for arguments in (["list"], ["recall", "tea"], ["recent"], ["get", evil], ["versions", evil]):
        out = shell("memory", *arguments, *ANN).out
        assert ("tea" in out, "\x1b" in out, "\u202e" in out) == (True, False, False)


def test_what_is_recalled_says_once_how_and_ends_its_lines(shell: Shell) -> None:
    add_memory(shell, "I started there in May.", *ANN, "--fact", "Ann | works at | Bosch")
    done = shell("memory", "recall", "Where does Ann work?", *ANN)
    assert done.out.count("found through Ann") == 1, done.out
    assert not [line for line in done.out.splitlines() if line != line.rstrip()]


def test_history_of_a_name_has_the_facts_about_it(shell: Shell) -> None:
    add_memory(shell, "I started there in May.", *ANN, "--fact", "Ann | works at | Bosch")
    add_memory(shell, "He called.", *ANN, "--entity", "Bob")
    for name, text in {"Bosch": "I started there in May.", "Ann": "I started there in May."}.items():
        assert list_texts(shell, *ANN, "--entity", name) == [text]
    assert list_texts(shell, *ANN, "--entity", "Bob") == ["He called."]


def test_context_as_messages_is_a_list_for_a_chat(shell: Shell) -> None:
    add_memory(shell, "I like tea.", *ANN)
    done = shell("memory", "context", "tea", *ANN, "--format", "messages")
    assert [set(message) for message in json.loads(done.out)] == [{"role", "content"}]


def test_a_collection_that_is_not_there_is_told_from_those_that_are(shell: Shell) -> None:
    add_memory(shell, "I like tea.", *ANN)
    done = shell("graph", "list")
    assert (done.code, "no collection 'default'" in done.err, "memory" in done.err) == (3, True, True)
