"""The operations of all services, each declared once, and grouped by what they are about."""

from typing import Final

from conspectus.engine.alerts import AlertService
from conspectus.engine.channels import ChannelService
from conspectus.engine.collections import CollectionService
from conspectus.engine.connections import ConnectionService
from conspectus.engine.documents import DocumentService
from conspectus.engine.events import EventService
from conspectus.engine.files import FileService
from conspectus.engine.graph import GraphService
from conspectus.engine.jobs import JobService
from conspectus.engine.maintenance import MaintenanceService
from conspectus.engine.memory import MemoryService
from conspectus.engine.retention import RetentionService
from conspectus.engine.search import SearchService
from conspectus.engine.streams import StreamService
from conspectus.engine.summaries import SummaryService
from conspectus.model.channels import ChannelQuery, NewMessage
from conspectus.model.files import Grep
from conspectus.model.filter import EVERYTHING
from conspectus.model.memory import MemoryQuery, NewMemory
from conspectus.model.parameters import Text
from conspectus.model.query import Query
from conspectus.model.stream_summaries import SummaryRequest
from conspectus.model.streams import StreamQuery
from conspectus.operations.operation import OMITTED, Operation
from conspectus.operations.people import GRANT_OPERATIONS, PEOPLE_OPERATIONS

_BUDGET: Final = "max_tokens"
_AS_IT_TAKES: Final = {"limit": OMITTED}
"""Without a limit, a window retrieves as many hits as fill it."""

SEARCH_OPERATIONS: Final = (
    Operation(
        SearchService.retrieve,
        "POST",
        "/search",
        reads=True,
        id="search",
        fields_of=Query,
        defaults={"limit": 20},
    ),
    Operation(
        SearchService.window,
        "POST",
        "/context",
        spread=_BUDGET,
        reads=True,
        id="context",
        fields_of=Query,
        defaults=_AS_IT_TAKES,
    ),
    Operation(
        SearchService.explain,
        "POST",
        "/explain",
        spread=_BUDGET,
        reads=True,
        fields_of=Query,
        defaults=_AS_IT_TAKES,
    ),
    Operation(
        SearchService.explain_as,
        "POST",
        "/explain/as/{user}",
        spread=_BUDGET,
        reads=True,
        fields_of=Query,
        defaults=_AS_IT_TAKES,
        for_models="named",
    ),
    Operation(
        SearchService.augment,
        "POST",
        "/augment",
        spread=_BUDGET,
        reads=True,
        fields_of=Query,
        defaults={"collection": OMITTED, "min_similarity": OMITTED, **_AS_IT_TAKES},
    ),
    Operation(
        SearchService.search_and_rerank,
        "POST",
        "/search-and-rerank",
        reads=True,
        fields_of=Query,
        defaults=_AS_IT_TAKES,
    ),
    Operation(SearchService.add_feedback, "POST", "/feedback", status=201, for_models="named"),
    Operation(SearchService.list_feedback, "GET", "/feedback", for_models="named"),
    Operation(
        SearchService.revoke_feedback, "DELETE", "/feedback/{feedback}", status=204, for_models="named"
    ),
)


_COLLECTION: Final = "/collections/{collection}"
_SOURCE: Final = "/sources/{source}"
_BY_ID: Final = ("collection",)
"""In a path, a source is given by id; the client looks up the id of a name in a collection."""

