"""`conspectus export` and `conspectus import documents`."""

import json
from pathlib import Path

from tests.cli.conftest import Shell


def test_an_export_fills_another_store_and_changes_nothing_there_again(shell: Shell, notes: Path) -> None:
    shell("add", notes)
    done = shell("export", "--output", shell.folder / "notes.jsonl")
    assert (done.code, done.out) == (0, "wrote 6 documents\n")
    lines = (shell.folder / "notes.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 6 and {"source", "key", "text"} <= json.loads(lines[0]).keys()
    other = {"CONSPECTUS_PATH": str(shell.folder / "other")}
    imported = shell("import", "documents", shell.folder / "notes.jsonl", **other)
    assert (imported.code, imported.out) == (0, "6 added, 0 replaced, 0 updated, 0 unchanged\n")
    again = shell("import", "documents", shell.folder / "notes.jsonl", **other)
    assert again.out == "0 added, 0 replaced, 0 updated, 6 unchanged\n"
    assert sorted(shell("export", **other).out.splitlines()) == sorted(lines)


def test_events_are_exported_with_the_clock_of_their_stream(shell: Shell) -> None:
    origin = ("--start-time", "2026-03-02T08:00:00Z", "--stream", "gate")
    (shell.folder / "gate.srt").write_text("1\n00:00:01,000 --> 00:00:04,000\nA car stops.\n", "utf-8")
    shell("streams", "import", shell.folder / "gate.srt", *origin)
    shell("events", "add", "gate", "arrival", "--from", "2026-03-02T08:00:02Z", "--entity", "red car")
    done = shell("export", "--output", shell.folder / "events.jsonl")
    assert (done.out, "left out: captions (1)" in done.err) == ("wrote 1 document\n", True)
    assert shell("import", "documents", shell.folder / "events.jsonl").out.endswith(", 1 unchanged\n")
    other = {"CONSPECTUS_PATH": str(shell.folder / "other")}
    assert shell("import", "documents", shell.folder / "events.jsonl", **other).out.startswith("1 added")
    for arguments in (("events", "list", "gate"), ("export",)):
        assert shell(*arguments, **other).out == shell(*arguments).out


def test_the_clock_of_a_stream_is_not_that_of_a_line(shell: Shell) -> None:
    for day, folder in (("2026-03-02", "one"), ("2027-01-01", "two")):
        elsewhere = {"CONSPECTUS_PATH": str(shell.folder / folder)}
        (shell.folder / "gate.srt").write_text("1\n00:00:01,000 --> 00:00:04,000\nA car stops.\n", "utf-8")
        origin = ("--start-time", f"{day}T08:00:00Z")
        shell("streams", "import", shell.folder / "gate.srt", *origin, **elsewhere)
        shell("events", "add", "gate", "arrival", "--from", f"{day}T08:00:02Z", **elsewhere)
    (shell.folder / "two.jsonl").write_text(shell("export", **elsewhere).out, "utf-8")
    elsewhere["CONSPECTUS_PATH"] = str(shell.folder / "one")
    before = shell("streams", "captions", "gate", **elsewhere).out
    assert shell("import", "documents", shell.folder / "two.jsonl", **elsewhere).code == 0
    assert shell("streams", "captions", "gate", **elsewhere).out == before and "2026-03-02T08:00:01" in before


def test_an_export_selects_by_filter_and_says_what_it_lacks(shell: Shell, notes: Path) -> None:
    shell("add", notes)
    shell("memory", "add", "Prefers tea.", "--user", "ann", "--collection", "default")
    done = shell("export", "--filter", "kind=message")
    assert (done.code, done.out) == (3, "")
    assert "no documents" in done.err
    assert "left out: memories (1), which have an export of their own" in shell("export").err


def test_a_wrong_file_is_named(shell: Shell, notes: Path) -> None:
    assert "is not a file" in shell("import", "documents", "nowhere.jsonl").err
    (notes / "wrong.jsonl").write_text('{"source": "s", "key": "a", "text": "b"}\n{\n', "utf-8")
    done = shell("import", "documents", notes / "wrong.jsonl")
    assert (done.code, "line 2: is not JSON" in done.err) == (2, True)
