"""Chats and meetings as evaluation sets: their questions, and evidence that was not known yet."""

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


def write_rows(folder: Path, name: str, rows: Iterable[dict[str, object]]) -> Path:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def message_row(
    number: int, thread: str | None = "t", *, channel: str = "c", **fields: object
) -> dict[str, object]:
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
    rows = [
        message_row(0),
        message_row(1, "u"),
        message_row(2),
        message_row(3, text="too short"),
        message_row(4),
        message_row(5, system=True),
    ]
    evaluation_set = read_chat_set(write_rows(tmp_path, "messages.jsonl", reversed(rows)))
    (question,) = evaluation_set.questions
    assert (question.id, question.text, question.before, question.thread) == ("thread c4", LONG, 4, None)
    assert question.evidence == {"c0", "c2", "c3"}
    assert question.at is not None and question.at.minute == 4


def test_threads_that_are_longer_are_not_asked_for(tmp_path: Path) -> None:
    evaluation_set = read_chat_set(
        write_rows(tmp_path, "messages.jsonl", (message_row(n) for n in range(30)))
    )
    assert [len(question.evidence) for question in evaluation_set.questions] == list(
        range(2, MAX_EARLIER + 1)
    )


def test_what_answers_what_is_asked_in_the_thread(tmp_path: Path) -> None:
    rows = [
        message_row(0),
        message_row(1),
        message_row(2, annotated=False),
        message_row(3),
        message_row(4, None),
    ]
    links = [(0, 0), (1, 0), (3, 1), (3, 0), (4, 3), (3, 77)]
    write_rows(tmp_path, "messages.jsonl", rows)
    write_rows(tmp_path, "links.jsonl", ({"channel": "c", "child": a, "parent": b} for a, b in links))
    evaluation_set = read_chat_set(tmp_path)
    replies = {question.id: question for question in evaluation_set.questions if question.category == "reply"}
    assert {name: reply.evidence for name, reply in replies.items()} == {
        "reply c1": {"c0"},
        "reply c3": {"c0", "c1"},
    }
    assert replies["reply c3"].thread == "t"
    assert "c2" not in {message.key for message in evaluation_set.conversations["c"]}


def test_a_clock_without_a_date_starts_anew_after_twelve_hours(tmp_path: Path) -> None:
    clock = ["11:58", "11:59", "12:01", None, "11:59", "03:10"]
    rows = [
        message_row(n, timestamp=None, date=None if time is None else "2004-11-15", time=time)
        for n, time in enumerate(clock)
    ]
    evaluation_set = read_chat_set(write_rows(tmp_path, "messages.jsonl", rows))
    times = [message.occurred for message in evaluation_set.conversations["c"]]
    assert times == sorted(times)
    assert [(instant.day, instant.hour, instant.minute) for instant in times] == [
        (15, 11, 58),
        (15, 11, 59),
        (15, 12, 1),
        (15, 12, 1),
        (15, 12, 1),
        (15, 15, 10),
    ]