COLLECTION_OPERATIONS: Final = (
    Operation(CollectionService.list, "GET", "/collections", id="list_collections"),
    Operation(
        DocumentService.wait_until_embedded,
        "POST",
        f"{_COLLECTION}/wait",
        unhurried=True,
        wrapped="embedded",
    ),
    Operation(MaintenanceService.status, "GET", f"{_COLLECTION}/status", id="collection_status"),
    Operation(
        MaintenanceService.reembed,
        "POST",
        f"{_COLLECTION}/reembed",
        unhurried=True,
        wrapped="embedded",
        problems=(501,),
        for_models="named",
    ),
    Operation(CollectionService.get, "GET", _COLLECTION, tagged=True, id="get_collection"),
    Operation(
        CollectionService.update,
        "PATCH",
        _COLLECTION,
        tagged=True,
        id="update_collection",
        for_models="named",
        audited=True,
    ),
    Operation(
        CollectionService.delete,
        "DELETE",
        _COLLECTION,
        unhurried=True,
        id="delete_collection",
        for_models="named",
        audited=True,
    ),
)
"""In matching order: a name may contain a slash, so the shorter path comes last."""
SOURCE_OPERATIONS: Final = (
    Operation(CollectionService.list_sources, "GET", f"{_COLLECTION}/sources"),
    Operation(CollectionService.get_source, "GET", _SOURCE, tagged=True, local=_BY_ID),
    Operation(
        CollectionService.update_source,
        "PATCH",
        _SOURCE,
        tagged=True,
        local=_BY_ID,
        for_models="named",
        audited=True,
    ),
    Operation(
        CollectionService.delete_source,
        "DELETE",
        _SOURCE,
        unhurried=True,
        local=_BY_ID,
        for_models="named",
        audited=True,
    ),
)


_LISTED: Final = "/collections/{collection}/documents"
_DOCUMENT: Final = "/documents/{document}"
_BY_KEY: Final = "/documents/by-key"
_CHUNKS: Final = f"{_DOCUMENT}/chunks"

DOCUMENT_OPERATIONS: Final = (
    Operation(DocumentService.list, "GET", _LISTED, id="list_documents"),
    Operation(
        DocumentService.count, "POST", f"{_LISTED}/count", reads=True, wrapped="count", id="count_documents"
    ),
    Operation(
        DocumentService.delete,
        "POST",
        "/documents/delete",
        unhurried=True,
        id="delete_documents",
        for_models="named",
    ),
    Operation(DocumentService.get, "GET", _DOCUMENT, tagged=True, id="get_document"),
    Operation(DocumentService.get_text, "GET", f"{_DOCUMENT}/text", wrapped="text"),
    Operation(DocumentService.get_texts, "POST", "/documents/texts", reads=True, wrapped="texts"),
    Operation(DocumentService.list_chunks, "GET", _CHUNKS),
    Operation(DocumentService.delete_chunks, "DELETE", _CHUNKS, wrapped="deleted", for_models="named"),
    Operation(FileService.list, "GET", "/files", id="list_files"),
    Operation(FileService.read, "GET", "/files/text", id="read_file"),
    Operation(FileService.find, "GET", "/files/find", id="find_files"),
    Operation(FileService.grep, "POST", "/files/grep", reads=True, unhurried=True, fields_of=Grep),
    Operation(
        DocumentService.list_quarantined, "GET", "/collections/{collection}/quarantined", for_models="never"
    ),
    Operation(DocumentService.release_quarantined, "POST", f"{_DOCUMENT}/release", for_models="never"),
)


CHANNEL_OPERATIONS: Final = (
    Operation(
        ChannelService.add_messages,
        "POST",
        "/messages",
        unhurried=True,
        status=201,
        listed={"messages": NewMessage},
        defaults={"link": True, "wait": False},
    ),
    Operation(
        ChannelService.window,
        "POST",
        "/messages/context",
        fields_of=ChannelQuery,
        reads=True,
        id="channel_context",
    ),
    Operation(ChannelService.list_messages, "GET", "/messages"),
    Operation(ChannelService.get_reply_chain, "GET", "/documents/{document}/thread"),
    Operation(DocumentService.get_by_key, "GET", _BY_KEY, id="get_document_by_key"),
    Operation(
        DocumentService.delete_by_key,
        "DELETE",
        _BY_KEY,
        unhurried=True,
        id="delete_document_by_key",
        for_models="named",
    ),
)


_GRAPH: Final = "/graphs/{graph}"
_ENTITIES: Final = "/collections/{collection}/entities"
_IN: Final = ("collection",)

