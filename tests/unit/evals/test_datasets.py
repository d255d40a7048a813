"""Evaluation sets from directories: what is read, what is left out, and what is said when it is broken."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conspectus.errors import InvalidInput
from conspectus.evals.datasets import read_conversation_set, read_retrieval_set
from conspectus.model.filter import And, Eq, In

CORPUS = [
    {"id": "a", "title": "A", "text": "one"},
    {"id": 2, "text": "two", "year": 1999, "tags": ["x"], "n": None},
]
QUERIES = [
    {"id": "q1", "text": "one?"},
    {"id": "q2", "text": "two?", "filter": {"year": 1999, "kind": ["b", "c"]}},
]
QRELS = "qid\tdocid\tgrade\nq1\ta\t2\nq1\t2\t0\nq2\t2\t1\nq2\ta\t-1\n"
MESSAGES = [
    {
        "conv": "c",
        "session": 1,
        "dia_id": "1:1",
        "speaker": "Ann",
        "text": "hi",
        "timestamp": "2024-05-01T10:00:00",
    },
    {
        "conv": "c",
        "session": 1,
        "dia_id": "1:2",
        "speaker": "user",
        "text": "yo",
        "timestamp": "last week",
        "mood": 3,
    },
    {"conv": "d", "session": "s", "dia_id": 0, "speaker": "assistant", "text": "ok", "date": "2024-05-02"},
    {"conv": "c", "session": 2, "dia_id": "2:1", "speaker": "Ann", "text": "bye"},
]
QUESTIONS = [
    {"conv": "c", "qid": "x", "question": "?", "category": "easy", "evidence": ["1:1", "9:9"], "audit": None},
    {
        "conv": "c",
        "qid": "y",
        "question": "?",
        "evidence": ["1:1"],
        "audit": {"correct_evidence": ["1:2", "2:1"]},
    },
    {"conv": "d", "qid": "z", "question": "?", "evidence": [0], "audit": {"correct_evidence": []}},
    {"conv": "d", "qid": "none", "question": "?", "evidence": []},
    {"conv": "d", "qid": "other", "question": "?", "evidence": ["1:1"]},
]


def to_lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_retrieval_files(folder: Path, **changed: str) -> Path:
    files = {"corpus.jsonl": to_lines(CORPUS), "queries.jsonl": to_lines(QUERIES), "qrels.tsv": QRELS}
    for name, text in (files | {name.replace("_", "."): text for name, text in changed.items()}).items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder


def write_conversation_files(folder: Path, **changed: str) -> Path:
    files = {"messages.jsonl": to_lines(MESSAGES), "questions.jsonl": to_lines(QUESTIONS)}
    for name, text in (files | {name.replace("_", "."): text for name, text in changed.items()}).items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder


def test_documents_keep_their_scalar_fields_as_metadata(tmp_path):
    first, second = read_retrieval_set(write_retrieval_files(tmp_path)).documents
    assert (first.key, first.title, first.text, first.metadata) == ("a", "A", "one", {})
    assert (second.key, second.title, second.text, second.metadata) == ("2", "", "two", {"year": 1999})


def test_queries_have_positive_grades_and_their_filter(tmp_path):
    first, second = read_retrieval_set(write_retrieval_files(tmp_path)).queries
    assert (first.grades, first.where) == ({"a": 2.0}, And())
    assert second.grades == {"2": 1.0}
    assert second.where == And((Eq(("year",), 1999), In(("kind",), ("b", "c"))))


def test_a_query_without_a_relevant_document_is_left_out(tmp_path):
    judged = read_retrieval_set(write_retrieval_files(tmp_path, qrels_tsv="h\nq1\ta\t0\nq2\t2\t1\n")).queries
    assert [query.id for query in judged] == ["q2"]


@pytest.mark.parametrize("character", ["\u2028", "\u0085", "\u2029"])
def test_only_a_line_feed_ends_a_line(tmp_path, character):
    first, second = '{"id": "a", "text": "one"}\n', f'{{"id": "b", "text": "x{character}y"}}\r\n\n'
    documents = read_retrieval_set(write_retrieval_files(tmp_path, corpus_jsonl=first + second)).documents
    assert documents[1].text == f"x{character}y"


def test_turns_are_messages_in_order(tmp_path):
    conversation_set = read_conversation_set(write_conversation_files(tmp_path))
    assert {name: [turn.key for turn in turns] for name, turns in conversation_set.conversations.items()} == {
        "c": ["1:1", "1:2", "2:1"],
        "d": ["0"],
    }
    first, second, third = conversation_set.conversations["c"]
    assert [turn.sequence for turn in (first, second, third)] == [0, 1, 2]
    assert [turn.thread for turn in (first, second, third)] == ["1", "1", "2"]
    assert (first.kind, first.author, first.role) == ("message", "Ann", None)
    assert first.occurred == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert (second.role, second.occurred, second.metadata) == ("user", None, {"mood": 3})
    assert conversation_set.conversations["d"][0].occurred == datetime(2024, 5, 2, tzinfo=UTC)


def test_corrected_evidence_replaces_the_citation_and_unknown_turns_go(tmp_path):
    questions = read_conversation_set(write_conversation_files(tmp_path)).questions
    assert {question.id: set(question.evidence) for question in questions} == {
        "x": {"1:1"},
        "y": {"1:2", "2:1"},
        "z": {"0"},
    }
    assert [question.category for question in questions] == ["easy", "none", "none"]


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        ("corpus_jsonl", "", "corpus.jsonl"),
        ("corpus_jsonl", '{"id": "a"}\n', "corpus.jsonl line 1"),
        ("corpus_jsonl", '{"id": "a", "text": "t"}\nnonsense\n', "corpus.jsonl line 2"),
        ("corpus_jsonl", "[1]\n", "corpus.jsonl line 1"),
        ("corpus_jsonl", "[" * 100_000, "corpus.jsonl line 1"),
        ("corpus_jsonl", '{"id": true, "text": "t"}\n', "corpus.jsonl line 1"),
        ("queries_jsonl", '{"id": "q1", "text": null}\n', "queries.jsonl line 1"),
        ("queries_jsonl", '{"id": "q1", "text": "t", "filter": [1]}\n', "queries.jsonl line 1"),
        ("queries_jsonl", '{"id": "q1", "text": "t", "filter": {"a": {"b": 1}}}\n', "queries.jsonl line 1"),
        ("qrels_tsv", "qid\tdocid\tgrade\nq1\ta\n", "qrels.tsv line 2"),
        ("qrels_tsv", "qid\tdocid\tgrade\nq1\ta\thigh\n", "qrels.tsv line 2"),
        ("qrels_tsv", "qid\tdocid\tgrade\nother\ta\t1\n", "qrels.tsv"),
    ],
)
def test_a_broken_retrieval_set_is_named_by_file_and_line(tmp_path, name, text, field):
    with pytest.raises(InvalidInput) as caught:
        read_retrieval_set(write_retrieval_files(tmp_path, **{name: text}))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        ("messages_jsonl", '{"conv": "c", "session": 1, "text": "t"}\n', "messages.jsonl line 1"),
        ("questions_jsonl", '{"conv": "nobody", "qid": 1, "question": "?"}\n', "questions.jsonl line 1"),
        (
            "questions_jsonl",
            '{"conv": "c", "qid": 1, "question": "?", "evidence": "1:1"}\n',
            "questions.jsonl line 1",
        ),
        (
            "questions_jsonl",
            '{"conv": "c", "qid": 1, "question": "?", "evidence": [[]]}\n',
            "questions.jsonl line 1",
        ),
        ("questions_jsonl", '{"conv": "c", "qid": 1, "question": "?"}\n', "questions.jsonl"),
    ],
)
def test_a_broken_conversation_set_is_named_by_file_and_line(tmp_path, name, text, field):
    with pytest.raises(InvalidInput) as caught:
        read_conversation_set(write_conversation_files(tmp_path, **{name: text}))
    assert caught.value.field == field


@pytest.mark.parametrize("read", [read_retrieval_set, read_conversation_set])
def test_a_directory_without_the_files_is_refused(tmp_path, read):
    with pytest.raises(InvalidInput, match="cannot be read in"):
        read(tmp_path)
    with pytest.raises(InvalidInput, match="cannot be read in"):
        read(tmp_path / "missing")


def test_other_encodings_are_refused_and_a_byte_order_mark_is_not(tmp_path):
    folder = write_retrieval_files(tmp_path, queries_jsonl="\ufeff" + to_lines(QUERIES))
    assert len(read_retrieval_set(folder).queries) == 2
    (folder / "corpus.jsonl").write_bytes('{"id": "a", "text": "é"}'.encode("latin-1"))
    with pytest.raises(InvalidInput, match="not UTF-8"):
        read_retrieval_set(folder)


@pytest.mark.data
def test_the_audit_of_locomo_is_obeyed(evaluation):
    questions = {q.id: q for q in read_conversation_set(evaluation("locomo")).questions}
    assert questions["locomo_0_qa1"].evidence == {"D1:14"}
    assert "locomo_0_qa30" not in questions
