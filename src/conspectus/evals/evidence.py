"""Evaluate whether windows contain the evidence of an answer, also over the turns of a conversation."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from statistics import fmean
from typing import TypeAlias, TypedDict, Unpack

import regex

from conspectus import bootstrap
from conspectus.chat.query_rewriting import standalone
from conspectus.deferred import dataclass
from conspectus.engine import Engine
from conspectus.errors import ConspectusError, InvalidInput
from conspectus.evals.compare import BY_QUESTION, WINDOWS
from conspectus.evals.datasets import JudgedQuery, Row, read_documents, read_retrieval_set, rows, spread
from conspectus.evals.run import Figures, fresh_engine, ndcg, percent, recall, stored
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.query import Budget, Query
from conspectus.model.records import NewDocument
from conspectus.model.results import Citation, Message
from conspectus.ports import Progress
from conspectus.settings import Settings
from conspectus.text.clean import Span, sentences
from conspectus.text.positions import headings_in

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
    spanned = [question for row in rows(directory / "queries.jsonl") for question in _spanned(row)]
    data = EvidenceSet(documents, tuple(spanned or _judged(directory)))
    return data if pages is None else _on_pages(data, pages)


def _spanned(row: Row) -> Iterator[EvidenceQuestion]:
    found = [Row(row.place, span) for span in row.items("spans") if isinstance(span, dict)]
    document = row.optional("doc")
    spans = [(document or one.id("doc"), (one.number("start"), one.number("end"))) for one in found]
    if spans:
        yield EvidenceQuestion(row.id("id"), JUDGED, row.text("text"), tuple(spans))


def _judged(directory: Path) -> Iterator[EvidenceQuestion]:
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

    def moved(key: str, span: Span) -> tuple[str, Span]:
        page, start = places[key]
        return page, (start + span[0], start + span[1])

    moved_questions = (
        replace(each, spans=tuple(moved(key, span) for key, span in each.spans)) for each in data.questions
    )
    return EvidenceSet(pages, tuple(moved_questions))


def _from_files(directory: Path, settings: Settings) -> EvidenceSet:
    files = bootstrap.local_files(settings)
    documents: list[NewDocument] = []
    for found in files.discover([directory]):
        try:
            documents += files.parse(found).documents
        except ConspectusError:
            continue
    questions = tuple(question for document in documents for question in _about(document))
    if not questions:
        raise InvalidInput("directory", f"{directory} has neither corpus.jsonl nor files with headings")
    return EvidenceSet(tuple(documents), questions)


def _about(document: NewDocument) -> Iterator[EvidenceQuestion]:
    """Return two questions per section: its heading, and every second word of its last sentence."""
    headings = list(headings_in(document.text, document.syntax))
    code = [found.span() for found in _FENCED.finditer(document.text)]
    for heading, after in zip_longest(headings, headings[1:]):
        end = len(document.text) if after is None else after.start
        prose = list(_prose(document.text, (heading.start, end), code))
        if prose:
            asked = " ".join([document.title, *heading.headings[-1:]])
            yield _made(HEADING, asked, document, prose[0])
            yield _by_words(document, prose[-1])


def _by_words(document: NewDocument, sentence: Span) -> EvidenceQuestion:
    words = list(dict.fromkeys(_WORD.findall(document.text[slice(*sentence)])))
    return _made(WORDS, " ".join(words[::2]), document, sentence)


def _made(kind: str, text: str, document: NewDocument, sentence: Span) -> EvidenceQuestion:
    key = document.key or ""
    return EvidenceQuestion(f"{key} {sentence[0]}", kind, text, ((key, sentence),))


def questions_about(documents: Sequence[NewDocument], limit: int | None = None) -> EvidenceSet:
    """Make questions from headings and sentences of the documents, the same on every run.

    `limit` is the maximum number of questions of each kind, evenly spread. A document without headings is one
    section under its title. Raises InvalidInput if no sentence is suitable.
    """
    made = [each for document in documents for each in (list(_about(document)) or list(_whole(document)))]
    questions = tuple(each for asked in by_kind(made, limit).values() for each in asked)
    if not questions:
        raise InvalidInput("documents", "have no sentence that a question could be made of")
    return EvidenceSet(tuple(documents), questions)


def _whole(document: NewDocument) -> Iterator[EvidenceQuestion]:
    prose = list(_prose(document.text, (0, len(document.text)), ()))
    if prose and document.title:
        yield _made(HEADING, document.title, document, prose[0])
    if prose:
        yield _by_words(document, prose[-1])


def write_evidence_set(data: EvidenceSet, directory: Path) -> None:
    """Write `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`, which the other evaluations read too.

    Raises InvalidInput if one of them exists, so edited questions are never lost.
    """
    corpus, queries, grades = (directory / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"))
    if there := [each.name for each in (corpus, queries, grades) if each.exists()]:
        raise InvalidInput("directory", f"{directory} already has {', '.join(there)}")
    directory.mkdir(parents=True, exist_ok=True)
    texts = (
        {**each.metadata, "id": each.key, "title": each.title, "text": each.text, "syntax": each.syntax}
        for each in data.documents
    )
    numbered = [(f"q{number}", each) for number, each in enumerate(data.questions, 1)]
    asked = (
        {
            "id": name,
            "text": each.text,
            "kind": each.kind,
            "spans": [{"doc": key, "start": start, "end": end} for key, (start, end) in each.spans],
        }
        for name, each in numbered
    )
    corpus.write_text("".join(f"{json.dumps(each)}\n" for each in texts), encoding="utf-8")
    queries.write_text("".join(f"{json.dumps(each)}\n" for each in asked), encoding="utf-8")
    judged = dict.fromkeys((name, key) for name, each in numbered for key, _ in each.spans)
    rows_of_grades = ["qid\tdocid\tgrade", *(f"{name}\t{key}\t1" for name, key in judged), ""]
    grades.write_text("\n".join(rows_of_grades), encoding="utf-8")


def _prose(text: str, section: Span, code: Sequence[Span]) -> Iterator[Span]:
    """Return the sentences of a section: not from code, tables or lists, and not too long."""
    start, end = section
    for first, last in sentences(text[start:end]):
        span = (start + first, start + last)
        line = text.rfind("\n", 0, span[0]) + 1
        said = text[slice(*span)]
        if (
            _PROSE.fullmatch(said)
            and len(said) <= _MAX_LENGTH
            and len(set(_WORD.findall(said))) >= _MIN_WORDS
            and text[line : line + 1].isalpha()
            and not any(begin <= span[0] < stop for begin, stop in code)
        ):
            yield span


def by_kind(questions: Sequence[EvidenceQuestion], limit: int | None) -> dict[str, list[EvidenceQuestion]]:
    """Return the questions of each kind, at most `limit` of each, evenly spread."""
    kinds: dict[str, list[EvidenceQuestion]] = defaultdict(list)
    for question in questions:
        kinds[question.kind].append(question)
    return {kind: spread(asked, limit) for kind, asked in kinds.items()}


BUDGETS = (128, 256, 512, 1024)


class EvidenceOptions(TypedDict, total=False):
    """Budgets in tokens (o200k_base), the maximum number of questions of each kind, the field by which
    documents are joined to pages (`read_evidence_set`), and whether the windows are part of the report.
    """

    budgets: Sequence[int]
    limit: int | None
    pages: str | None
    windows: bool


async def evidence(
    directory: str | Path,
    *,
    settings: Settings | None = None,
    progress: Progress | None = None,
    **options: Unpack[EvidenceOptions],
) -> dict[str, dict[str, object]]:
    """Return the share of evidence in windows of `budgets` tokens (o200k_base), 0 to 100, by kind.

    `by_question` has the share of each question, from 0 to 1. A sentence counts if all its characters are
    cited. With `windows`, the report also has each question with its evidence and the passages of its
    windows. Raises InvalidInput for a directory without such a set.
    """
    budgets = options.get("budgets", BUDGETS)
    if any(maximum < 0 for maximum in budgets):
        raise InvalidInput("max_tokens", "must not be negative")
    report_progress = progress or (lambda *_: None)
    chosen = settings or Settings.from_environment()
    data = read_evidence_set(Path(directory), chosen, pages=options.get("pages"))
    texts = {document.key or "": document.text for document in data.documents}
    async with fresh_engine(chosen) as engine:
        keys = (await stored(engine, {"corpus": data.documents}, progress))["corpus"]
        report: dict[str, dict[str, object]] = {}
        for kind, questions in by_kind(data.questions, options.get("limit")).items():
            shares: Figures = {}
            shown: dict[str, object] = {}
            for done, question in enumerate(questions, start=1):
                built = {str(maximum): await _cited(engine, question, maximum, keys) for maximum in budgets}
                shares[question.id] = {maximum: _share(question, cited) for maximum, cited in built.items()}
                shown[question.id] = _shown(question, built, texts)
                report_progress(f"asking {kind}", done, len(questions))
            means = {
                str(maximum): percent([each[str(maximum)] for each in shares.values()]) for maximum in budgets
            }
            windows = {WINDOWS: shown} if options.get("windows") else {}
            report[kind] = {**means, "asked": len(questions), BY_QUESTION: shares, **windows}
    return report


Cited = Sequence[tuple[str, Citation]]
"""The citations of a window in reading order, each with the key of its document."""


async def _cited(
    engine: Engine, question: EvidenceQuestion, max_tokens: int, keys: Mapping[str, str]
) -> Cited:
    query = Query(question.text, filter=question.where)
    window = await engine.window(query, Budget(max_tokens, tokenizer="o200k_base"))
    return [(keys[each.document], each) for each in window.citations]


def _shown(
    question: EvidenceQuestion, built: Mapping[str, Cited], texts: Mapping[str, str]
) -> dict[str, object]:
    """Return a question with its evidence, and the passages of its window for each budget."""

    def span(key: str, start: int, end: int) -> dict[str, object]:
        return {"key": key, "start": start, "end": end, "text": texts[key][start:end]}

    return {
        "query": question.text,
        "evidence": [span(key, *place) for key, place in question.spans],
        "passages": {
            maximum: [span(key, each.start, each.end) for key, each in cited]
            for maximum, cited in built.items()
        },
    }


def _share(question: EvidenceQuestion, window: Cited) -> float:
    cited: dict[str, list[Citation]] = defaultdict(list)
    for key, citation in window:
        cited[key].append(citation)
    return fmean(_covers(cited[key], span) for key, span in question.spans)


def _covers(citations: Sequence[Citation], span: Span) -> bool:
    """Return whether citations of one document cover every character of the span."""
    reached, end = span
    for citation in sorted(citations, key=lambda each: each.start):
        if citation.start <= reached:
            reached = max(reached, citation.end)
    return reached >= end


DEPTH = 10
CHUNKS = 60
"""Number of chunks to request, enough for ten documents."""
FIRST = "first"
SWITCHED = "switched"
"""The kinds of questions without history, and of the same questions after another conversation."""

TurnsReport = TypedDict(
    "TurnsReport", {"ndcg@10": float, "recall@5": float, "recall@10": float, "questions": int}
)
Rewrite: TypeAlias = Callable[[str, Sequence[Message]], str]


WAYS: Mapping[str, Rewrite] = {
    "last": lambda message, _: message,
    "previous": lambda message, history: " ".join([*_users(history)[-1:], message]),
    "every": lambda message, history: " ".join([*_users(history), message]),
    "standalone": standalone,
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with its history and its kind."""

    judged: JudgedQuery
    history: tuple[Message, ...]
    kind: str