GRAPH_OPERATIONS: Final = (
    Operation(GraphService.list_entities, "GET", _ENTITIES),
    Operation(GraphService.set_entity_extraction, "PUT", _ENTITIES, for_models="named"),
    Operation(GraphService.extract_entities, "POST", f"{_ENTITIES}/extract", reads=True),
    Operation(
        GraphService.wait_until_extracted,
        "POST",
        f"{_ENTITIES}/wait",
        unhurried=True,
        wrapped="read",
    ),
    Operation(GraphService.link_entities, "POST", f"{_GRAPH}/link", query=_IN, reads=True),
    Operation(GraphService.merge_nodes, "POST", f"{_GRAPH}/merge", query=_IN),
    Operation(GraphService.undo_merge, "POST", f"{_GRAPH}/undo-merge", query=_IN),
    Operation(GraphService.list_merges, "GET", f"{_GRAPH}/merges"),
    Operation(GraphService.get_or_create, "POST", "/graphs", id="get_or_create_graph"),
    Operation(GraphService.list, "GET", "/graphs", id="list_graphs"),
    Operation(GraphService.add_nodes, "POST", f"{_GRAPH}/nodes", query=_IN, unhurried=True, status=201),
    Operation(GraphService.list_nodes, "GET", f"{_GRAPH}/nodes"),
    Operation(
        GraphService.delete_nodes,
        "POST",
        f"{_GRAPH}/nodes/delete",
        query=_IN,
        unhurried=True,
        for_models="named",
    ),
    Operation(GraphService.add_edges, "POST", f"{_GRAPH}/edges", query=_IN, unhurried=True, status=201),
    Operation(GraphService.list_edges, "GET", f"{_GRAPH}/edges"),
    Operation(
        GraphService.delete_edges,
        "POST",
        f"{_GRAPH}/edges/delete",
        query=_IN,
        unhurried=True,
        for_models="named",
    ),
    Operation(GraphService.get_node, "GET", f"{_GRAPH}/node"),
    Operation(GraphService.neighbors, "GET", f"{_GRAPH}/neighbors"),
    Operation(GraphService.search_nodes, "POST", f"{_GRAPH}/find", query=_IN, reads=True),
    Operation(GraphService.snapshot, "GET", f"{_GRAPH}/at", id="get_graph_snapshot"),
    Operation(GraphService.delete, "DELETE", _GRAPH, unhurried=True, id="delete_graph", for_models="named"),
)
"""In matching order: a name may contain a slash, so the shorter path comes last."""


_MEMORIES: Final = "/memories"
_MEMORY: Final = "/memories/{memory}"
_RETENTION: Final = "/memories/retention"

