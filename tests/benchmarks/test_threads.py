"""The evaluation of links: what it reads, what it refuses, and what it compares with."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
from benchmarks.threads import (
    linked,
    measured,
    message_before,
    outcome,
    read_judged_channels,
    successions,
    threads,
)

from conspectus.errors import InvalidInput
from conspectus.text.replies import Utterance


def write_rows(folder: Path, name: str, rows: Iterable[Mapping[str, object] | str]) -> None:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def build_message(number: int, text: str = "hello", **more: object) -> dict[str, object]:
    return {"channel": "c", "i": number, "user": f"user{number % 2}", "text": text, "thread": "t", **more}


def build_link(child: int, parent: int) -> dict[str, object]:
    return {"channel": "c", "child": child, "parent": parent}


def test_links_name_messages_by_their_number_and_only_linked_ones_are_judged(tmp_path: Path) -> None:
    write_rows(tmp_path, "messages.jsonl", [build_message(10), build_message(11), build_message(12)])
    write_rows(tmp_path, "links.jsonl", [build_link(11, 11), build_link(12, 10), build_link(12, 11)])
    (channel,) = read_judged_channels(tmp_path)
    assert channel.answers == {1: {1}, 2: {0, 1}}
    assert channel.threads == {1: "t", 2: "t"}


def test_times_are_read_and_full_ones_put_a_channel_in_order(tmp_path: Path) -> None:
    timed = [
        build_message(0, "second", timestamp="2020-01-01T10:00:01"),
        build_message(1, "first", timestamp="2020-01-01T10:00:00"),
    ]
    printed = [
        {**build_message(0, "late", date="2020-01-01", time="12:59"), "channel": "d"},
        {**build_message(1, "wrapped", date="2020-01-01", time="01:00"), "channel": "d"},
        {
            **build_message(2, "unknown", date="2020-01-01", time="25:61", user=None, system=True),
            "channel": "d",
        },
    ]
    write_rows(tmp_path, "messages.jsonl", [*timed, *printed])
    ordered, unordered = read_judged_channels(tmp_path)
    assert [utterance.text for utterance in ordered.utterances] == ["first", "second"]
    assert [utterance.text for utterance in unordered.utterances] == ["late", "wrapped", "unknown"]
    assert [utterance.at is None for utterance in unordered.utterances] == [False, False, True]
    assert unordered.utterances[2].system and unordered.utterances[2].author is None


@pytest.mark.parametrize(
    ("messages", "links", "field"),
    [
        (["{"], [], "messages.jsonl line 1"),
        ([build_message(0), {"channel": "c", "text": 7}], [], "messages.jsonl line 2"),
        ([build_message(0), {"text": "no channel"}], [], "messages.jsonl line 2"),
        ([build_message(0)], [build_link(0, 0), build_link(1, 0)], "links.jsonl line 2"),
        ([build_message(0)], [{"channel": "elsewhere", "child": 0, "parent": 0}], "links.jsonl line 1"),
        ([build_message(0)], [{"channel": "c", "child": "0", "parent": 0}], "links.jsonl line 1"),
        ([build_message(0, thread=None)], [build_link(0, 0)], "messages.jsonl line 1"),
        ([build_message(0, thread=None)], None, "messages.jsonl"),
        ([], None, "messages.jsonl"),
    ],
)
def test_what_cannot_be_read_is_named(
    tmp_path: Path, messages: list[dict[str, object]], links: list[dict[str, object]] | None, field: str
) -> None:
    write_rows(tmp_path, "messages.jsonl", messages)
    if links is not None:
        write_rows(tmp_path, "links.jsonl", links)
    with pytest.raises(InvalidInput) as error:
        threads(tmp_path)
    assert error.value.field == field


def test_the_last_message_of_a_thread_is_followed() -> None:
    assert successions({0: "a", 1: "b", 4: "a", 5: "a", 9: "b"}) == {0: {0}, 1: {1}, 4: {0}, 5: {4}, 9: {1}}


def test_the_message_before_is_never_a_system_line() -> None:
    utterances = [
        Utterance("a", "x", None),
        Utterance(None, "joined", None, system=True),
        Utterance("b", "y", None),
    ]
    assert message_before(utterances) == {0: 0, 1: 1, 2: 0}


def test_a_set_without_links_says_what_its_links_are(tmp_path: Path) -> None:
    write_rows(
        tmp_path, "messages.jsonl", [build_message(number, thread=f"t{number}") for number in range(4)]
    )
    report = threads(tmp_path)
    assert "links" not in report["linked"]
    assert report["message_before"]["links_to_last_of_thread"]["f1"] == 25.0
    assert report["message_before"]["one_to_one"] == 25.0
    assert (report["channels"], report["messages"], report["judged"]) == (1, 4, 4)


def test_a_clear_exchange_is_linked(tmp_path: Path) -> None:
    texts = ["how do I mount a disk?", "user0: with the command mount", "user1: thanks"]
    write_rows(tmp_path, "messages.jsonl", [build_message(number, text) for number, text in enumerate(texts)])
    write_rows(tmp_path, "links.jsonl", [build_link(0, 0), build_link(1, 0), build_link(2, 1)])
    figures = threads(tmp_path)["linked"]
    assert figures["links"] == {"precision": 100.0, "recall": 100.0, "f1": 100.0}
    assert figures["one_to_one"] == figures["exact_match_f1"] == figures["information_kept"] == 100.0


@pytest.mark.data
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "links"), [("irc_disentanglement", "links"), ("gitter_livechat", "links_to_last_of_thread")]
)
def test_public_sets_reach_what_is_asked(
    evaluation: Callable[[str], Path], name: str, links: str, every: int
) -> None:
    channels = read_judged_channels(evaluation(name))[::every]
    figures = measured([outcome(channel, linked(channel.utterances)) for channel in channels])
    scores = figures["links"] if links == "links" else figures["links_to_last_of_thread"]
    assert scores["f1"] >= 55
    assert figures["one_to_one"] >= 65
