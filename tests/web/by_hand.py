"""Operations that are written by hand for HTTP or in the client, with the reason."""

from collections.abc import Mapping
from typing import Final

ROUTES: Final[Mapping[str, str]] = {
    "an upload": "import_captions import_messages import_streams ingest_files preview_files",
    "the body or response is a stream, JSON Lines or an image": """
        add_lines chat export_document_lines export_graph export_lines import_document_lines import_lines
        resume_chat subscribe_alerts subscribe_captions
        """,
    "compatible with the OpenAI API": "complete embed models",
    "compatible with another product": """
        delete_attachment delete_task get_attachment get_task list_attachments list_tasks post_task post_tasks
        put_attachment put_task search_tasks task_context update_task
        """,
    "a browser session in a cookie": "create_session delete_session",
    "two possible statuses": "create_collection",
    "an unknown collection is an error, and is not created": "add_documents get_or_create_source",
    "documents without a key are recorded for idempotency": "add_documents_to_source",
    "null is a value, and differs from an omitted field": "update_document",
    "selects by ids or by filter": "delete_documents_of_collection",
    "combines two methods, or has another response": """
        delete_document forget_memory get_job list_documents_of_source reindex
        """,
    "hits are sent as ids of their chunks": "rerank",
}
"""Operation ids of the OpenAPI document."""
METHODS: Final[Mapping[str, str]] = {
    "files, archives or batches in several requests": """
        Channels.import_archive Channels.add_messages Documents.add Documents.add_files Documents.delete
        Documents.import_lines Events.add Jobs.ingest_files Jobs.preview_files Memory.import_lines Memory.add
        Streams.add_captions Streams.import_captions
        """,
    "the body or response is a stream, JSON Lines or an image": """
        Alerts.subscribe Chat.stream Graph.export Streams.subscribe
        """,
    "creates a missing collection": """
        Collections.create Collections.get_or_create Collections.get_or_create_source
        """,
    "a name may look like the path of something else": "Collections.delete Collections.get",
    "a source is given by name": """
        Collections.delete_source Collections.get_source Collections.update_source
        """,
    "two paths, several requests, or progress": """
        Graph.wait_until_extracted Jobs.wait Maintenance.status
        """,
    "the route is written by hand": """
        Documents.delete_by_filter Documents.update Jobs.get Maintenance.reindex
        """,
    "hits are sent as ids of their chunks": "Search.rerank",
    "calls another operation": "Search.feedback",
}
"""Methods of the client, by service."""