MEMORY_OPERATIONS: Final = (
    Operation(
        MemoryService.add,
        "POST",
        _MEMORIES,
        unhurried=True,
        status=201,
        listed={"memories": NewMemory},
        id="add_memories",
    ),
    Operation(
        MemoryService.list,
        "GET",
        _MEMORIES,
        defaults={"filter": EVERYTHING, "limit": 100, "newest_first": False},
        id="list_memories",
    ),
    Operation(
        MemoryService.count, "POST", f"{_MEMORIES}/count", reads=True, wrapped="count", id="count_memories"
    ),
    Operation(MemoryService.recall, "POST", f"{_MEMORIES}/recall", fields_of=MemoryQuery, reads=True),
    Operation(
        MemoryService.window,
        "POST",
        f"{_MEMORIES}/context",
        fields_of=MemoryQuery,
        reads=True,
        id="memory_context",
    ),
    Operation(MemoryService.list_recent, "GET", f"{_MEMORIES}/recent", id="list_recent_memories"),
    Operation(MemoryService.extract, "POST", f"{_MEMORIES}/extract", status=202, id="extract_facts"),
    Operation(MemoryService.forget, "POST", f"{_MEMORIES}/forget", spread="selection", unhurried=True),
    Operation(MemoryService.list_conversations, "GET", f"{_MEMORIES}/conversations"),
    Operation(MemoryService.stats, "GET", f"{_MEMORIES}/stats", id="memory_stats"),
    Operation(
        MemoryService.export,
        "GET",
        f"{_MEMORIES}/export",
        as_lines=True,
        id="export_memories",
        for_models="named",
    ),
    Operation(
        MemoryService.import_lines,
        "POST",
        f"{_MEMORIES}/import",
        unhurried=True,
        as_lines=True,
        listed={"lines": Text},
        id="import_memories",
        for_models="named",
    ),
    Operation(RetentionService.list, "GET", _RETENTION, id="list_retentions"),
    Operation(
        RetentionService.set,
        "PUT",
        _RETENTION,
        spread="retention",
        status=204,
        id="set_retention",
        for_models="named",
        audited=True,
    ),
    Operation(
        RetentionService.delete,
        "DELETE",
        _RETENTION,
        status=204,
        id="delete_retention",
        for_models="named",
        audited=True,
    ),
    Operation(
        RetentionService.apply,
        "POST",
        f"{_RETENTION}/apply",
        unhurried=True,
        id="apply_retention",
        for_models="named",
    ),
    Operation(
        RetentionService.start_job,
        "POST",
        f"{_RETENTION}/start",
        status=202,
        id="start_retention",
        for_models="named",
    ),
    Operation(MemoryService.get, "GET", _MEMORY, tagged=True, id="get_memory"),
    Operation(
        MemoryService.update,
        "PATCH",
        _MEMORY,
        query=("scope", "collection"),
        tagged=True,
        unhurried=True,
        id="update_memory",
    ),
    Operation(MemoryService.list_versions, "GET", f"{_MEMORY}/versions", id="list_memory_versions"),
)
"""In matching order: fixed segments come before `{memory}`."""


_ALERT: Final = "/alerts/{alert}"
_STREAM: Final = "/streams/{stream}"
_CAPTIONS: Final = f"{_STREAM}/captions"

_SUMMARY: Final = f"{_STREAM}/summary"
_LIVE: Final = f"{_SUMMARY}/live"

ALERT_OPERATIONS: Final = (
    Operation(AlertService.put, "POST", "/alerts", spread="alert", id="put_alert", for_models="never"),
    Operation(AlertService.list, "GET", "/alerts", id="list_alerts"),
    Operation(AlertService.list_matches, "GET", "/alerts/events", id="list_alert_matches"),
    Operation(AlertService.get, "GET", _ALERT, id="get_alert"),
    Operation(AlertService.delete, "DELETE", _ALERT, status=204, id="delete_alert", for_models="named"),
)
STREAM_OPERATIONS: Final = (
    Operation(
        SummaryService.summarize,
        "POST",
        _SUMMARY,
        query=_IN,
        fields_of=SummaryRequest,
        reads=True,
        unhurried=True,
        asks_model=True,
        problems=(429,),
    ),
    Operation(SummaryService.get, "GET", _SUMMARY, id="get_summary", fields_of=SummaryRequest),
    Operation(
        SummaryService.start_job,
        "POST",
        f"{_SUMMARY}/start",
        query=_IN,
        fields_of=SummaryRequest,
        status=202,
        id="start_summary",
    ),
    Operation(
        SummaryService.set_live,
        "PUT",
        _LIVE,
        query=_IN,
        fields_of=SummaryRequest,
        status=204,
        id="set_live_summary",
    ),
    Operation(SummaryService.stop_live, "DELETE", _LIVE, status=204, id="stop_live_summary"),
    Operation(StreamService.put, "POST", "/streams", spread="stream", id="put_stream"),
    Operation(StreamService.list, "GET", "/streams", id="list_streams"),
    Operation(
        StreamService.search,
        "POST",
        "/streams/search",
        fields_of=StreamQuery,
        reads=True,
        id="search_streams",
    ),
    Operation(
        StreamService.window,
        "POST",
        "/streams/context",
        fields_of=StreamQuery,
        reads=True,
        id="stream_context",
    ),
    Operation(
        StreamService.add_captions,
        "POST",
        _CAPTIONS,
        query=_IN,
        unhurried=True,
        status=201,
        as_lines=True,
    ),
    Operation(StreamService.list_captions, "GET", _CAPTIONS, as_lines=True),
    Operation(StreamService.delete_captions, "DELETE", _CAPTIONS, unhurried=True, for_models="named"),
    Operation(StreamService.get, "GET", _STREAM, id="get_stream"),
    Operation(
        StreamService.delete, "DELETE", _STREAM, unhurried=True, id="delete_stream", for_models="named"
    ),
)
"""In matching order: a name may contain a slash, so the shorter path comes last."""


