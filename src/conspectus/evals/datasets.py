"""Evaluation sets of documents, queries and judgments, read from JSON Lines."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import TypeVar, cast, get_args

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.filter import And, Eq, Filter, In
from conspectus.model.records import NewDocument, Syntax
from conspectus.text.times import parse_instant

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a JSONL file."""

    position: str
    values: Mapping[str, object]

    def id(self, name: str) -> str:
        """Return a string or number as a string."""
        return str(self._value(name, (str, int), "a string or a whole number"))

    def number(self, name: str) -> int:
        """Return an integer."""
        return self._value(name, int, "a whole number")

    def real(self, name: str) -> float:
        """Return a finite number."""
        value = self._value(name, (int, float), "a number")
        if not isfinite(value):
            raise InvalidInput(self.position, f"{name!r} must be a number")
        return float(value)

    def text(self, name: str) -> str:
        """Return a string."""
        return self._value(name, str, "a string")

    def optional(self, name: str) -> str | None:
        """Return a string or number as a string, None if it is missing or null."""
        return self.id(name) if self.values.get(name) is not None else None

    def read_mapping(self, name: str) -> Mapping[str, object]:
        """Return an object, empty if it is missing or null."""
        if self.values.get(name) is None:
            return {}
        return self._value(name, dict, "an object")

    def items(self, name: str) -> list[object]:
        """Return a list, empty if it is missing or null."""
        if self.values.get(name) is None:
            return []
        return self._value(name, list, "a list")

    def _value(self, name: str, kind: type[T] | tuple[type[T], ...], what: str) -> T:
        """Return a value of this type; booleans are not numbers. Raises InvalidInput."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, kind):
            raise InvalidInput(self.position, f"{name!r} must be {what}")
        return value

    def ids(self, name: str) -> frozenset[str]:
        """Return the strings or numbers of a list as strings."""
        return frozenset(Row(self.position, {name: value}).id(name) for value in self.items(name))

    def scalars(self, *, without: frozenset[str]) -> dict[str, object]:
        """Return all other fields that are strings, numbers or booleans."""
        return {
            name: value
            for name, value in self.values.items()
            if name not in without and isinstance(value, str | int | float)
        }


def spread(questions: Sequence[T], limit: int | None) -> list[T]:
    """Return at most `limit` items, evenly spaced, starting with the first."""
    count = len(questions) if limit is None else min(limit, len(questions))
    return [questions[number * len(questions) // count] for number in range(count)]


def rows(path: Path) -> Iterator[Row]:
    """Iterate over the rows of a JSONL file. Raises InvalidInput with file and line."""
    for number, line in lines(path):
        position = f"{path.name} line {number}"
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(position, f"is not JSON ({error})") from error
        if not isinstance(values, dict):
            raise InvalidInput(position, "is not a JSON object")
        yield Row(position, values)


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Iterate over non-empty lines with their numbers. Only a line feed ends a line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(path.name, f"cannot be read in {path.parent}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(path.name, f"is not UTF-8 at byte {error.start}") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query, its metadata filter, and the positive grades of documents by key."""

    id: str
    text: str
    where: Filter
    grades: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Documents, and the queries that have at least one relevant document."""

    documents: tuple[NewDocument, ...]
    queries: tuple[JudgedQuery, ...]


@dataclass(frozen=True, slots=True)
class CitedQuestion:
    """A question about one conversation, and the keys of the turns that answer it.

    `at` is the time of the question (None: unknown), and `thread` its thread. `before`, if given, is the
    first turn that comes after the question; turns of other conversations are visible up to `at`.
    """

    id: str
    conversation: str
    text: str
    category: str
    evidence: frozenset[str]
    at: datetime | None = None
    thread: str | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class ConversationSet:
    """The turns of each conversation in order, and the questions that cite at least one of them."""

    conversations: Mapping[str, tuple[NewDocument, ...]]
    questions: tuple[CitedQuestion, ...]


def read_retrieval_set(directory: Path) -> RetrievalSet:
    """Read `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`. Raises InvalidInput with file and line.

    Other scalar fields of a document become its metadata. `filter` of a query selects documents with equal
    metadata.
    """
    documents = read_documents(directory)
    grades = _grades(directory / "qrels.tsv")
    query_rows = list(rows(directory / "queries.jsonl"))
    queries = tuple(_read_query(row, grades[row.id("id")]) for row in query_rows if row.id("id") in grades)
    if not queries:
        raise InvalidInput("qrels.tsv", "judges no document relevant to any query of queries.jsonl")
    return RetrievalSet(documents, queries)


def read_documents(directory: Path) -> tuple[NewDocument, ...]:
    """Read `corpus.jsonl`. Raises InvalidInput with file and line, and for a file without documents."""
    documents = tuple(_document(row) for row in rows(directory / "corpus.jsonl"))
    if not documents:
        raise InvalidInput("corpus.jsonl", "has no documents")
    return documents


def read_conversation_set(directory: Path) -> ConversationSet:
    """Read `messages.jsonl` and `questions.jsonl`. Raises InvalidInput with file and line.

    A session is a thread, and the position of a turn in the file is its sequence. Times that cannot be parsed
    are left out. If an audit corrected the evidence of a question, the correction is used. If only sessions
    are cited, all their turns are evidence, unless these are all turns of the conversation. Evidence outside
    the conversation is left out, and so are questions without evidence.
    """
    conversations: dict[str, list[NewDocument]] = {}
    for row in rows(directory / "messages.jsonl"):
        turns = conversations.setdefault(row.id("conv"), [])
        turns.append(_turn(row, len(turns)))
    questions = [_question(row, conversations) for row in rows(directory / "questions.jsonl")]
    cited = tuple(question for question in questions if question.evidence)
    if not cited:
        raise InvalidInput("questions.jsonl", "no question cites a turn of its conversation")
    return ConversationSet({name: tuple(turns) for name, turns in conversations.items()}, cited)


def _document(row: Row) -> NewDocument:
    name = row.optional("syntax") or "plain"
    if name not in get_args(Syntax):
        raise InvalidInput(row.position, f"'syntax' must be one of {', '.join(get_args(Syntax))}")
    return NewDocument(
        key=row.id("id"),
        title=row.optional("title") or "",
        text=row.text("text"),
        metadata=row.scalars(without=frozenset({"id", "title", "text", "syntax"})),
        syntax=cast(Syntax, name),
    )


def _read_query(row: Row, grades: Mapping[str, float]) -> JudgedQuery:
    conditions = tuple(
        _read_condition(row, name, value) for name, value in row.read_mapping("filter").items()
    )
    return JudgedQuery(row.id("id"), row.text("text"), And(conditions), grades)


def _read_condition(row: Row, name: str, value: object) -> Filter:
    if isinstance(value, str | int | float):
        return Eq((name,), value)
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return In((name,), tuple(value))
    raise InvalidInput(row.position, f"the filter on {name!r} must be a value or a list of values")


def _turn(row: Row, sequence: int) -> NewDocument:
    speaker = row.optional("speaker")
    field_names = frozenset({"conv", "session", "dia_id", "speaker", "text", "timestamp", "date"})
    return NewDocument(
        key=row.id("dia_id"),
        text=row.text("text"),
        kind="message",
        thread=row.id("session"),
        sequence=sequence,
        author=speaker,
        role=speaker if speaker in {"user", "assistant"} else None,
        occurred=_parse_time(row.optional("timestamp") or row.optional("date")),
        metadata=row.scalars(without=field_names),
    )


def _parse_time(value: str | None) -> datetime | None:
    try:
        return None if value is None else parse_instant(value)
    except InvalidInput:
        return None


def _question(row: Row, conversations: Mapping[str, Sequence[NewDocument]]) -> CitedQuestion:
    conversation = row.id("conv")
    if conversation not in conversations:
        raise InvalidInput(row.position, f"messages.jsonl has no conversation {conversation!r}")
    turns = conversations[conversation]
    corrected = Row(row.position, row.read_mapping("audit")).ids("correct_evidence")
    cited = corrected or row.ids("evidence") or _turns_of(row.ids("evidence_sessions"), turns)
    return CitedQuestion(
        id=row.id("qid"),
        conversation=conversation,
        text=row.text("question"),
        category=row.optional("category") or "none",
        evidence=cited & {turn.key for turn in turns if turn.key},
        at=_parse_time(row.optional("question_date")),
    )


def _turns_of(sessions: frozenset[str], turns: Sequence[NewDocument]) -> frozenset[str]:
    session_turns = frozenset(turn.key for turn in turns if turn.key and turn.thread in sessions)
    return session_turns if len(session_turns) < len(turns) else frozenset()


def _grades(path: Path) -> dict[str, dict[str, float]]:
    """Return the positive grades by query and document. The first line of the file is a header."""
    grades: dict[str, dict[str, float]] = {}
    for number, line in lines(path):
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
