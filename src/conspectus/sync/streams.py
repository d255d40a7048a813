"""Streams, with their events, summaries and alerts, blocking."""

from conspectus.bridge.blocking_methods import blocking, generating
from conspectus.engine.alerts import AlertService
from conspectus.engine.events import EventService
from conspectus.engine.streams import StreamService
from conspectus.engine.summaries import SummaryService
from conspectus.sync.blocking_service import BlockingService


class BlockingStreams(BlockingService[StreamService]):
    """Streams: captions, moments that answer a query, and live captions."""

    put = blocking(StreamService.put)
    list = blocking(StreamService.list)
    get = blocking(StreamService.get)
    delete = blocking(StreamService.delete)
    add_captions = blocking(StreamService.add_captions)
    list_captions = blocking(StreamService.list_captions)
    delete_captions = blocking(StreamService.delete_captions)
    import_captions = blocking(StreamService.import_captions)
    search = blocking(StreamService.search)
    window = blocking(StreamService.window)
    subscribe = generating(StreamService.subscribe)
    last_sequence = blocking(StreamService.last_sequence)


class BlockingEvents(BlockingService[EventService]):
    """Events of streams, and the entities in them."""

    add = blocking(EventService.add)
    list = blocking(EventService.list)
    count_entities = blocking(EventService.count_entities)
    entity_timeline = blocking(EventService.entity_timeline)


class BlockingSummaries(BlockingService[SummaryService]):
    """Summaries of streams and of time ranges."""

    summarize = blocking(SummaryService.summarize)
    get = blocking(SummaryService.get)
    start_job = blocking(SummaryService.start_job)
    set_live = blocking(SummaryService.set_live)
    stop_live = blocking(SummaryService.stop_live)


class BlockingAlerts(BlockingService[AlertService]):
    """Alerts: saved queries that are matched with new captions."""

    put = blocking(AlertService.put)
    list = blocking(AlertService.list)
    get = blocking(AlertService.get)
    delete = blocking(AlertService.delete)
    list_matches = blocking(AlertService.list_matches)
    subscribe = generating(AlertService.subscribe)
    last_match = blocking(AlertService.last_match)
    start = blocking(AlertService.start)
