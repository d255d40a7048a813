"""What is written out on HTTP or in the client, although the engine has a method for it, and why."""

from collections.abc import Mapping
from typing import Final

ROUTES: Final[Mapping[str, str]] = {
    "an upload": "import_captions import_messages import_streams ingest_files",
    "a stream, lines or a picture, not one JSON value": """
        add_lines chat export_graph export_lines import_lines resume_chat subscribe_alerts
        subscribe_captions
        """,
    "the API of OpenAI": "complete embed models",
    "endpoints that are another product's to the letter": """
        delete_attachment delete_task get_attachment get_task list_attachments list_tasks post_task post_tasks
        put_attachment put_task search_tasks task_context update_task
        """,
    "a session of a browser, in a cookie": "create_session delete_session",
    "one of two statuses": "create_collection",
    "an unknown collection is refused, not made": "add_documents get_or_create_source",
    "what has no key is noted, so that nothing is stored twice": "add_documents_to_source",
    "what is named changes, null too": "update_document",
    "one of two selections": "delete_documents_of_collection",
    "of two methods, or with another answer": """
        delete_document delete_message forget_memory get_job list_documents_of_source reindex
        """,
    "hits by the ids of their chunks": "rerank",
}
"""Ids of operations in the OpenAPI document."""
METHODS: Final[Mapping[str, str]] = {
    "files, archives or batches of more than one request": """
        Channels.import_archive Channels.add_messages Documents.add Documents.add_files Documents.delete
        Events.add Jobs.ingest_files Memory.import_lines Memory.add Streams.add_captions
        Streams.import_captions
        """,
    "a stream, lines or a picture, not one JSON value": """
        Alerts.subscribe Chat.stream Graph.export Streams.subscribe
        """,
    "a collection that is made if it is new": """
        Collections.create Collections.get_or_create Collections.get_or_create_source
        """,
    "a name that may look like the path of something else": "Collections.delete Collections.get",
    "a source by its name": """
        Collections.delete_source Collections.get_source Collections.update_source
        """,
    "one of two paths, several requests, or progress": """
        Graph.wait_until_extracted Jobs.wait Maintenance.status
        """,
    "the route is written out": """
        Documents.delete_by_filter Documents.update Jobs.get Maintenance.reindex
        """,
    "hits by the ids of their chunks": "Search.rerank",
}
"""Methods of the client, by service."""
