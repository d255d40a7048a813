"""Evaluation sets from a directory: documents with judged queries, or conversations with cited turns."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from conspectus.errors import InvalidInput
from conspectus.model.filter import And, Eq, Filter, In
from conspectus.model.records import NewDocument
from conspectus.text.times import parse_instant


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query, the metadata filter it is asked under, and the positive grades of documents by key."""

    id: str
    text: str
    where: Filter
    grades: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Documents and the queries that have at least one relevant document."""

    documents: tuple[NewDocument, ...]
    queries: tuple[JudgedQuery, ...]


@dataclass(frozen=True, slots=True)
class CitedQuestion:
    """A question about one conversation and the keys of the turns that answer it."""

    id: str
    conversation: str
    text: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class ConversationSet:
    """The turns of each conversation in order, and the questions that cite at least one of them."""

    conversations: Mapping[str, tuple[NewDocument, ...]]
    questions: tuple[CitedQuestion, ...]


def read_retrieval_set(directory: Path) -> RetrievalSet:
    """Read `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`. Raises InvalidInput naming file and line.

    Other scalar fields of a document become its metadata; `filter` of a query asks for their equality.
    """
    documents = tuple(_document(row) for row in _rows(directory / "corpus.jsonl"))
    if not documents:
        raise InvalidInput("corpus.jsonl", "has no documents")
    grades = _grades(directory / "qrels.tsv")
    rows = list(_rows(directory / "queries.jsonl"))
    queries = tuple(_query(row, grades[row.id("id")]) for row in rows if row.id("id") in grades)
    if not queries:
        raise InvalidInput("qrels.tsv", "judges no document relevant to any query of queries.jsonl")
    return RetrievalSet(documents, queries)


def read_conversation_set(directory: Path) -> ConversationSet:
    """Read `messages.jsonl` and `questions.jsonl`. Raises InvalidInput naming file and line.

    A session is a thread; a turn's place in the file is its sequence; a time that cannot be read is left
    out. Where an audit corrected the
    evidence of a question, the correction counts. Evidence outside the conversation is left out, and
    so is a question without any.
    """
    conversations: dict[str, list[NewDocument]] = {}
    for row in _rows(directory / "messages.jsonl"):
        turns = conversations.setdefault(row.id("conv"), [])
        turns.append(_turn(row, len(turns)))
    keys = {name: frozenset(turn.key for turn in turns if turn.key) for name, turns in conversations.items()}
    questions = [_question(row, keys) for row in _rows(directory / "questions.jsonl")]
    cited = tuple(question for question in questions if question.evidence)
    if not cited:
        raise InvalidInput("questions.jsonl", "no question cites a turn of its conversation")
    return ConversationSet({name: tuple(turns) for name, turns in conversations.items()}, cited)


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of a JSONL file, read field by field with errors that say where."""

    place: str
    values: Mapping[str, object]

    def id(self, name: str) -> str:
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InvalidInput(self.place, f"{name!r} must be a string or a whole number")
        return str(value)

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if not isinstance(value, str):
            raise InvalidInput(self.place, f"{name!r} must be a string")
        return value

    def optional(self, name: str) -> str | None:
        return self.id(name) if self.values.get(name) is not None else None

    def mapping(self, name: str) -> Mapping[str, object]:
        value = self.values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise InvalidInput(self.place, f"{name!r} must be an object")
        return value

    def ids(self, name: str) -> frozenset[str]:
        values = self.values.get(name)
        if values is None:
            return frozenset()
        if not isinstance(values, list):
            raise InvalidInput(self.place, f"{name!r} must be a list")
        return frozenset(_Row(self.place, {name: value}).id(name) for value in values)

    def scalars(self, *, without: frozenset[str]) -> dict[str, object]:
        return {
            name: value
            for name, value in self.values.items()
            if name not in without and isinstance(value, str | int | float)
        }


def _document(row: _Row) -> NewDocument:
    return NewDocument(
        key=row.id("id"),
        title=row.optional("title") or "",
        text=row.text("text"),
        metadata=row.scalars(without=frozenset({"id", "title", "text"})),
    )


def _query(row: _Row, grades: Mapping[str, float]) -> JudgedQuery:
    conditions = tuple(_condition(row, name, value) for name, value in row.mapping("filter").items())
    return JudgedQuery(row.id("id"), row.text("text"), And(conditions), grades)


def _condition(row: _Row, name: str, value: object) -> Filter:
    if isinstance(value, str | int | float):
        return Eq((name,), value)
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return In((name,), tuple(value))
    raise InvalidInput(row.place, f"the filter on {name!r} must be a value or a list of values")


def _turn(row: _Row, sequence: int) -> NewDocument:
    speaker = row.optional("speaker")
    taken = frozenset({"conv", "session", "dia_id", "speaker", "text", "timestamp", "date"})
    return NewDocument(
        key=row.id("dia_id"),
        text=row.text("text"),
        kind="message",
        thread=row.id("session"),
        sequence=sequence,
        author=speaker,
        role=speaker if speaker in {"user", "assistant"} else None,
        occurred=_occurred(row.optional("timestamp") or row.optional("date")),
        metadata=row.scalars(without=taken),
    )


def _occurred(value: str | None) -> datetime | None:
    try:
        return None if value is None else parse_instant(value)
    except InvalidInput:
        return None


def _question(row: _Row, keys: Mapping[str, frozenset[str]]) -> CitedQuestion:
    conversation = row.id("conv")
    if conversation not in keys:
        raise InvalidInput(row.place, f"messages.jsonl has no conversation {conversation!r}")
    corrected = _Row(row.place, row.mapping("audit")).ids("correct_evidence")
    return CitedQuestion(
        id=row.id("qid"),
        conversation=conversation,
        text=row.text("question"),
        category=row.optional("category") or "none",
        evidence=(corrected or row.ids("evidence")) & keys[conversation],
    )


def _rows(path: Path) -> Iterator[_Row]:
    for number, line in _lines(path):
        place = f"{path.name} line {number}"
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(place, f"is not JSON ({error})") from error
        if not isinstance(values, dict):
            raise InvalidInput(place, "is not a JSON object")
        yield _Row(place, values)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, blank ones left out; only a line feed ends a line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(path.name, f"cannot be read in {path.parent}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(path.name, f"is not UTF-8 at byte {error.start}") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")


def _grades(path: Path) -> dict[str, dict[str, float]]:
    """Positive grades by query and document; the first line is a header."""
    grades: dict[str, dict[str, float]] = {}
    for number, line in _lines(path):
        if number == 1:
            continue
        try:
            query, document, grade = line.split("\t")
            value = float(grade)
        except ValueError:
            raise InvalidInput(f"{path.name} line {number}", "must be qid, docid and grade by tabs") from None
        if value > 0:
            grades.setdefault(query, {})[document] = value
    return grades
