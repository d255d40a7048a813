"""Evaluation sets of questions with the spans of documents that answer them."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import regex

from conspectus import bootstrap
from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError, InvalidInput
from conspectus.evals.datasets import Row, read_documents, read_retrieval_set, rows, spread
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.records import NewDocument
from conspectus.settings import Settings
from conspectus.text.positions import headings_in
from conspectus.text.sentences import Span, sentences

HEADING, WORDS, JUDGED = "by heading", "by words", "questions"
"""The kinds of questions: two generated kinds, and the questions of a set."""
_PROSE = regex.compile(r"\p{Lu}[^\n|]*(?:\n[^\s|][^\n|]*)*[.!?]")
_WORD = regex.compile(r"\w{4,}")
_FENCED = regex.compile(r"^[ \t>]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t>]*\1|\Z)", regex.MULTILINE | regex.DOTALL)
_MAX_LENGTH = 300
_MIN_WORDS = 6


@dataclass(frozen=True, slots=True)
class EvidenceQuestion:
    """A question, and the spans of documents, by key, that answer it; `id` is unique in its kind."""

    id: str
    kind: str
    text: str
    spans: tuple[tuple[str, Span], ...]
    where: Filter = EVERYTHING


@dataclass(frozen=True, slots=True)
class EvidenceSet:
    """Documents with unique keys, and questions about them."""

    documents: tuple[NewDocument, ...]
    questions: tuple[EvidenceQuestion, ...]


def read_evidence_set(directory: Path, settings: Settings, *, pages: str | None = None) -> EvidenceSet:
    """Read `corpus.jsonl` with its questions, or files with headings. Raises InvalidInput without any.

    The evidence of a question is its `spans`, or else every sentence of the documents that are relevant by
    `qrels.tsv`. With `pages`, documents that share a value of that metadata field are joined into one
    Markdown page, with each document as a section under its title.
    """
    if not (directory / "corpus.jsonl").exists():
        return _from_files(directory, settings)
    documents = read_documents(directory)
    spanned = [question for row in rows(directory / "queries.jsonl") for question in _read_spans(row)]
    data = EvidenceSet(documents, tuple(spanned or _read_judged(directory)))
    return data if pages is None else _on_pages(data, pages)


def read_spanned_questions(path: Path) -> list[EvidenceQuestion]:
    """Read the questions with spans of a `queries.jsonl`. Raises InvalidInput for a file without any."""
    questions = [question for row in rows(path) for question in _read_spans(row)]
    if not questions:
        raise InvalidInput(path.name, "has no question with spans; write a set with conspectus eval init")
    return questions


def _read_spans(row: Row) -> Iterator[EvidenceQuestion]:
    span_rows = [Row(row.position, span) for span in row.items("spans") if isinstance(span, dict)]
    document = row.optional("doc")
    spans = [(document or one.id("doc"), (one.number("start"), one.number("end"))) for one in span_rows]
    if spans:
        yield EvidenceQuestion(row.id("id"), JUDGED, row.text("text"), tuple(spans))


def _read_judged(directory: Path) -> Iterator[EvidenceQuestion]:
    data = read_retrieval_set(directory)
    texts = {document.key or "": document.text for document in data.documents}
    for query in data.queries:
        relevant = sorted(query.grades.keys() & texts.keys())
        spans = tuple((key, span) for key in relevant for span in sentences(texts[key]))
        if spans:
            yield EvidenceQuestion(query.id, JUDGED, query.text, spans, query.where)


def _on_pages(data: EvidenceSet, field: str) -> EvidenceSet:
    """Return the same questions about pages that have the documents as sections."""
    texts: dict[str, str] = {}
    places: dict[str, tuple[str, int]] = {}
    metadata: dict[str, Mapping[str, object]] = {}
    for document in data.documents:
        name = str(document.metadata.get(field, ""))
        texts[name] = texts.get(name, f"# {name}\n\n") + f"## {document.title}\n\n"
        places[document.key or ""] = (name, len(texts[name]))
        texts[name] += f"{document.text.strip()}\n\n"
        metadata[name] = {field: document.metadata.get(field)}
    pages = tuple(
        NewDocument(text, title=name, key=name, metadata=metadata[name], syntax="markdown")
        for name, text in texts.items()
    )

    def move_span(key: str, span: Span) -> tuple[str, Span]:
        page, start = places[key]
        return page, (start + span[0], start + span[1])

    moved_questions = (
        replace(question, spans=tuple(move_span(key, span) for key, span in question.spans))
        for question in data.questions
    )
    return EvidenceSet(pages, tuple(moved_questions))


def _from_files(directory: Path, settings: Settings) -> EvidenceSet:
    files = bootstrap.local_files(settings)
    documents: list[NewDocument] = []
    for file in files.discover([directory]):
        try:
            documents += files.parse(file).documents
        except ConspectusError:
            continue
    questions = tuple(question for document in documents for question in _about(document))
    if not questions:
        raise InvalidInput("directory", f"{directory} has neither corpus.jsonl nor files with headings")
    return EvidenceSet(tuple(documents), questions)


def _about(document: NewDocument) -> Iterator[EvidenceQuestion]:
    """Return two questions per section: its heading, and every second word of its last sentence."""
    headings = list(headings_in(document.text, document.syntax))
    code = [fence.span() for fence in _FENCED.finditer(document.text)]
    for heading, after in zip_longest(headings, headings[1:]):
        end = len(document.text) if after is None else after.start
        prose = list(_prose(document.text, (heading.start, end), code))
        if prose:
            heading_text = " ".join([document.title, *heading.headings[-1:]])
            yield _question_about(HEADING, heading_text, document, prose[0])
            yield _by_words(document, prose[-1])


def _by_words(document: NewDocument, sentence: Span) -> EvidenceQuestion:
    words = list(dict.fromkeys(_WORD.findall(document.text[slice(*sentence)])))
    return _question_about(WORDS, " ".join(words[::2]), document, sentence)


def _question_about(kind: str, text: str, document: NewDocument, sentence: Span) -> EvidenceQuestion:
    key = document.key or ""
    return EvidenceQuestion(f"{key} {sentence[0]}", kind, text, ((key, sentence),))


def questions_about(documents: Sequence[NewDocument], limit: int | None = None) -> EvidenceSet:
    """Make questions from headings and sentences of the documents, the same on every run.

    `limit` is the maximum number of questions of each kind, evenly spread. A document without headings is one
    section under its title. Raises InvalidInput if no sentence is suitable.
    """
    generated = [
        question
        for document in documents
        for question in (list(_about(document)) or list(_about_whole_document(document)))
    ]
    questions = tuple(question for of_kind in by_kind(generated, limit).values() for question in of_kind)
    if not questions:
        raise InvalidInput("documents", "have no sentence that a question could be made of")
    return EvidenceSet(tuple(documents), questions)


def _about_whole_document(document: NewDocument) -> Iterator[EvidenceQuestion]:
    prose = list(_prose(document.text, (0, len(document.text)), ()))
    if prose and document.title:
        yield _question_about(HEADING, document.title, document, prose[0])
    if prose:
        yield _by_words(document, prose[-1])


def write_evidence_set(data: EvidenceSet, directory: Path) -> None:
    """Write `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`, which the other evaluations read too.

    Raises InvalidInput if one of them exists, so edited questions are never lost.
    """
    corpus, queries, grades = (directory / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"))
    if there := [path.name for path in (corpus, queries, grades) if path.exists()]:
        raise InvalidInput("directory", f"{directory} already has {', '.join(there)}")
    directory.mkdir(parents=True, exist_ok=True)
    texts = (
        {
            **document.metadata,
            "id": document.key,
            "title": document.title,
            "text": document.text,
            "syntax": document.syntax,
        }
        for document in data.documents
    )
    numbered = [(f"q{number}", question) for number, question in enumerate(data.questions, 1)]
    query_rows = (
        {
            "id": name,
            "text": question.text,
            "kind": question.kind,
            "spans": [{"doc": key, "start": start, "end": end} for key, (start, end) in question.spans],
        }
        for name, question in numbered
    )
    corpus.write_text("".join(f"{json.dumps(document_row)}\n" for document_row in texts), encoding="utf-8")
    queries.write_text("".join(f"{json.dumps(query_row)}\n" for query_row in query_rows), encoding="utf-8")
    judged = dict.fromkeys((name, key) for name, question in numbered for key, _ in question.spans)
    rows_of_grades = ["qid\tdocid\tgrade", *(f"{name}\t{key}\t1" for name, key in judged), ""]
    grades.write_text("\n".join(rows_of_grades), encoding="utf-8")


def _prose(text: str, section: Span, code: Sequence[Span]) -> Iterator[Span]:
    """Return the sentences of a section: not from code, tables or lists, and not too long."""
    start, end = section
    for first, last in sentences(text[start:end]):
        span = (start + first, start + last)
        line = text.rfind("\n", 0, span[0]) + 1
        sentence = text[slice(*span)]
        if (
            _PROSE.fullmatch(sentence)
            and len(sentence) <= _MAX_LENGTH
            and len(set(_WORD.findall(sentence))) >= _MIN_WORDS
            and text[line : line + 1].isalpha()
            and not any(begin <= span[0] < stop for begin, stop in code)
        ):
            yield span


def by_kind(questions: Sequence[EvidenceQuestion], limit: int | None) -> dict[str, list[EvidenceQuestion]]:
    """Return the questions of each kind, at most `limit` of each, evenly spread."""
    kinds: dict[str, list[EvidenceQuestion]] = defaultdict(list)
    for question in questions:
        kinds[question.kind].append(question)
    return {kind: spread(kind_questions, limit) for kind, kind_questions in kinds.items()}
