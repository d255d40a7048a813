"""Alerts: saved queries that every new caption is matched with, and their matches."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, replace
from typing import Annotated

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import require_scope
from conspectus.access.reader import AuthorizedReader
from conspectus.engine.context import EngineContext
from conspectus.engine.service import Service
from conspectus.engine.stream_reader import StreamReader
from conspectus.errors import InvalidInput, NotFound, TooLarge, as_field
from conspectus.model.alerts import Alert, AlertEvent, NewAlert
from conspectus.model.annotations import Range
from conspectus.model.filter import require_document_fields
from conspectus.model.filter_json import MAX_FILTER_LENGTH, filter_from_json, filter_to_json
from conspectus.model.ids import CollectionId, UserId
from conspectus.model.parameters import (
    MAX_ALERT_STREAMS,
    MAX_WEBHOOK,
    AlertIdentifier,
    CollectionName,
    PageLimit,
)
from conspectus.model.records import Collection
from conspectus.model.retries import RetryPolicy
from conspectus.ports import Vectors
from conspectus.ports.streams import MAX_WAIT_SECONDS, AlertMatch
from conspectus.streams.alert_checker import AlertWorker, CanRead, Checker
from conspectus.streams.alert_delivery import Deliverer
from conspectus.text.clean import clean
from conspectus.text.hashing import NAME_BYTES, require_fitting, stable_id
from conspectus.text.stream_clocks import StreamClock, clock_of

MAX_EVENTS_READ = 10
"""Maximum number of events read for a subscriber at once. Revoked access applies from the next read on."""
FIRST_RETRY_SECONDS = 1.0
"""Seconds until the first retry of a webhook delivery."""


class AlertService(Service):
    """Alerts: saved queries that every new caption is matched with."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = StreamReader(context)

    async def put(self, alert: Annotated[NewAlert, "The alert."]) -> Alert:
        """Create an alert, or change your alert of that name in the collection.

        A new alert matches captions that are written from now on. Raises InvalidInput, TooLarge, NotFound for
        streams that cannot be read, and ForbiddenAddress for a webhook address that is not allowed.
        """
        require_scope(self._person, "write", "set an alert")
        settings, name = self._parts.settings, clean(alert.name)
        _require_valid_alert(alert, max_query_characters=settings.max_query_characters)
        as_json = filter_to_json(alert.filter)
        if (size := len(json.dumps(as_json))) > MAX_FILTER_LENGTH:
            raise TooLarge("filter", size=size, limit=MAX_FILTER_LENGTH, unit="characters")
        access = await self._authorized.collection(alert.collection)
        collection_id = access.collection.id
        streams = [
            (await self._reader.source(stream_name, collection_id))[1].id for stream_name in alert.streams
        ]
        if alert.webhook is not None:
            with as_field("webhook", was="url"):
                self._core.poster().check(alert.webhook)
        self._context.screen_value("alerts.name", name, collection_id)
        self._context.screen_value("alerts.filter", as_json, collection_id)
        self._context.screen_value("alerts.webhook", alert.webhook, collection_id)
        owned_alert = Alert(
            id=stable_id("alert", self._person.id, collection_id, name),
            owner=self._person.id,
            collection=collection_id,
            name=name,
            query=self._context.screen_value("alerts.query", clean(alert.query), collection_id),
            streams=tuple(dict.fromkeys(streams)),
            filter=filter_from_json(as_json),
            min_similarity=alert.min_similarity,
            gap_seconds=float(alert.gap_seconds),
            webhook=alert.webhook,
            created=self._parts.clock(),
            checked=0,
        )
        return _without_unreadable_fields(
            await self._parts.alerts.rows.put(owned_alert, maximum=settings.max_alerts), access
        )

    async def list(
        self, *, collection: Annotated[CollectionName, "Name or id of a collection; none: all."] | None = None
    ) -> Sequence[Alert]:
        """List your alerts by name, in collections that you may read now."""
        if collection is None:
            readable = await self._authorized.collections()
        else:
            readable = [await self._authorized.collection(collection)]
        accesses = {access.collection.id: access for access in readable}
        owned = await self._parts.alerts.rows.list_alerts_of(self._person.id)
        return [
            _without_unreadable_fields(alert, accesses[CollectionId(alert.collection)])
            for alert in owned
            if alert.collection in accesses
        ]

    async def get(self, alert: AlertIdentifier) -> Alert:
        """Return one of your alerts. Raises NotFound, also when its collection cannot be read any more."""
        require_scope(self._person, "read", "read")
        stored_alert = await self._parts.alerts.rows.alert(alert)
        access = None if stored_alert is None else await self._authorized.find(stored_alert.collection)
        if stored_alert is None or access is None or stored_alert.owner != self._person.id:
            raise NotFound("alert", alert)
        return _without_unreadable_fields(stored_alert, access)

    async def delete(self, alert: AlertIdentifier) -> None:
        """Delete one of your alerts with its matches. Raises NotFound."""
        require_scope(self._person, "write", "delete an alert")
        await self._parts.alerts.rows.delete((await self.get(alert)).id)

    async def list_matches(
        self,
        *,
        alert: Annotated[AlertIdentifier, "Id of an alert; none: all."] | None = None,
        after: Annotated[int, Range(0), "Number of the last match that is known."] = 0,
        limit: PageLimit = 100,
    ) -> Sequence[AlertEvent]:
        """List the matches of your alerts, or of one, after the number of a match, in order.

        Matches of captions that were deleted, or cannot be read now, are left out.
        """
        await self._require_own(alert)
        matches: list[AlertEvent] = []
        while len(matches) < limit:
            page = await self._list_matches_after(after, alert, limit)
            if not page:
                break
            matches += await _visible_events(self._authorized, page)
            after = page[-1].number
        return matches[:limit]

    async def subscribe(
        self,
        *,
        alert: Annotated[AlertIdentifier, "Id of an alert; none: all."] | None = None,
        after: Annotated[
            int | None, Range(0), "Number of the last match that is known; none: from now on."
        ] = None,
    ) -> AsyncGenerator[AlertEvent, None]:
        """Receive matches as they come: those after the number of a match, or from now on.

        Runs until it is closed. Raises NotFound, also when the alert is deleted.
        """
        await self._require_own(alert)
        last = await self.last_match() if after is None else after
        pause = self._parts.settings.alert_poll_interval_ms / 1_000
        while True:
            page = await self._list_matches_after(last, alert, MAX_EVENTS_READ)
            for event in await _visible_events(self._authorized, page) if page else ():
                yield event
            if page:
                last = page[-1].number
            else:
                await asyncio.sleep(pause)
                await self._require_own(alert)

    async def last_match(self) -> int:
        """Return the number of the newest match of your alerts, to subscribe from now on."""
        require_scope(self._person, "read", "read")
        return await self._parts.alerts.rows.newest(self._person.id)

    async def start(self) -> None:
        """Check new captions and deliver matches in the background, while this process holds the lock.

        Every alert is checked with the rights that its owner has at that moment.
        """
        self._core.ensure_running(AlertWorker, self._make_alert_worker)

    def _make_alert_worker(self) -> AlertWorker:
        parts, core = self._parts, self._core
        settings, alerts = parts.settings, parts.alerts.rows
        checker = Checker(
            core.records,
            alerts,
            read_check=self._read_check,
            embed_query=self._embed_query,
            clock=parts.clock,
        )
        retries = RetryPolicy(max(1, settings.webhook_max_attempts), FIRST_RETRY_SECONDS, MAX_WAIT_SECONDS)
        deliverer = Deliverer(
            alerts, core.poster(), body=self._webhook_body, retry_policy=retries, clock=parts.clock
        )
        return AlertWorker(
            checker,
            deliverer,
            turn=parts.alerts.turn,
            poll=settings.alert_poll_interval_ms / 1_000,
            grace=settings.webhook_timeout_seconds,
        )

    async def _read_check(self, alert: Alert) -> CanRead | None:
        """Return the check for documents that an alert's owner may read now; None without a collection."""
        try:
            person = await self._context.person_of(UserId(alert.owner))
            authorized = self._context.as_person(person).authorized
            return (await authorized.collection(CollectionId(alert.collection))).can_see_document
        except NotFound:
            return None

    async def _embed_query(self, collection: Collection, query: str) -> Vectors | None:
        embedder = await self._context.embedder(collection)
        return None if embedder is None else await embedder.embed_query(query)

    async def _webhook_body(self, match: AlertMatch) -> bytes | None:
        """Return the webhook body of a match, if the alert's owner may read the caption now."""
        try:
            person = await self._context.person_of(UserId(match.alert.owner))
        except NotFound:
            return None
        for event in await _visible_events(self._context.as_person(person).authorized, [match]):
            body = {"id": match.id, **asdict(event), "created": event.created.isoformat()}
            for field in ("delivery", "attempts", "error"):
                body.pop(field)
            return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return None

    async def _require_own(self, alert: str | None) -> None:
        if alert is not None:
            await self.get(alert)

    async def _list_matches_after(self, after: int, alert: str | None, limit: int) -> Sequence[AlertMatch]:
        rows = self._parts.alerts.rows
        return await rows.events(self._person.id, alert=alert, after=after, limit=limit)