async def turns(
    directory: str | Path, *, settings: Settings | None = None, progress: Progress | None = None
) -> dict[str, dict[str, TurnsReport]]:
    """Return nDCG@10, recall@5 and recall@10, 0 to 100, by query method, for `all` and each kind.

    The methods are `last` (the last turn), `previous` and `every` (with one or all earlier user turns), and
    `standalone`. The kinds are the first entries of `multi_turn` in `queries.jsonl`, `first` without
    `history`, and `switched`: `first` questions after the turns of another conversation, which `all` does not
    include. Only questions with a relevant document are used. Raises InvalidInput as the evaluation of
    retrieval does.
    """
    folder = Path(directory)
    given = read_retrieval_set(folder)
    judged = {each.id: each for each in given.queries}
    known = [row for row in rows(folder / "queries.jsonl") if row.id("id") in judged]
    questions = [_asked(row, judged[row.id("id")]) for row in known]
    questions += _switched(questions)
    async with fresh_engine(settings or Settings.from_environment()) as engine:
        await stored(engine, {"corpus": given.documents}, progress)
        return {name: await _measured(engine, questions, way) for name, way in WAYS.items()}


def _asked(row: Row, judged: JudgedQuery) -> _Asked:
    history = tuple(_turn(row, each) for each in row.items("history"))
    kinds = [str(kind) for kind in row.items("multi_turn")] or ["other"]
    return _Asked(judged, history, kinds[0] if history else FIRST)


