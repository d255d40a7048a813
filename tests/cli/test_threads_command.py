"""The figures of linked chats on the command line."""

import json
from pathlib import Path

from tests.cli.conftest import Shell


def test_links_are_measured_as_json_and_as_a_table(shell: Shell, tmp_path: Path) -> None:
    texts = ["how do I mount a disk?", "ann: with the command mount", "bob: thanks"]
    rows = [
        {"channel": "c", "i": place, "user": ("ann", "bob")[place % 2], "text": text, "thread": "t"}
        for place, text in enumerate(texts)
    ]
    links = [{"channel": "c", "child": child, "parent": parent} for child, parent in ((0, 0), (1, 0), (2, 1))]
    (tmp_path / "messages.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (tmp_path / "links.jsonl").write_text("\n".join(map(json.dumps, links)), encoding="utf-8")
    figures = shell("eval", "threads", tmp_path, "--json").json
    assert figures["linked"]["links"]["f1"] == figures["by_channel"]["c"]["links"]["f1"] == 100.0
    table = shell("eval", "threads", tmp_path).out
    assert "links f1" in table and "message before" in table and "3 of 3 messages judged" in table


def test_a_bad_line_is_named(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "messages.jsonl").write_text(
        '{"channel": "c", "text": "hello"}\n{"channel": ', encoding="utf-8"
    )
    failed = shell("eval", "threads", tmp_path, "--json")
    assert (failed.code, failed.json["error"]["code"]) == (2, "invalid_input")
    assert "messages.jsonl line 2" in failed.json["error"]["message"]
