"""The figures of names on the command line."""

import json
from pathlib import Path

from tests.cli.conftest import Shell


def test_names_are_measured_as_json_and_as_a_table(shell: Shell, tmp_path: Path) -> None:
    text = "I like ice hockey"
    link = {"mention": "ice hockey", "entity": "Ice_hockey", "span": [7, 17]}
    told = {"split": "test", "conv": "1", "speaker": "USER", "text": text, "links": [link], "personal": []}
    (tmp_path / "turns.jsonl").write_text(json.dumps(told), encoding="utf-8")
    figures = shell("eval", "entities", tmp_path, "--json").json
    assert figures["linked"] == {"precision": 100.0, "recall": 100.0, "f1": 100.0, "true": 1}
    table = shell("eval", "entities", tmp_path).out
    assert "string match" in table and "recall" in table and "100.0" in table


def test_a_folder_with_neither_kind_of_set_is_refused(shell: Shell, tmp_path: Path) -> None:
    failed = shell("eval", "entities", tmp_path, "--json")
    assert (failed.code, failed.json["error"]["code"]) == (2, "invalid_input")
