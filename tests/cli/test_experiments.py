"""Experiments on the command line: a set from a file, runs, and the defaults that a run gives."""

import json

from tests.cli.conftest import Shell


def test_a_set_is_run_and_a_run_becomes_the_default(shell: Shell) -> None:
    (shell.folder / "backups.md").write_text("The backup runs every night at two.", encoding="utf-8")
    shell("add", shell.folder / "backups.md")
    span = {"doc": "backups.md", "start": 0, "end": 35}
    queries = shell.folder / "queries.jsonl"
    queries.write_text(json.dumps({"id": "q1", "text": "When does the backup run?", "spans": [span]}))
    question_set = shell("experiments", "create", "support", queries, "--json").json
    assert (question_set["name"], question_set["questions"]) == ("support", 1)
    assert "When does the backup run?" in shell("experiments", "show", question_set["id"]).out
    result = shell(
        "experiments", "run", question_set["id"], "--retrievers", "keyword", "--max-tokens", "100", "--json"
    ).json
    run = result["run"]
    assert [figure["mean"] for figure in run["figures"]] == [100.0]
    assert (run["name"], run["options"]) == ('retrievers ["keyword"]', {"retrievers": ["keyword"]})
    assert "100: 100.0 %" in shell("experiments", "runs").out
    assert "100 %" in shell("experiments", "result", run["id"]).out
    assert '{"retrievers": ["keyword"]}' in shell("experiments", "use", run["id"]).out
    assert shell("experiments", "undo", "2").code != 0
    assert "built-in" in shell("experiments", "undo", "1").out
    assert shell("experiments", "delete-run", run["id"]).out.strip() == f"deleted {run['id']}"
    assert shell("experiments", "delete", question_set["id"]).code == 0
    assert shell("experiments", "list").code == 3


def test_a_file_without_spans_is_refused(shell: Shell) -> None:
    queries = shell.folder / "queries.jsonl"
    queries.write_text(json.dumps({"id": "q1", "text": "When?"}))
    refused = shell("experiments", "create", "support", queries)
    assert refused.code != 0
    assert "has no question with spans" in refused.err
