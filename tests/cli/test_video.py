"""Streams of captions on the command line, on a store and on a server."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import conspectus
from conspectus import NewCaption, NewStream
from conspectus.settings import Settings
from tests.cli.conftest import Outcome, Remote, Shell

GATE = """1
00:00:01,000 --> 00:00:04,000
A red car stops at the gate.

2
00:00:10,000 --> 00:00:14,000
The guard walks to the car.

3
00:12:30,000 --> 00:12:40,000
A dog runs across the yard.
"""
Run = Callable[..., Outcome]


def import_captions(
    run: Run, folder: Path, name: str = "gate.srt", *options: str, text: str = GATE
) -> Outcome:
    (folder / name).write_text(text, encoding="utf-8")
    return run("streams", "import", folder / name, *options)


def list_captions(run: Run, stream: str = "gate", *options: str) -> list[str]:
    return [
        caption["text"].split()[1] for caption in run("streams", "captions", stream, *options, "--json").json
    ]


def run_commands(run: Run, folder: Path) -> None:
    """The same commands, with the same answers, whoever is asked."""
    first = import_captions(run, folder)
    assert (first.code, "3 added" in first.out) == (0, True), first.err
    assert "3 unchanged" in import_captions(run, folder).out
    streams = run("streams", "list").out
    assert all(text in streams for text in ("gate", "00:00:01", "00:12:40"))
    assert list_captions(run) == ["red", "guard", "dog"]
    assert list_captions(run, "gate", "--from", "0:03", "--to", "12:00") == ["red", "guard"]
    assert list_captions(run, "gate", "--from", "0:03", "--to", "12:00", "--contains") == ["guard"]
    search = run("streams", "search", "what does the dog do around 12:30?", "--stream", "gate")
    assert (search.code, "00:12:30" in search.out, "around 12:30" in search.err) == (0, True, True)
    assert "gate.srt#3, 00:12:30 - 00:12:40" in run("search", "a dog in the yard", "--limit", "1").out
    window = run("streams", "context", "the car", "--to", "20", "--max-tokens", "200")
    assert ("A red car" in window.out, "dog" in window.out) == (True, False)
    summary = run("streams", "summarize", "gate", "--json").json
    assert (summary["outcome"], summary["by"]) == ("complete", "extractive")
    timeline = run("streams", "timeline", "gate")
    assert (timeline.code, "00:10:00" in timeline.out, "█" in timeline.out) == (0, True, True)
    assert run("streams", "delete", "gate", "--yes", "--json").json["documents"] == 3
    assert run("streams", "captions", "gate").code == 3


def test_without_any_stream_nothing_is_found_and_no_range_is_named(filled: Shell) -> None:
    search = filled("streams", "search", "what happens around 12:30?")
    assert (search.code, search.out, search.err) == (3, "", "no match\n")
    assert "time range" not in filled("streams", "context", "what happens?").err
    assert "plan" not in filled("streams", "search", "what happens?", "--json").json


def test_on_a_store(shell: Shell) -> None:
    run_commands(shell, shell.folder)


def test_on_a_server(remote: Remote) -> None:
    run_commands(remote, remote.shell.folder)


def test_chunks_of_captions_are_counted(shell: Shell, remote: Remote) -> None:
    (shell.folder / "gate.srt").write_text(GATE, encoding="utf-8")
    for run in (shell, remote):
        report = run("add", shell.folder / "gate.srt", "--json").json
        assert (report["added"], report["chunks"], [*report["streams"].values()]) == (3, 3, [3])


def test_lines_of_captions_are_what_the_server_takes_in(shell: Shell) -> None:
    import_captions(shell, shell.folder)
    exported = shell("streams", "captions", "gate", "--ndjson")
    captions = [json.loads(line) for line in exported.out.splitlines()]
    assert [(caption["start"], caption["end"]) for caption in captions] == [(1, 4), (10, 14), (750, 760)]
    assert exported.out == shell("streams", "captions", "gate", "--ndjson").out


NUMBERED = [
    NewCaption("The gate opens. A dog runs in.", start=1, end=4, index=0, entities=("dog",)),
    NewCaption("It barks", start=5, end=6, index=1, speaker="Ann", metadata={"page": 3}),
    NewCaption("at the gate.", start=6, end=7),
]


def test_an_exported_stream_is_unchanged_when_it_is_imported_again(shell: Shell) -> None:
    with conspectus.open(shell.folder / "data", settings=Settings(embedder="none")) as engine:
        engine.streams.put(NewStream("numbered"))
        engine.streams.add_captions(NUMBERED, stream="numbered")
    import_captions(shell, shell.folder)
    for name in ("gate", "numbered"):
        exported = shell("streams", "captions", name, "--ndjson").out
        (shell.folder / f"{name}.ndjson").write_text(exported, encoding="utf-8")
        for options in ((), ("--stream", name)):
            done = shell("streams", "import", shell.folder / f"{name}.ndjson", *options, "--json").json
            assert (done["unchanged"], done["added"], done["replaced"]) == (3, 0, 0)
        elsewhere = {"CONSPECTUS_PATH": str(shell.folder / "other")}
        assert shell("streams", "import", shell.folder / f"{name}.ndjson", "--json", **elsewhere).json[
            "added"
        ]
        assert shell("streams", "captions", name, "--ndjson", **elsewhere).out == exported


def test_one_stream_of_many_files_on_the_clock_of_the_calendar(shell: Shell) -> None:
    (shell.folder / "b.srt").write_text(GATE, encoding="utf-8")
    origin = ["--start-time", "2026-03-02T08:00:00Z", "--stream", "day", "--keep-cues", "--no-wait"]
    (shell.folder / "a.srt").write_text(GATE, encoding="utf-8")
    done = shell("streams", "import", shell.folder / "a.srt", shell.folder / "b.srt", *origin, "--json")
    assert done.json["streams"] == {"day": 6}
    assert "2026-03-02T08:00:01+00:00" in shell("streams", "captions", "day").out
    assert len(list_captions(shell, "day", "--from", "2026-03-02T08:10:00Z")) == 2
    again = import_captions(
        shell, shell.folder, "a.srt", "--stream", "day", "--start-time", "2026-03-03T08:00:00Z"
    )
    assert (again.code, "start time" in again.err) == (1, True)
    separate = shell(
        "streams", "import", shell.folder / "a.srt", "--start-time", "2026-03-02T08:00:00Z", "--json"
    )
    assert separate.json["streams"] == {"a": 3}


def test_files_of_one_name_are_kept_apart(shell: Shell, remote: Remote) -> None:
    for part in ("one", "two"):
        (shell.folder / "talks" / part).mkdir(parents=True)
        text = GATE.replace("dog", part)
        (shell.folder / "talks" / part / "talk.srt").write_text(text, encoding="utf-8")
    for run in (shell, remote):
        first = run("streams", "import", shell.folder / "talks", "--json").json
        assert (first["added"], sum(first["streams"].values())) == (6, 6)
        assert run("streams", "import", shell.folder / "talks", "--json").json["unchanged"] == 6
        outputs = [run("streams", "captions", name, "--ndjson").out for name in first["streams"]]
        assert all(f"A {part} runs" in "".join(outputs) for part in ("one", "two"))


def test_a_file_in_the_way_of_another_is_named_with_its_place(shell: Shell) -> None:
    for part in ("one", "two"):
        (shell.folder / part).mkdir()
        (shell.folder / part / "talk.srt").write_text(GATE, encoding="utf-8")
    both = [shell.folder / part / "talk.srt" for part in ("one", "two")]
    done = shell("streams", "import", *both, "--json")
    assert (done.code, done.json["streams"]) == (4, {"talk": 3})
    assert [name for name, _ in done.json["failures"]] == [str(both[1])]


def test_of_many_notices_the_rest_is_counted(shell: Shell) -> None:
    (shell.folder / "talks").mkdir()
    for number in range(12):
        text = GATE + "\n4\n00:13:00,000 --> 00:13:10,000\n\n"
        (shell.folder / "talks" / f"{number}.srt").write_text(text, encoding="utf-8")
    done = shell("streams", "import", shell.folder / "talks")
    lines = done.err.strip().splitlines()
    assert (len(lines), lines[-1]) == (11, "and 2 more notices; --json lists all")
    assert len(shell("streams", "import", shell.folder / "talks", "--json").json["notices"]) == 12


def test_an_origin_is_set_for_files_that_are_there(shell: Shell) -> None:
    (shell.folder / "talks").mkdir()
    for path in ("talks", "nothing.srt"):
        done = shell("streams", "import", shell.folder / path, "--start-time", "2026-03-02T08:00:00Z")
        assert (done.code, "--stream" in done.err) == (2, True)
    assert shell("streams", "list").code == 3


def test_a_file_that_fails_is_named(shell: Shell) -> None:
    (shell.folder / "bad.srt").write_bytes(b"\x00\x01\x02")
    (shell.folder / "gate.srt").write_text(GATE, encoding="utf-8")
    done = shell("streams", "import", shell.folder / "bad.srt", shell.folder / "gate.srt")
    assert (done.code, "bad.srt" in done.out, "3 added" in done.out) == (4, True, True)
    assert shell("streams", "import", shell.folder / "bad.srt").code == 1
    assert shell("streams", "import", shell.folder / "nothing.srt").code == 2


def test_files_of_a_folder_without_captions_are_named_and_the_others_are_imported(shell: Shell) -> None:
    folder = shell.folder / "films"
    folder.mkdir()
    (folder / "film.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nA red car stops.\n")
    (folder / "package.json").write_text('{"name": "films"}')
    (folder / "pom.xml").write_text("<project/>")
    (folder / "cut.json").write_text("{")
    done = shell("streams", "import", folder)
    assert (done.code, "1 added" in done.out) == (4, True)
    for fault in (
        "package.json  not valid captions: no list of captions is in this JSON",
        "pom.xml       not valid captions: <project> is not the root of a caption file",
        "cut.json      not valid captions: not valid JSON",
    ):
        assert fault in done.out


def test_moments_are_readable_where_it_is_narrow(shell: Shell) -> None:
    import_captions(shell, shell.folder, f"{'long-name-' * 4}.srt")
    lines = shell("streams", "search", "who walks to the car?", "--limit", "1").out.splitlines()
    assert lines[0].startswith(f"1 {'long-name-' * 4}  00:00:")
    assert lines[1].startswith("  A red car stops at the gate. The guard walks")


def test_where_there_is_nothing_it_says_so(shell: Shell) -> None:
    import_captions(shell, shell.folder)
    late = ["--from", "5:00", "--to", "6:00"]
    for arguments in (
        ["streams", "captions", "gate"],
        ["streams", "search", "car"],
        ["streams", "timeline", "gate"],
        ["events", "list", "gate"],
    ):
        done = shell(*arguments, *late)
        assert (done.code, done.out, bool(done.err.strip())) == (3, "", True)
        assert shell(*arguments, *late, "--json").json is not None


def test_streams_without_the_time_of_a_question_are_named(shell: Shell) -> None:
    import_captions(shell, shell.folder)
    import_captions(shell, shell.folder, "day.srt", "--start-time", "2026-03-02T08:00:00Z")
    done = shell("streams", "search", "what happened on 2 March 2026?", "--json").json
    assert [moment["stream"]["name"] for moment in done["moments"]] == ["day"]
    assert "skipped streams: gate" in shell("streams", "search", "what happened on 2 March 2026?").err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["streams", "captions", "nowhere"], 3),
        (["streams", "captions", "gate", "--from", "noon"], 2),
        (["streams", "captions", "gate", "--from", "20", "--to", "10"], 2),
        (["streams", "captions", "gate", "--from", "5:00", "--to", "6:00"], 3),
        (["streams", "search", "car", "--stream", "nowhere"], 3),
        (["streams", "search", "car", "--min-similarity", "2"], 2),
        (["streams", "search", "car", "--from", "5:00", "--to", "6:00"], 3),
        (["streams", "context", "car", "--max-tokens", "0"], 3),
        (["streams", "summarize", "nowhere"], 3),
        (["streams", "summarize", "gate", "--from", "5:00", "--to", "6:00"], 3),
        (["streams", "timeline", "nowhere"], 3),
        (["streams", "timeline", "gate", "--from", "5:00", "--to", "6:00"], 3),
        (["streams", "delete", "nowhere", "--yes"], 3),
        (["events", "add", "gate", "arrival"], 2),
        (["events", "add", "gate", "arrival", "--from", "9", "--to", "1"], 2),
        (["events", "list", "gate"], 3),
        (["events", "list", "nowhere"], 3),
        (["alerts", "list"], 3),
        (["alerts", "delete", "nothing"], 3),
        (["alerts", "add", "x", "car", "--stream", "nowhere"], 3),
        (["alerts", "add", "x", "car", "--filter", "{"], 2),
    ],
)
def test_what_is_not_there_and_what_cannot_be(shell: Shell, arguments: list[str], code: int) -> None:
    import_captions(shell, shell.folder)
    done = shell(*arguments)
    assert done.code == code, done.err


def test_a_stream_is_deleted_after_a_question(shell: Shell) -> None:
    import_captions(shell, shell.folder)
    cancelled = shell("streams", "delete", "gate", typed="n\n")
    assert (cancelled.code, "'gate' with 3 captions" in cancelled.err) == (1, True)
    gone = shell("streams", "delete", "gate", "--purge", typed="y\n")
    assert (gone.code, "erased from disk" in gone.out) == (0, True)


def test_what_is_said_cannot_forge_the_screen(shell: Shell) -> None:
    evil = GATE.replace("red car", "red\x1b[2Jcar\u202e")
    import_captions(shell, shell.folder, "x.srt", text=evil)
    shell("events", "add", "x", "evil\x1b[31m", "--from", "1", "--entity", "\x1b]0;x\x07")
    for arguments in (["captions", "x"], ["ask", "car"], ["timeline", "x"], ["events", "list", "x"]):
        out = shell("streams", *arguments).out
        assert "\x1b" not in out
        assert "\u202e" not in out
