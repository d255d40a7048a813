"""Conversion between answer records and rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any, TypeAlias

from conspectus.model.answers import (
    AnswerCandidate,
    AnswerOptions,
    AnswerRecord,
    AnswerSummary,
    NewAnswer,
)
from conspectus.model.filter_json import filter_from_json, filter_to_json
from conspectus.model.ids import UserId
from conspectus.model.memory import Scope
from conspectus.model.results import Citation, Message
from conspectus.text.times import from_microseconds, to_microseconds

AnswerRow: TypeAlias = tuple[dict[str, Any], Sequence[str]]
"""The columns of a record, and the ids of its documents."""


def rows_of(new_answers: Sequence[NewAnswer]) -> list[AnswerRow]:
    """Return records as rows."""
    return [(_columns_of(answer), sorted({*answer.documents})) for answer in new_answers]


def _columns_of(answer: NewAnswer) -> dict[str, Any]:
    """Return a record as columns, with its size in bytes."""
    record, summary = answer.record, answer.record.summary
    texts = {
        "question": summary.question,
        "options": _to_json(_options_json(record.options)),
        "window": record.text,
        "citations": _to_json([_fields_of(citation) for citation in record.citations]),
        "candidates": _to_json([_candidate_json(candidate) for candidate in record.candidates]),
        "prompt": _to_json([_fields_of(message) for message in record.prompt]),
        "answer": record.answer,
    }
    return {
        "id": summary.id,
        "kind": summary.kind,
        "user": summary.user,
        "collection": summary.collection,
        "created": to_microseconds(summary.created),
        "bytes": sum(len(text.encode()) for text in texts.values()),
        "documents": len({*answer.documents}),
        "outcome": summary.outcome,
        "passages": summary.passages,
        "tokens": summary.tokens,
        "confidence": record.confidence,
        "model": summary.model,
        "failure": summary.failure,
        "cited": _to_json({"cited": record.cited, "unknown": record.unknown}),
        "left_out": " ".join(record.left_out),
        "answer_digest": answer.answer_digest,
        **texts,
    }


def candidates_of(row: Any) -> list[AnswerCandidate]:
    """Return the candidates of a row, without the names of their documents."""
    return [AnswerCandidate(**stored) for stored in json.loads(row.candidates)]


def to_summary(row: Any) -> AnswerSummary:
    """Convert a row with the columns of a summary."""
    return AnswerSummary(
        id=row.id,
        kind=row.kind,
        user=UserId(row.user),
        created=from_microseconds(row.created),
        question=row.question,
        outcome=row.outcome,
        collection=row.collection,
        passages=row.passages,
        tokens=row.tokens,
        model=row.model,
        failure=row.failure,
    )


def to_record(
    row: Any, candidates: Sequence[AnswerCandidate], names: Mapping[str, Any], changed: tuple[str, ...]
) -> AnswerRecord:
    """Convert a whole row; `names` are rows of the documents of its candidates, by id."""
    cited = json.loads(row.cited)
    return AnswerRecord(
        summary=to_summary(row),
        options=_to_options(json.loads(row.options)),
        text=row.window,
        citations=tuple(map(_to_citation, json.loads(row.citations))),
        candidates=tuple(_with_names(candidate, names) for candidate in candidates),
        prompt=tuple(Message(**message) for message in json.loads(row.prompt)),
        answer=row.answer,
        cited=tuple(cited["cited"]),
        unknown=tuple(cited["unknown"]),
        confidence=row.confidence,
        left_out=tuple(row.left_out.split()),
        changed=changed,
    )


def _to_json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _options_json(options: AnswerOptions) -> dict[str, Any]:
    as_of = None if options.as_of is None else options.as_of.isoformat()
    return {**asdict(options), "filter": filter_to_json(options.filter), "as_of": as_of}


def _to_options(stored: Mapping[str, Any]) -> AnswerOptions:
    as_of = stored["as_of"]
    converted = {
        "filter": filter_from_json(stored["filter"]),
        "as_of": None if as_of is None else datetime.fromisoformat(as_of),
        "scope": Scope(**stored["scope"]),
    }
    return AnswerOptions(**{**stored, **converted})


def _fields_of(part: Citation | Message) -> dict[str, Any]:
    """Return the fields of a flat dataclass. `asdict` copies each value, and takes ten times as long."""
    return {field.name: getattr(part, field.name) for field in fields(part)}


def _candidate_json(candidate: AnswerCandidate) -> dict[str, Any]:
    """Return what is stored of a candidate: the names of its document are those of now."""
    return {
        "rank": candidate.rank,
        "chunk": candidate.chunk,
        "document": candidate.document,
        "start": candidate.start,
        "end": candidate.end,
        "score": round(candidate.score, 6),
        "parts": {name: round(part, 6) for name, part in candidate.parts.items()},
        "status": candidate.status,
        "tokens": candidate.tokens,
    }


def _with_names(candidate: AnswerCandidate, names: Mapping[str, Any]) -> AnswerCandidate:
    document = names.get(candidate.document)
    if document is None:
        return candidate
    return replace(candidate, source=document.source, key=document.key, title=document.title)


def _to_citation(stored: Mapping[str, Any]) -> Citation:
    box = stored.get("box")
    return Citation(
        **{**stored, "chunks": tuple(stored["chunks"]), "box": None if box is None else tuple(box)}
    )