async def _visible_events(
    authorized: AuthorizedReader, alert_matches: Sequence[AlertMatch]
) -> list[AlertEvent]:
    """Return the matches whose captions the person may read now, as events with the texts of the captions."""
    pairs = await authorized.documents(list(dict.fromkeys(match.document for match in alert_matches)))
    texts = await authorized.texts([document for document, _ in pairs])
    accesses = {access.collection.id: access for _, access in pairs}
    clocks = {
        source.id: clock_of(source)
        for access in accesses.values()
        for source in await authorized.sources(access)
    }
    return [
        _to_alert_event(match, texts[match.document], clocks[match.source])
        for match in alert_matches
        if match.document in texts and match.source in clocks
    ]


def _without_unreadable_fields(alert: Alert, access: CollectionAccess) -> Alert:
    """Return an alert; without its position if the user may read only some sources.

    `checked` counts changes, and so reveals unreadable captions.
    """
    return alert if access.sees_all else replace(alert, checked=0)


def _to_alert_event(match: AlertMatch, text: str, clock: StreamClock) -> AlertEvent:
    period = match.occurred
    return AlertEvent(
        number=match.number,
        alert=match.alert.id,
        name=match.alert.name,
        stream=match.source,
        start=None if period is None else clock.seconds(period.start),
        end=None if period is None else clock.seconds(period.end),
        document=match.document,
        text=text,
        reason=match.reason,
        created=match.created,
        delivery=match.delivery,
        attempts=match.attempts,
        error=match.error,
    )


def _require_valid_alert(alert: NewAlert, *, max_query_characters: int) -> None:
    """Raise InvalidInput or TooLarge for an invalid alert."""
    require_document_fields(alert.filter)
    if not require_fitting("name", alert.name, NAME_BYTES).strip():
        raise InvalidInput("name", "must have a visible character")
    if len(alert.query) > max_query_characters:
        raise TooLarge("query", size=len(alert.query), limit=max_query_characters, unit="characters")
    if len(alert.streams) > MAX_ALERT_STREAMS:
        raise TooLarge("streams", size=len(alert.streams), limit=MAX_ALERT_STREAMS, unit="streams")
    if alert.webhook is not None and len(alert.webhook) > MAX_WEBHOOK:
        raise TooLarge("webhook", size=len(alert.webhook), limit=MAX_WEBHOOK, unit="characters")