@pytest.mark.parametrize(
    "rows", [[], [message_row(0)], [message_row(0), message_row(1), message_row(2, "u")]]
)
def test_a_chat_in_which_nothing_can_be_asked(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    with pytest.raises(InvalidInput, match="no message is in a thread"):
        read_chat_set(write_rows(tmp_path, "messages.jsonl", rows))


def write_meeting(folder: Path, spans: object) -> Path:
    turns = [
        {"id": f"m:{n}", "meeting": "m", "speaker": "Ann", "text": f"turn about topic{n}"} for n in range(40)
    ]
    write_rows(folder, "corpus.jsonl", turns)
    question = {"id": "q", "meeting": "m", "text": "what of topic3?", "turn_spans": spans}
    return write_rows(folder, "queries.jsonl", [question])


def test_a_meeting_is_one_thread_with_spans_of_turns_that_answer(tmp_path: Path) -> None:
    evaluation_set = read_meeting_set(write_meeting(tmp_path, [[2, 3], [3, 4]]))
    assert evaluation_set.questions[0].evidence == {"m:2", "m:3", "m:4"}
    assert {turn.thread for turn in evaluation_set.conversations["m"]} == {"m"}


@pytest.mark.parametrize("spans", [[[3, 2]], [[-1, 2]], [3], [["a", "b"]], "3", [[1, 2, 3]]])
def test_spans_that_are_none(tmp_path: Path, spans: object) -> None:
    with pytest.raises(InvalidInput, match="turn_spans"):
        read_meeting_set(write_meeting(tmp_path, spans))


@pytest.mark.parametrize("spans", [[], [[0, 39]], [[100, 200]]])
def test_a_question_about_all_of_a_meeting_or_nothing_is_not_asked(tmp_path: Path, spans: object) -> None:
    with pytest.raises(InvalidInput, match="no question cites a part"):
        read_meeting_set(write_meeting(tmp_path, spans))


def test_the_kind_of_a_set_is_told_by_its_files(tmp_path: Path) -> None:
    assert read_conversations(write_meeting(tmp_path, [[1, 2]])).questions[0].category == "meeting"
    write_rows(tmp_path, "messages.jsonl", (message_row(n) for n in range(4)))
    assert read_conversations(tmp_path).questions[0].category == "thread"
    with pytest.raises(InvalidInput, match=r"messages\.jsonl"):
        read_conversations(tmp_path / "nothing")


async def test_nothing_that_came_later_is_found_in_any_channel(tmp_path: Path) -> None:
    mine = [message_row(n, text=f"{LONG} {n}") for n in range(0, 40, 10)]
    other = [message_row(n, "v", channel="d", text=f"{LONG} {n}") for n in range(5, 45, 10)]
    folder = write_rows(tmp_path, "messages.jsonl", mine + other)
    report = await conversation(folder, settings=WORDS_ONLY, profile="default")
    assert report["questions"] == 4
    # Only 5 earlier messages exist when the last one is asked: with later ones, ten could not hold them all.
    assert report["turn_recall@10"] == report["evidence_in_budget"] == 100.0


def write_sessions(folder: Path, sessions: list[str]) -> Path:
    turns = [
        {"conv": "c", "session": session, "dia_id": f"{session}:{n}", "speaker": "user", "text": "hello"}
        for session in ("one", "two")
        for n in range(2)
    ]
    write_rows(folder, "messages.jsonl", turns)
    question = {"conv": "c", "qid": 1, "question": "?", "evidence": [], "evidence_sessions": sessions}
    return write_rows(folder, "questions.jsonl", [question | {"question_date": "2024-05-02T10:00:00"}])


def test_where_only_sessions_are_cited_their_turns_are_the_evidence(tmp_path: Path) -> None:
    (question,) = read_conversations(write_sessions(tmp_path, ["two"])).questions
    assert question.evidence == {"two:0", "two:1"}
    assert question.at is not None and question.at.day == 2


def test_everything_is_no_evidence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no question cites"):
        read_conversations(write_sessions(tmp_path, ["one", "two"]))


async def test_an_unknown_profile_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="expected one of default"):
        await conversation(tmp_path, profile="best")
    with pytest.raises(InvalidInput, match="is unknown"):
        await conversation(tmp_path, profile=profile_without("default", ["sleep"]))


async def test_rankings_are_compared_on_the_same_questions(tmp_path: Path) -> None:
    write_rows(tmp_path, "messages.jsonl", (message_row(n, text=f"{LONG} {n}") for n in range(8)))
    write_rows(tmp_path, "links.jsonl", [{"channel": "c", "child": 3, "parent": 1}])
    profiles = {name: rankings()[name] for name in ("without a query context", "default")}
    steps: list[tuple[str, int, int]] = []
    figures_by_kind = await compare(tmp_path, profiles, maximum=2, progress=lambda *step: steps.append(step))
    assert {kind: list(figures) for kind, figures in figures_by_kind.items()} == {
        "thread": list(profiles),
        "reply": list(profiles),
    }
    assert figures_by_kind["thread"]["default"] == (100.0, 100.0)
    assert steps[-1] == ("reply: default", 4, 4)


def test_the_table_has_all_parts_each_alone_and_each_left_out() -> None:
    names = rankings()
    assert len(names) == 2 + 12 + 1 + 12 + 2
    assert names["default without conversation_flow"] == "default without conversation_flow"
    assert "conversation_flow" not in (names["base and conversation_flow"] or "")
