"""Operations: each is declared once, and its HTTP route and its client method are derived from that.

Imports engine.
"""

from conspectus.operations.channels import CHANNEL_OPERATIONS
from conspectus.operations.collections import COLLECTION_OPERATIONS, SOURCE_OPERATIONS
from conspectus.operations.documents import DOCUMENT_OPERATIONS
from conspectus.operations.events import EVENT_OPERATIONS
from conspectus.operations.graph import GRAPH_OPERATIONS
from conspectus.operations.jobs import INGEST_OPERATIONS, JOB_OPERATIONS, MAINTENANCE_OPERATIONS
from conspectus.operations.memory import MEMORY_OPERATIONS
from conspectus.operations.operation import Operation, Parameter
from conspectus.operations.people import GRANT_OPERATIONS, PEOPLE_OPERATIONS
from conspectus.operations.search import SEARCH_OPERATIONS
from conspectus.operations.streams import ALERT_OPERATIONS, STREAM_OPERATIONS

OPERATIONS = {
    each.key: each
    for each in (
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

__all__ = [
    "ALERT_OPERATIONS",
    "CHANNEL_OPERATIONS",
    "COLLECTION_OPERATIONS",
    "DOCUMENT_OPERATIONS",
    "EVENT_OPERATIONS",
    "GRANT_OPERATIONS",
    "GRAPH_OPERATIONS",
    "INGEST_OPERATIONS",
    "JOB_OPERATIONS",
    "MAINTENANCE_OPERATIONS",
    "MEMORY_OPERATIONS",
    "OPERATIONS",
    "PEOPLE_OPERATIONS",
    "SEARCH_OPERATIONS",
    "SOURCE_OPERATIONS",
    "STREAM_OPERATIONS",
    "Operation",
    "Parameter",
]
