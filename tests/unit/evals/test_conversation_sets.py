"""Chats and meetings as evaluation sets: what is asked, when, and what nobody could have known then."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from benchmarks.ablation import compare, rankings

from conspectus.errors import InvalidInput
from conspectus.evals.conversation import conversation
from conspectus.evals.conversation_queries import profile_without
from conspectus.evals.conversation_sets import (
    MAX_EARLIER,
    read_chat_set,
    read_conversations,
    read_meeting_set,
)
from conspectus.settings import Settings

WORDS_ONLY = Settings(embedder="none")
LONG = "so this is said about the engine"


def write(folder: Path, name: str, rows: Iterable[dict[str, object]]) -> Path:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def said(number: int, thread: str | None = "t", *, channel: str = "c", **fields: object) -> dict[str, object]:
    return {
        "id": f"{channel}{number}",
        "channel": channel,
        "i": number,
        "timestamp": f"2024-05-01T10:{number:02}:00",
        "user": f"u{number % 2}",
        "text": LONG,
        "thread": thread,
        **fields,
    }


def test_a_message_is_asked_with_the_earlier_ones_of_its_thread_as_evidence(tmp_path: Path) -> None:
    rows = [said(0), said(1, "u"), said(2), said(3, text="too short"), said(4), said(5, system=True)]
    given = read_chat_set(write(tmp_path, "messages.jsonl", reversed(rows)))
    (asked,) = given.questions
    assert (asked.id, asked.text, asked.before, asked.thread) == ("thread c4", LONG, 4, None)
    assert asked.evidence == {"c0", "c2", "c3"}
    assert asked.at is not None and asked.at.minute == 4


def test_threads_that_are_longer_are_not_asked_for(tmp_path: Path) -> None:
    given = read_chat_set(write(tmp_path, "messages.jsonl", (said(n) for n in range(30))))
    assert [len(each.evidence) for each in given.questions] == list(range(2, MAX_EARLIER + 1))


def test_what_answers_what_is_asked_in_the_thread(tmp_path: Path) -> None:
    rows = [said(0), said(1), said(2, annotated=False), said(3), said(4, None)]
    links = [(0, 0), (1, 0), (3, 1), (3, 0), (4, 3), (3, 77)]
    write(tmp_path, "messages.jsonl", rows)
    write(tmp_path, "links.jsonl", ({"channel": "c", "child": a, "parent": b} for a, b in links))
    given = read_chat_set(tmp_path)
    replies = {each.id: each for each in given.questions if each.category == "reply"}
    assert {name: each.evidence for name, each in replies.items()} == {
        "reply c1": {"c0"},
        "reply c3": {"c0", "c1"},
    }
    assert replies["reply c3"].thread == "t"
    assert "c2" not in {each.key for each in given.conversations["c"]}


def test_a_clock_without_a_date_starts_anew_after_twelve_hours(tmp_path: Path) -> None:
    shown = ["11:58", "11:59", "12:01", None, "11:59", "03:10"]
    rows = [
        said(n, timestamp=None, date=None if time is None else "2004-11-15", time=time)
        for n, time in enumerate(shown)
    ]
    given = read_chat_set(write(tmp_path, "messages.jsonl", rows))
    times = [each.occurred for each in given.conversations["c"]]
    assert times == sorted(times)
    assert [(each.day, each.hour, each.minute) for each in times] == [
        (15, 11, 58),
        (15, 11, 59),
        (15, 12, 1),
        (15, 12, 1),
        (15, 12, 1),
        (15, 15, 10),
    ]


@pytest.mark.parametrize("rows", [[], [said(0)], [said(0), said(1), said(2, "u")]])
def test_a_chat_in_which_nothing_can_be_asked(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    with pytest.raises(InvalidInput, match="no message is in a thread"):
        read_chat_set(write(tmp_path, "messages.jsonl", rows))


def meeting(folder: Path, spans: object) -> Path:
    turns = [
        {"id": f"m:{n}", "meeting": "m", "speaker": "Ann", "text": f"turn about topic{n}"} for n in range(40)
    ]
    write(folder, "corpus.jsonl", turns)
    asked = {"id": "q", "meeting": "m", "text": "what of topic3?", "turn_spans": spans}
    return write(folder, "queries.jsonl", [asked])


def test_a_meeting_is_one_thread_with_spans_of_turns_that_answer(tmp_path: Path) -> None:
    given = read_meeting_set(meeting(tmp_path, [[2, 3], [3, 4]]))
    assert given.questions[0].evidence == {"m:2", "m:3", "m:4"}
    assert {each.thread for each in given.conversations["m"]} == {"m"}


@pytest.mark.parametrize("spans", [[[3, 2]], [[-1, 2]], [3], [["a", "b"]], "3", [[1, 2, 3]]])
def test_spans_that_are_none(tmp_path: Path, spans: object) -> None:
    with pytest.raises(InvalidInput, match="turn_spans"):
        read_meeting_set(meeting(tmp_path, spans))


@pytest.mark.parametrize("spans", [[], [[0, 39]], [[100, 200]]])
def test_a_question_about_all_of_a_meeting_or_nothing_is_not_asked(tmp_path: Path, spans: object) -> None:
    with pytest.raises(InvalidInput, match="no question cites a part"):
        read_meeting_set(meeting(tmp_path, spans))


def test_the_kind_of_a_set_is_told_by_its_files(tmp_path: Path) -> None:
    assert read_conversations(meeting(tmp_path, [[1, 2]])).questions[0].category == "meeting"
    write(tmp_path, "messages.jsonl", (said(n) for n in range(4)))
    assert read_conversations(tmp_path).questions[0].category == "thread"
    with pytest.raises(InvalidInput, match=r"messages\.jsonl"):
        read_conversations(tmp_path / "nothing")


async def test_nothing_that_came_later_is_found_in_any_channel(tmp_path: Path) -> None:
    mine = [said(n, text=f"{LONG} {n}") for n in range(0, 40, 10)]
    other = [said(n, "v", channel="d", text=f"{LONG} {n}") for n in range(5, 45, 10)]
    folder = write(tmp_path, "messages.jsonl", mine + other)
    report = await conversation(folder, settings=WORDS_ONLY, profile="default")
    assert report["questions"] == 4
    # Only 5 earlier messages exist when the last one is asked: with later ones, ten could not hold them all.
    assert report["turn_recall@10"] == report["evidence_in_budget"] == 100.0


def cited(folder: Path, sessions: list[str]) -> Path:
    turns = [
        {"conv": "c", "session": session, "dia_id": f"{session}:{n}", "speaker": "user", "text": "hello"}
        for session in ("one", "two")
        for n in range(2)
    ]
    write(folder, "messages.jsonl", turns)
    asked = {"conv": "c", "qid": 1, "question": "?", "evidence": [], "evidence_sessions": sessions}
    return write(folder, "questions.jsonl", [asked | {"question_date": "2024-05-02T10:00:00"}])


def test_where_only_sessions_are_cited_their_turns_are_the_evidence(tmp_path: Path) -> None:
    (asked,) = read_conversations(cited(tmp_path, ["two"])).questions
    assert asked.evidence == {"two:0", "two:1"}
    assert asked.at is not None and asked.at.day == 2


def test_everything_is_no_evidence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no question cites"):
        read_conversations(cited(tmp_path, ["one", "two"]))


async def test_an_unknown_profile_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="expected one of default"):
        await conversation(tmp_path, profile="best")
    with pytest.raises(InvalidInput, match="is unknown"):
        await conversation(tmp_path, profile=profile_without("default", ["sleep"]))


async def test_rankings_are_compared_on_the_same_questions(tmp_path: Path) -> None:
    write(tmp_path, "messages.jsonl", (said(n, text=f"{LONG} {n}") for n in range(8)))
    write(tmp_path, "links.jsonl", [{"channel": "c", "child": 3, "parent": 1}])
    profiles = {name: rankings()[name] for name in ("without a query context", "default")}
    seen: list[tuple[str, int, int]] = []
    found = await compare(tmp_path, profiles, maximum=2, progress=lambda *step: seen.append(step))
    assert {kind: list(figures) for kind, figures in found.items()} == {
        "thread": list(profiles),
        "reply": list(profiles),
    }
    assert found["thread"]["default"] == (100.0, 100.0)
    assert seen[-1] == ("reply: default", 4, 4)


def test_the_table_has_all_parts_each_alone_and_each_left_out() -> None:
    names = rankings()
    assert len(names) == 2 + 12 + 1 + 12 + 2
    assert names["default without conversation_flow"] == "default without conversation_flow"
    assert "conversation_flow" not in (names["base and conversation_flow"] or "")