def _turn(row: Row, turn: object) -> Message:
    said = Row(row.place, turn if isinstance(turn, dict) else {})
    return Message("user" if said.text("role") == "user" else "assistant", said.text("text"))


def _switched(questions: Sequence[_Asked]) -> list[_Asked]:
    """Return each `first` question with the history of the next question of another conversation."""
    found = []
    for place, each in enumerate(questions):
        others = (other.history for other in chain(questions[place:], questions[:place]) if other.history)
        history = next((turns for turns in others if turns[0].content != each.judged.text), ())
        if history and not each.history:
            found.append(_Asked(each.judged, history, SWITCHED))
    return found


async def _measured(engine: Engine, questions: Sequence[_Asked], way: Rewrite) -> dict[str, TurnsReport]:
    rankings: dict[str, list[tuple[JudgedQuery, list[str]]]] = defaultdict(list)
    for each in questions:
        ranking = await _ranking(engine, way(each.judged.text, each.history), each.judged)
        rankings[each.kind].append((each.judged, ranking))
        if each.kind != SWITCHED:
            rankings["all"].append((each.judged, ranking))
    return {kind: _report(rankings[kind]) for kind in sorted(rankings)}


async def _ranking(engine: Engine, text: str, judged: JudgedQuery) -> list[str]:
    hits = (await engine.retrieve(Query(text, filter=judged.where, limit=CHUNKS))).hits
    return list(dict.fromkeys(hit.document.key for hit in hits))


def _report(judged: Sequence[tuple[JudgedQuery, list[str]]]) -> TurnsReport:
    return {
        "ndcg@10": percent([ndcg(ranking, each.grades, depth=DEPTH) for each, ranking in judged]),
        "recall@5": percent([recall(ranking, each.grades.keys(), depth=5) for each, ranking in judged]),
        "recall@10": percent([recall(ranking, each.grades.keys(), depth=DEPTH) for each, ranking in judged]),
        "questions": len(judged),
    }


def _users(history: Sequence[Message]) -> list[str]:
    return [turn.content for turn in history if turn.role == "user"]
