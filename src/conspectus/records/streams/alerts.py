"""Alerts and their matches."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from conspectus.errors import InvalidInput, TooLarge
from conspectus.model.alerts import Alert
from conspectus.model.filter import Filter, Or
from conspectus.model.filter_json import filter_from_json, filter_to_json
from conspectus.model.ids import CollectionId, DocumentId, SourceId, UserId
from conspectus.model.records import Period
from conspectus.ports.streams import MAX_WAIT_SECONDS, AlertMatch, Behind, Checked, Delivery, Match
from conspectus.records.core.collections import state
from conspectus.records.core.counters import allocate
from conspectus.records.core.database_clock import MICROSECONDS
from conspectus.records.core.lock_names import row_lock
from conspectus.records.core.rows import columns_of, period_of, to_model, to_number
from conspectus.records.core.statements import IDS, fetch_in_blocks, fetch_rows, fetch_scalar, insert_rows
from conspectus.records.core.store_methods import SqlStore, reading, writing
from conspectus.records.tables.core import collections, counters, documents, users
from conspectus.records.tables.streams import alert_events as events
from conspectus.records.tables.streams import alerts
from conspectus.text.intervals import runs
from conspectus.text.times import from_microseconds, to_microseconds

ALERT_WIDTH = len(Alert.__dataclass_fields__)
"""Number of columns of a row that are those of the alert; the others are those of its event."""

_ALERT = tuple(alerts.c[name] for name in Alert.__dataclass_fields__)
_CHUNKS = select(counters.c.value).where(counters.c.name == "chunk", counters.c.collection == bindparam("of"))
_EVENT = select(*_ALERT, *events.c).join(events, events.c.alert == alerts.c.id)
_EVENTS_AROUND = select(events).where(
    events.c.alert == bindparam("of"),
    events.c.source == bindparam("stream"),
    events.c.occurred_end >= bindparam("earliest"),
    events.c.occurred_start <= bindparam("latest"),
)
_UNTIMED = select(events.c.document).where(
    events.c.alert == bindparam("of"), events.c.occurred_start.is_(None)
)
_STORED_DOCUMENTS = select(documents.c.id).where(documents.c.id.in_(IDS))
_LENGTHEN_EVENT = update(events).where(events.c.number == bindparam("at"))

Timed = tuple[int, int, Match]
"""A match with its times in microseconds."""


def _put(connection: Connection, alert: Alert, *, maximum: int) -> Alert:
    newest, _ = state(connection, CollectionId(alert.collection))
    stored = _alert(connection, alert.id)
    if stored is None:
        owned = select(func.count()).select_from(alerts).where(alerts.c.owner == alert.owner)
        count = connection.execute(owned).scalar_one()
        if count >= maximum:
            raise TooLarge("alerts", size=count + 1, limit=maximum, unit="alerts")
        new_alert = replace(alert, checked=newest)
        since = fetch_scalar(connection, _CHUNKS, {"of": alert.collection}) or 0
        connection.execute(insert(alerts), {**_values(new_alert), "since": since})
        return new_alert
    changed = replace(alert, created=stored.created, checked=stored.checked)
    connection.execute(update(alerts).where(alerts.c.id == alert.id).values(_values(changed)))
    if changed.webhook is None:
        pending = and_(events.c.alert == alert.id, events.c.delivery == "pending")
        connection.execute(update(events).where(pending).values(delivery="none", due=None))
    return changed


def _alert(connection: Connection, alert: str) -> Alert | None:
    """Return the alert of that id."""
    row = connection.execute(select(*_ALERT).where(alerts.c.id == alert)).one_or_none()
    return None if row is None else _to_alert(row)


def _list_owned(connection: Connection, owner: UserId) -> list[Alert]:
    query = select(*_ALERT).where(alerts.c.owner == owner).order_by(alerts.c.name, alerts.c.id)
    return [_to_alert(row) for row in connection.execute(query)]


def _delete(connection: Connection, alert: str) -> bool:
    return connection.execute(delete(alerts).where(alerts.c.id == alert)).rowcount > 0


def _behind(connection: Connection) -> list[Behind]:
    joined = select(*_ALERT, alerts.c.since).join(collections, collections.c.id == alerts.c.collection)
    late = joined.where(alerts.c.checked < collections.c.sequence)
    ordered = late.order_by(alerts.c.collection, alerts.c.checked, alerts.c.id)
    return [Behind(_to_alert(row), row.since) for row in connection.execute(ordered)]


def _store_matches(connection: Connection, checked: Sequence[Checked], *, now: datetime) -> int:
    rows: list[dict[str, Any]] = []
    for checked_alert in checked:
        stored = _alert(connection, checked_alert.alert.id)
        if stored is not None and stored.checked == checked_alert.alert.checked:
            row = update(alerts).where(alerts.c.id == stored.id)
            connection.execute(row.values(checked=checked_alert.until))
            rows += [
                _event_row(stored, match, now)
                for match in _new_matches(connection, stored, checked_alert.matches)
            ]
    if rows:
        first = allocate(connection, "alert_event", len(rows))
        numbered = [{**row, "number": first + offset} for offset, row in enumerate(rows)]
        insert_rows(connection, events, numbered)
    return len(rows)


def _new_matches(connection: Connection, alert: Alert, matches: Sequence[Match]) -> list[Match]:
    """Return the first of each run of matches, which is a new event; the others extend it."""
    stored_documents = {
        row.id
        for row in fetch_in_blocks(connection, _STORED_DOCUMENTS, [match.document for match in matches])
    }
    by_source: dict[SourceId, list[Timed]] = {}
    untimed: dict[DocumentId, Match] = {}
    for match in matches:
        if match.document in stored_documents and match.occurred is not None:
            start, end = to_microseconds(match.occurred.start), to_microseconds(match.occurred.end)
            by_source.setdefault(match.source, []).append((start, end, match))
        elif match.document in stored_documents:
            untimed[match.document] = match
    known_rows = fetch_rows(connection, _UNTIMED, {"of": alert.id}) if untimed else []
    known_documents = {document for (document,) in known_rows}
    new_matches = [match for document, match in untimed.items() if document not in known_documents]
    for source, timed in by_source.items():
        new_matches += _new_runs(connection, alert, source, timed)
    return new_matches


def _new_runs(connection: Connection, alert: Alert, source: SourceId, timed: list[Timed]) -> list[Match]:
    gap = round(alert.gap_seconds * MICROSECONDS)
    earliest, latest = min(start for start, *_ in timed) - gap, max(end for _, end, _ in timed) + gap
    parameters = {"of": alert.id, "stream": source, "earliest": earliest, "latest": latest}
    event_rows = connection.execute(_EVENTS_AROUND, parameters).all()
    spans = [(row.occurred_start, row.occurred_end) for row in event_rows]
    spans += [(start, end) for start, end, _ in timed]
    new_matches = []
    for run in runs(spans, gap=gap):
        span = (spans[run[0]][0], max(spans[position][1] for position in run))
        existing = [event_rows[position] for position in run if position < len(event_rows)]
        if not existing:
            match = timed[run[0] - len(event_rows)][2]
            occurred = Period(from_microseconds(span[0]), from_microseconds(span[1]))
            new_matches.append(replace(match, occurred=occurred))
        elif len(existing) < len(run):
            _lengthen(connection, min(existing, key=lambda row: row.number), span)
    return new_matches


def _lengthen(connection: Connection, event: Row[*tuple[Any, ...]], span: tuple[int, int]) -> None:
    if span != (event.occurred_start, event.occurred_end):
        longer_event = _LENGTHEN_EVENT.values(occurred_start=span[0], occurred_end=span[1])
        connection.execute(longer_event, {"at": event.number})


def _event_row(alert: Alert, match: Match, now: datetime) -> dict[str, Any]:
    moment, occurred = to_microseconds(now), match.occurred
    return {
        "alert": alert.id,
        "document": match.document,
        "source": match.source,
        "occurred_start": None if occurred is None else to_microseconds(occurred.start),
        "occurred_end": None if occurred is None else to_microseconds(occurred.end),
        "reason": match.reason,
        "created": moment,
        "delivery": "none" if alert.webhook is None else "pending",
        "attempts": 0,
        "error": None,
        "due": None if alert.webhook is None else moment,
    }


def _events(
    connection: Connection, owner: UserId, *, alert: str | None = None, after: int = 0, limit: int
) -> list[AlertMatch]:
    query = _EVENT.where(alerts.c.owner == owner, events.c.number > after)
    if alert is not None:
        query = query.where(alerts.c.id == alert)
    return [_to_match(row) for row in connection.execute(query.order_by(events.c.number).limit(limit))]


def _newest(connection: Connection, owner: UserId) -> int:
    newest = select(func.coalesce(func.max(events.c.number), 0)).join(alerts, events.c.alert == alerts.c.id)
    number: int = connection.execute(newest.where(alerts.c.owner == owner)).scalar_one()
    return number


def _list_waiting(connection: Connection, *, now: datetime) -> list[str]:
    return list(connection.execute(select(events.c.alert).where(_is_due(now)).distinct()).scalars())


def _due(connection: Connection, alert: str, *, now: datetime) -> AlertMatch | None:
    query = _EVENT.where(events.c.alert == alert, _is_due(now)).order_by(events.c.due, events.c.number)
    row = connection.execute(query.limit(1)).one_or_none()
    return None if row is None else _to_match(row)


def _is_due(now: datetime) -> ColumnElement[bool]:
    moment = to_microseconds(now)
    # A due time beyond the maximum is left over from before the clock was set back.
    latest = moment + round(MAX_WAIT_SECONDS * MICROSECONDS)
    return and_(events.c.delivery == "pending", or_(events.c.due <= moment, events.c.due > latest))


def _set_delivery(connection: Connection, number: int, delivery: Delivery) -> None:
    pending = and_(events.c.number == number, events.c.delivery == "pending")
    values = {
        "delivery": delivery.state,
        "attempts": delivery.attempts,
        "error": delivery.error,
        "due": to_number(delivery.due),
    }
    connection.execute(update(events).where(pending).values(values))


def _values(alert: Alert) -> dict[str, Any]:
    """Return an alert as columns."""
    return {**columns_of(alert), "filter": json.dumps(filter_to_json(alert.filter), ensure_ascii=False)}


def _to_alert(row: Sequence[Any]) -> Alert:
    """Convert a row that begins with the columns of alerts."""
    columns = dict(zip(Alert.__dataclass_fields__, row[:ALERT_WIDTH], strict=True))
    return to_model(Alert, {**columns, "filter": _to_filter(columns["filter"])})


def _to_filter(stored: str) -> Filter:
    """Read a filter. An older version stored some that can match nothing, which are refused now."""
    try:
        return filter_from_json(json.loads(stored))
    except InvalidInput:
        return Or()


def _to_match(row: Row[*tuple[Any, ...]]) -> AlertMatch:
    """Convert a row of both tables."""
    number, _, document, source, start, end, reason, created, delivery, attempts, error, _ = row[ALERT_WIDTH:]
    alert, occurred = _to_alert(row), period_of(start, end)
    rest = (reason, from_microseconds(created), delivery, attempts, error)
    return AlertMatch(number, alert, SourceId(source), occurred, DocumentId(document), *rest)


class SqlAlerts(SqlStore):
    """The methods of the port `Alerts`, each as one transaction."""

    put = writing(_put, locks=lambda alert, **_: {alert.collection, row_lock(users, alert.owner)})
    alert = reading(_alert)
    list_alerts_of = reading(_list_owned)
    delete = writing(_delete, rows=alerts)
    behind = reading(_behind)
    record = writing(
        _store_matches,
        locks=lambda checked, **_: {checked_alert.alert.collection for checked_alert in checked},
    )
    events = reading(_events)
    newest = reading(_newest)
    list_due_alerts = reading(_list_waiting)
    due = reading(_due)
    set_delivery = writing(_set_delivery, locks=lambda number, delivery: {row_lock(events, number)})
