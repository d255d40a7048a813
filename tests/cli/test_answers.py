"""Answer records on the command line: listed, shown and deleted."""

from tests.cli.conftest import Shell

RECORDING = {"CONSPECTUS_ANSWER_RECORDS": "all"}


def test_records_are_listed_shown_and_deleted(shell: Shell) -> None:
    (shell.folder / "backups.md").write_text("The backup runs every night at two.", encoding="utf-8")
    shell("add", shell.folder / "backups.md")
    window = shell("context", "When does the backup run?", "--json", **RECORDING).json
    shell("context", "an unanswered zebra", "--collection", "default")
    listed = shell("answers", "list")
    assert "When does the backup run?" in listed.out
    assert "zebra" not in listed.out
    [summary] = shell("answers", "list", "--json").json["answers"]
    assert (summary["id"], summary["kind"], summary["passages"]) == (window["answer"], "window", 1)
    picture = shell("answers", "show", summary["id"])
    assert "The backup runs every night at two." in picture.out
    assert "included" in picture.out
    record = shell("answers", "show", summary["id"], "--json").json
    assert record["text"] == window["text"]
    assert shell("answers", "list", "--kind", "chat").code == 3
    assert shell("answers", "delete", summary["id"]).out.strip() == f"deleted {summary['id']}"
    assert shell("answers", "show", summary["id"]).code == 3


def test_a_deletion_counts_the_records_that_go(shell: Shell) -> None:
    (shell.folder / "backups.md").write_text("The backup runs every night at two.", encoding="utf-8")
    shell("add", shell.folder / "backups.md")
    shell("context", "When does the backup run?", **RECORDING)
    [document] = shell("list", "--json").json["documents"]
    assert "1 answer record" in shell("delete", document["id"], "--yes").out