_EVENTS: Final = f"{_STREAM}/events"

EVENT_OPERATIONS: Final = (
    Operation(
        EventService.add,
        "POST",
        _EVENTS,
        query=("collection",),
        unhurried=True,
        status=201,
        id="add_events",
    ),
    Operation(EventService.list, "GET", _EVENTS, id="list_events"),
    Operation(EventService.count_entities, "GET", f"{_STREAM}/entities", wrapped="entities"),
    Operation(EventService.entity_timeline, "GET", f"{_STREAM}/timeline"),
)


_INGEST: Final = "/collections/{collection}/ingest"
_CONNECTIONS: Final = "/collections/{collection}/connections"
_CONNECTION: Final = f"{_CONNECTIONS}/{{name}}"

JOB_OPERATIONS: Final = (
    Operation(JobService.list, "GET", "/jobs", id="list_jobs"),
    Operation(JobService.cancel, "POST", "/jobs/{job}/cancel", id="cancel_job", for_models="named"),
    Operation(JobService.retry, "POST", "/jobs/{job}/retry", id="retry_job", for_models="named"),
    Operation(JobService.report, "GET", "/ingest/report", id="ingest_report"),
    Operation(JobService.list_requests, "GET", "/requests", for_models="named"),
    Operation(JobService.request_totals, "GET", "/requests/totals", for_models="named"),
)
INGEST_OPERATIONS: Final = (
    Operation(JobService.ingest_url, "POST", f"{_INGEST}/url", status=202, for_models="never"),
    Operation(ConnectionService.list, "GET", _CONNECTIONS, id="list_connections"),
    Operation(
        ConnectionService.create,
        "POST",
        _CONNECTIONS,
        status=201,
        id="create_connection",
        for_models="never",
        audited=True,
    ),
    Operation(
        ConnectionService.delete,
        "DELETE",
        _CONNECTION,
        unhurried=True,
        id="delete_connection",
        for_models="named",
        audited=True,
    ),
    Operation(ConnectionService.sync, "POST", f"{_CONNECTION}/sync", status=202, for_models="named"),
)
MAINTENANCE_OPERATIONS: Final = (
    Operation(MaintenanceService.status, "GET", "/status", local=("collection",)),
    Operation(
        MaintenanceService.scan,
        "POST",
        f"{_COLLECTION}/scan",
        reads=True,
        unhurried=True,
        id="scan_collection",
    ),
    Operation(MaintenanceService.check, "GET", "/check", unhurried=True),
)

OPERATIONS = {
    operation.key: operation
    for operation in (
        *ALERT_OPERATIONS,
        *EVENT_OPERATIONS,
        *PEOPLE_OPERATIONS,
        *GRANT_OPERATIONS,
        *GRAPH_OPERATIONS,
        *COLLECTION_OPERATIONS,
        *SOURCE_OPERATIONS,
        *DOCUMENT_OPERATIONS,
        *CHANNEL_OPERATIONS,
        *SEARCH_OPERATIONS,
        *JOB_OPERATIONS,
        *INGEST_OPERATIONS,
        *MAINTENANCE_OPERATIONS,
        *MEMORY_OPERATIONS,
        *STREAM_OPERATIONS,
    )
}
"""Every operation by its method, such as `PeopleService.whoami`."""
