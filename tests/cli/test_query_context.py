"""Questions and evaluations with a channel, a thread, a time and a profile, on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Shell

SAID = [
    {"id": "old", "text": "the deploy key is in the vault", "thread": "a"},
    {"id": "new", "text": "the deploy key is in the safe", "thread": "b"},
]


@pytest.fixture
def channels(shell: Shell, tmp_path: Path) -> Shell:
    for channel in ("ops", "dev"):
        rows = [json.dumps(message | {"text": f"{message['text']} of {channel}"}) for message in SAID]
        (tmp_path / f"{channel}.jsonl").write_text("\n".join(rows), encoding="utf-8")
        assert shell("add", tmp_path / f"{channel}.jsonl", "--source", channel).code == 0
    return shell


def test_a_question_in_a_channel_has_parts_for_it(channels: Shell) -> None:
    arguments = ("search", "deploy key", "--channel", "dev", "--at", "2026-03-02T12:00:00Z", "--json")
    hits = channels(*arguments).json["hits"]
    assert [hit["parts"]["same_channel"] > 0 for hit in hits] == [True, True, False, False]
    assert "same_thread" not in hits[0]["parts"]
    assert all("same_channel" not in hit["parts"] for hit in channels("search", "key", "--json").json["hits"])


@pytest.mark.parametrize("command", [("context", "--max-tokens", "500"), ("explain",)])
def test_windows_are_asked_for_in_a_channel_as_well(channels: Shell, command: tuple[str, ...]) -> None:
    done = channels(
        *command, "deploy key", "--channel", "ops", "--thread", "a", "--profile", "default", "--json"
    )
    assert "same_thread" in done.json["trace"][0]["parts"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--channel", "hr"), "channel 'hr'"),
        (("--thread", "a"), "give the channel"),
        (("--profile", "best"), "expected one of default, multiplicative"),
        (("--profile", "default without sleep"), "is unknown"),
        (("--at", "soon"), "time"),
    ],
)
def test_what_is_not_there_is_named(channels: Shell, options: tuple[str, str], reason: str) -> None:
    done = channels("search", "deploy key", *options)
    assert done.code not in (0, 1)
    assert reason in done.err


def test_evaluations_switch_parts_off(shell: Shell, tmp_path: Path) -> None:
    rows = [
        {
            "id": n,
            "channel": "c",
            "timestamp": f"2024-05-01T10:0{n}:00",
            "thread": "t",
            "text": "so we say it all",
        }
        for n in range(5)
    ]
    (tmp_path / "messages.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    every = [
        shell("eval", "conversation", tmp_path, "--json", *options)
        for options in (
            (),
            ("--profile", "multiplicative"),
            ("--without", "conversation_flow", "--without", "same_channel"),
        )
    ]
    assert [done.json["questions"] for done in every] == [3, 3, 3]
    refused = shell("eval", "conversation", tmp_path, "--without", "sleep")
    assert "is unknown" in refused.err
