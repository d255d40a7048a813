"""Events, timelines and standing questions on the command line."""

import json
from pathlib import Path

from tests.cli.conftest import Remote, Shell
from tests.cli.test_video import Run, import_captions


def add_events(run: Run, folder: Path) -> None:
    import_captions(run, folder)
    for start, end in (("1", "4"), ("5", "9"), ("12:30", "12:40")):
        done = run("events", "add", "gate", "car stops", "--from", start, "--to", end)
        assert (done.code, done.out.split()[0]) == (0, "added"), done.err
    more = ["--description", "It barks.", "--entity", "dog", "--entity", "guard", "--key", "bark"]
    assert run("events", "add", "gate", "noise", "--from", "12:35", *more).code == 0


def test_events_are_noted_and_listed(shell: Shell, remote: Remote) -> None:
    for run in (shell, remote):
        add_events(run, shell.folder)
        listed = run("events", "list", "gate", "--json").json
        assert [(event["type"], event["start"], event["end"]) for event in listed] == [
            ("car stops", 1, 9),
            ("car stops", 750, 760),
            ("noise", 755, 755),
        ]
        only = run("events", "list", "gate", "--type", "noise", "--from", "12:00")
        assert ("It barks." in only.out, "car stops" in only.out) == (True, False)


def test_a_timeline_has_a_line_for_each(shell: Shell, remote: Remote) -> None:
    for run in (shell, remote):
        add_events(run, shell.folder)
        drawn = run("streams", "timeline", "gate").out
        assert all(name in drawn for name in ("captions", "car stops", "noise", "dog", "guard", "00:05:00"))
        one = run("streams", "timeline", "gate", "--type", "noise", "--entity", "dog", "--json").json
        assert [*one["lanes"]] == ["noise", "dog"]
        assert one["lanes"]["noise"] == [[755, 755]]
        assert (one["first"], one["last"], len(one["captions"])) == (0, 760, 3)
        assert [*run("streams", "timeline", "gate", "--entity", "dog", "--json").json["lanes"]] == ["dog"]
        part = run("streams", "timeline", "gate", "--from", "12:00", "--to", "13:00").out
        assert "00:12:00 to 00:13:00" in part


def test_standing_questions(shell: Shell, remote: Remote) -> None:
    for run in (shell, remote):
        import_captions(run, shell.folder)
        options = [
            "--stream",
            "gate",
            "--filter",
            "kind=caption",
            "--merge-seconds",
            "2",
            "--keywords-only",
            "--json",
        ]
        alert = run("alerts", "add", "cars", "red car", *options, "--json").json
        assert (alert["name"], alert["query"], alert["min_similarity"], alert["gap_seconds"]) == (
            "cars",
            "red car",
            None,
            2,
        )
        assert "cars" in run("alerts", "list").out
        assert run("alerts", "delete", alert["id"]).code == 0
        assert run("alerts", "list").code == 3


def test_alerts_are_heard(shell: Shell, remote: Remote) -> None:
    for run in (shell, remote):
        check_watch(run, shell.folder)


def check_watch(remote: Run, folder: Path) -> None:
    import_captions(remote, folder, "yard.srt")
    alert = remote("alerts", "add", "cars", "red car", "--keywords-only", "--json").json
    import_captions(remote, folder)
    import_captions(remote, folder, "exit.srt")
    listened = remote("alerts", "watch", "--alert", alert["id"], "--after", "0", "--limit", "2", "--json")
    matches = [json.loads(line) for line in listened.out.splitlines()]
    assert (listened.code, [match["name"] for match in matches]) == (0, ["cars", "cars"])
    assert all("red car" in match["text"] for match in matches)
    again = remote("alerts", "watch", "--after", str(matches[0]["number"]), "--limit", "1")
    assert "cars in exit at 00:00:01: A red car" in again.out
