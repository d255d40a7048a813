"""Question sets and their runs: rows, and who may read them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, insert, select, update

from conspectus.errors import Conflict, NotFound
from conspectus.model.experiments import (
    MAX_QUESTIONS,
    Evidence,
    Passage,
    Question,
    QuestionSet,
    QuestionSetPage,
    QuestionShares,
    Run,
    RunFigure,
    RunPage,
    RunWindow,
    StoredRun,
)
from conspectus.model.ids import CollectionId, JobId, SourceId
from conspectus.model.records import Collection, RetrievalDefaults
from conspectus.records.core.collections import state
from conspectus.records.core.dialects import integer_sum, json_list, json_list_param
from conspectus.records.core.lock_names import row_lock
from conspectus.records.core.pages import newest_page
from conspectus.records.core.rows import (
    COLLECTION_COLUMNS,
    retrieval_versions_value,
    to_collection,
    to_retrieval_versions,
)
from conspectus.records.core.statements import IDS, execute_in_blocks, fetch_in_blocks, insert_rows
from conspectus.records.core.store_methods import SqlStore, reading, writing
from conspectus.records.tables.core import QUARANTINED, collections, documents
from conspectus.records.tables.experiments import (
    question_evidence,
    question_sets,
    questions,
    run_windows,
    runs,
)
from conspectus.text.times import from_microseconds, to_microseconds

EXPERIMENTS_LOCK: Final = "experiments"
MAX_VERSIONS: Final = 20
"""Number of changes of the defaults of a collection that can be undone."""
_LINKED = question_evidence.join(documents, documents.c.number == question_evidence.c.document)
_QUESTION_COUNT = (
    select(func.count())
    .select_from(questions)
    .where(questions.c.question_set == question_sets.c.id)
    .correlate(question_sets)
    .scalar_subquery()
)
_SETS = select(*question_sets.c, _QUESTION_COUNT.label("questions"))
_EVIDENCE = (
    select(
        questions.c.id,
        questions.c.key,
        questions.c.query,
        questions.c.evidence,
        question_evidence.c.start,
        question_evidence.c.end,
        question_evidence.c.fingerprint,
        documents.c.id.label("document"),
        documents.c.key.label("document_key"),
        documents.c.title,
        documents.c.fingerprint.label("current_fingerprint"),
    )
    .select_from(_LINKED.join(questions, questions.c.id == question_evidence.c.question))
    .where(~QUARANTINED)
    .order_by(questions.c.key, questions.c.id, question_evidence.c.number)
)


def _of_run(column: ColumnElement[Any]) -> Any:
    """Return an aggregate of the windows of a run, as a column of `runs`."""
    return (
        select(column)
        .select_from(run_windows)
        .where(run_windows.c.run == runs.c.id)
        .correlate(runs)
        .scalar_subquery()
    )


_RUNS = select(
    *runs.c,
    question_sets.c.collection,
    _of_run(func.count(run_windows.c.question.distinct())).label("questions"),
    _of_run(func.coalesce(integer_sum(run_windows.c.tokens), 0)).label("tokens"),
    _of_run(func.coalesce(func.sum(run_windows.c.milliseconds), 0.0)).label("milliseconds"),
).join(question_sets, question_sets.c.id == runs.c.question_set)


def _add_set(
    connection: Connection,
    question_set: QuestionSet,
    new_questions: Sequence[Question],
    collection: CollectionId,
) -> None:
    state(connection, collection)
    same_name = select(question_sets.c.id).where(
        question_sets.c.collection == collection, question_sets.c.name == question_set.name
    )
    if connection.execute(same_name).first() is not None:
        raise Conflict("question set", question_set.name, "exists already")
    columns = {
        "id": question_set.id,
        "collection": collection,
        "name": question_set.name,
        "created": to_microseconds(question_set.created),
    }
    connection.execute(insert(question_sets), columns)
    _insert_questions(connection, question_set.id, new_questions)


def _add_questions(connection: Connection, question_set: str, new_questions: Sequence[Question]) -> None:
    if _get_set(connection, question_set) is None:
        raise NotFound("question set", question_set)
    same_keys = delete(questions).where(questions.c.question_set == question_set, questions.c.key.in_(IDS))
    execute_in_blocks(connection, same_keys, [question.key for question in new_questions])
    _insert_questions(connection, question_set, new_questions)
    stored = _get_set(connection, question_set)
    if stored is not None and stored.questions > MAX_QUESTIONS:
        raise Conflict("question set", question_set, f"can have at most {MAX_QUESTIONS} questions")


def _insert_questions(connection: Connection, question_set: str, new_questions: Sequence[Question]) -> None:
    """Insert questions. Raises NotFound for a document that was deleted."""
    named = {evidence.document for question in new_questions for evidence in question.evidence}
    lookup = select(documents.c.id, documents.c.number, documents.c.fingerprint).where(
        documents.c.id.in_(IDS)
    )
    stored = {row.id: row for row in fetch_in_blocks(connection, lookup, named)}
    if missing := named - stored.keys():
        raise NotFound("document", min(missing))
    question_rows = [
        {
            "id": question.id,
            "question_set": question_set,
            "key": question.key,
            "query": question.query,
            "evidence": len(question.evidence),
        }
        for question in new_questions
    ]
    evidence_rows = [
        {
            "question": question.id,
            "number": number,
            "document": stored[evidence.document].number,
            "start": evidence.start,
            "end": evidence.end,
            "fingerprint": stored[evidence.document].fingerprint,
        }
        for question in new_questions
        for number, evidence in enumerate(question.evidence)
    ]
    insert_rows(connection, questions, question_rows)
    insert_rows(connection, question_evidence, evidence_rows)


def _sets(
    connection: Connection, collection: CollectionId, *, after: str | None, limit: int
) -> QuestionSetPage:
    of_collection = _SETS.where(question_sets.c.collection == collection)
    rows, following = newest_page(connection, of_collection, question_sets, after=after, limit=limit)
    return QuestionSetPage(tuple(map(_to_set, rows)), following)


def _get_set(connection: Connection, question_set: str) -> QuestionSet | None:
    row = connection.execute(_SETS.where(question_sets.c.id == question_set)).one_or_none()
    return None if row is None else _to_set(row)


def _to_set(row: Any) -> QuestionSet:
    return QuestionSet(row.id, row.collection, row.name, from_microseconds(row.created), row.questions)


def _questions(
    connection: Connection, question_set: str, sources: Sequence[SourceId] | None
) -> list[Question]:
    return list(_iterate_questions(connection, questions.c.question_set == question_set, sources))


def _iterate_questions(
    connection: Connection, condition: ColumnElement[bool], sources: Sequence[SourceId] | None
) -> Iterator[Question]:
    """Yield questions of which all evidence may be read, by key."""
    query = _in_sources(_EVIDENCE.where(condition), sources)
    for id, group in groupby(connection.execute(query).all(), key=lambda row: row.id):
        rows = list(group)
        first = rows[0]
        if len(rows) == first.evidence:
            evidence = tuple(
                Evidence(row.document, row.start, row.end, row.document_key or "", row.title) for row in rows
            )
            is_changed = any(row.fingerprint != row.current_fingerprint for row in rows)
            yield Question(id, first.key, first.query, evidence, is_changed)


def _in_sources(query: Select[Any], sources: Sequence[SourceId] | None) -> Select[Any]:
    if sources is None:
        return query
    return query.where(documents.c.source.in_(json_list_param("sources"))).params(sources=json_list(sources))


def _delete_set(connection: Connection, question_set: str) -> bool:
    deletion = delete(question_sets).where(question_sets.c.id == question_set)
    return bool(connection.execute(deletion).rowcount)


def _add_run(connection: Connection, run: Run) -> None:
    if _get_set(connection, run.set) is None:
        raise NotFound("question set", run.set)
    columns = {
        "id": run.id,
        "question_set": run.set,
        "name": run.name,
        "created": to_microseconds(run.created),
        "job": run.job,
        "options": _to_json(run.options),
        "budgets": _to_json(run.max_tokens),
        "figures": "[]",
    }
    connection.execute(insert(runs), columns)


def _list_runs(
    connection: Connection,
    collection: CollectionId,
    question_set: str | None,
    *,
    after: str | None,
    limit: int,
) -> RunPage:
    query = _RUNS.where(question_sets.c.collection == collection)
    if question_set is not None:
        query = query.where(runs.c.question_set == question_set)
    rows, following = newest_page(connection, query, runs, after=after, limit=limit)
    return RunPage(tuple(_to_run(row).run for row in rows), following)


def _get_run(connection: Connection, run: str) -> StoredRun | None:
    row = connection.execute(_RUNS.where(runs.c.id == run)).one_or_none()
    return None if row is None else _to_run(row)


def _get_run_of_job(connection: Connection, job: str) -> StoredRun | None:
    row = connection.execute(_RUNS.where(runs.c.job == job)).first()
    return None if row is None else _to_run(row)


def _to_run(row: Any) -> StoredRun:
    run = Run(
        row.id,
        row.question_set,
        row.collection,
        row.name,
        from_microseconds(row.created),
        JobId(row.job),
        json.loads(row.options),
        tuple(json.loads(row.budgets)),
        tuple(RunFigure(**figure) for figure in json.loads(row.figures)),
        row.questions,
        int(row.tokens),
        round(float(row.milliseconds), 1),
    )
    return StoredRun(run, CollectionId(row.collection))


def _add_windows(connection: Connection, run: str, question: str, windows: Sequence[RunWindow]) -> bool:
    has_run = connection.execute(select(runs.c.id).where(runs.c.id == run)).first()
    has_question = connection.execute(select(questions.c.id).where(questions.c.id == question)).first()
    if has_run is None or has_question is None:
        return False
    of_question = and_(run_windows.c.run == run, run_windows.c.question == question)
    connection.execute(delete(run_windows).where(of_question))
    rows = [
        {
            "run": run,
            "question": question,
            "max_tokens": window.max_tokens,
            "tokens": window.tokens,
            "milliseconds": window.milliseconds,
            "share": window.share,
            "passages": _to_json(
                [[passage.document, passage.start, passage.end] for passage in window.passages]
            ),
        }
        for window in windows
    ]
    insert_rows(connection, run_windows, rows)
    return True


def _shares(connection: Connection, run: str, sources: Sequence[SourceId] | None) -> list[QuestionShares]:
    query = (
        select(run_windows.c.question, run_windows.c.share)
        .where(run_windows.c.run == run)
        .order_by(run_windows.c.question, run_windows.c.max_tokens)
    )
    shares = {
        question: tuple(row.share for row in rows)
        for question, rows in groupby(connection.execute(query).all(), key=lambda row: row.question)
    }
    of_run = questions.c.question_set.in_(select(runs.c.question_set).where(runs.c.id == run))
    return [
        QuestionShares(question.id, question.key, question.query, shares[question.id])
        for question in _iterate_questions(connection, of_run, sources)
        if question.id in shares
    ]


def _windows(
    connection: Connection, run: str, question: str, sources: Sequence[SourceId] | None
) -> tuple[Question, Sequence[RunWindow]] | None:
    query = (
        select(run_windows)
        .where(run_windows.c.run == run, run_windows.c.question == question)
        .order_by(run_windows.c.max_tokens)
    )
    rows = connection.execute(query).all()
    of_run = questions.c.question_set.in_(select(runs.c.question_set).where(runs.c.id == run))
    readable = list(_iterate_questions(connection, and_(questions.c.id == question, of_run), sources))
    if not readable:
        return None
    passages = {row.max_tokens: json.loads(row.passages) for row in rows}
    named = {document for window in passages.values() for document, _, _ in window}
    lookup = select(documents.c.id, documents.c.key, documents.c.title).where(
        documents.c.id.in_(IDS), ~QUARANTINED
    )
    in_reach: Mapping[str, Any] = {
        row.id: row for row in fetch_in_blocks(connection, _in_sources(lookup, sources), named)
    }
    windows = [
        RunWindow(
            row.max_tokens,
            row.tokens,
            row.milliseconds,
            row.share,
            tuple(
                Passage(document, start, end, in_reach[document].key or "", in_reach[document].title)
                for document, start, end in passages[row.max_tokens]
                if document in in_reach
            ),
        )
        for row in rows
    ]
    return readable[0], windows


def _finish_run(connection: Connection, run: str, figures: Sequence[RunFigure]) -> None:
    stored = _to_json([asdict(figure) for figure in figures])
    connection.execute(update(runs).where(runs.c.id == run).values(figures=stored))


def _delete_run(connection: Connection, run: str) -> bool:
    return bool(connection.execute(delete(runs).where(runs.c.id == run)).rowcount)


def _set_defaults(
    connection: Connection, collection: CollectionId, defaults: RetrievalDefaults
) -> Collection:
    versions = _read_versions(connection, collection)
    number = versions[-1].version + 1 if versions else 1
    versions.append(replace(defaults, version=number))
    return _write_versions(connection, collection, versions[-MAX_VERSIONS:])


def _undo_defaults(connection: Connection, collection: CollectionId, version: int) -> Collection:
    versions = _read_versions(connection, collection)
    if not versions or versions[-1].version != version:
        current = f"version {versions[-1].version}" if versions else "the built-in ones"
        raise Conflict("version", str(version), f"is not current: the defaults are {current}")
    return _write_versions(connection, collection, versions[:-1])


def _read_versions(connection: Connection, collection: CollectionId) -> list[RetrievalDefaults]:
    state(connection, collection)
    stored = connection.execute(
        select(collections.c.retrieval).where(collections.c.id == collection)
    ).scalar_one()
    return [] if stored is None else to_retrieval_versions(stored)


def _write_versions(
    connection: Connection, collection: CollectionId, versions: Sequence[RetrievalDefaults]
) -> Collection:
    is_collection = collections.c.id == collection
    stored = retrieval_versions_value(versions)
    connection.execute(update(collections).where(is_collection).values(retrieval=stored))
    return to_collection(connection.execute(select(*COLLECTION_COLUMNS).where(is_collection)).one())


def forget_questions(connection: Connection, numbers: Sequence[int]) -> None:
    """Delete the questions whose evidence is in these documents."""
    linked = select(question_evidence.c.question).where(question_evidence.c.document.in_(IDS))
    execute_in_blocks(connection, delete(questions).where(questions.c.id.in_(linked)), numbers)


def erase_outdated_questions(connection: Connection, purged: Sequence[CollectionId]) -> None:
    """Delete questions about changed documents of purged collections: they may quote the old text."""
    outdated = (
        select(question_evidence.c.question)
        .select_from(_LINKED)
        .where(
            documents.c.collection.in_(IDS),
            question_evidence.c.fingerprint != documents.c.fingerprint,
        )
    )
    execute_in_blocks(connection, delete(questions).where(questions.c.id.in_(outdated)), purged)


def _to_json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


class SqlExperiments(SqlStore):
    """The methods of the port `ExperimentStore`, each as one transaction; see the port for their docs."""

    add_set = writing(
        _add_set,
        locks=lambda question_set, new_questions, collection: {
            EXPERIMENTS_LOCK,
            row_lock(collections, collection),
        },
    )
    add_questions = writing(_add_questions, locks=lambda question_set, new_questions: {EXPERIMENTS_LOCK})
    sets = reading(_sets)
    get_set = reading(_get_set)
    questions = reading(_questions)
    delete_set = writing(_delete_set, locks=lambda question_set: {EXPERIMENTS_LOCK})
    add_run = writing(_add_run, locks=lambda run: {EXPERIMENTS_LOCK})
    list_runs = reading(_list_runs)
    get_run = reading(_get_run)
    get_run_of_job = reading(_get_run_of_job)
    add_windows = writing(_add_windows, locks=lambda run, question, windows: {EXPERIMENTS_LOCK})
    shares = reading(_shares)
    windows = reading(_windows)
    finish_run = writing(_finish_run, locks=lambda run, figures: {EXPERIMENTS_LOCK})
    delete_run = writing(_delete_run, locks=lambda run: {EXPERIMENTS_LOCK})
    set_defaults = writing(
        _set_defaults, locks=lambda collection, defaults: {row_lock(collections, collection)}
    )
    undo_defaults = writing(
        _undo_defaults, locks=lambda collection, version: {row_lock(collections, collection)}
    )
