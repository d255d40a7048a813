"""The operations of all services, grouped by what they are about."""

from conspectus.operations.access import ACCESS_OPERATIONS
from conspectus.operations.alerts import ALERT_OPERATIONS
from conspectus.operations.answers import ANSWER_OPERATIONS
from conspectus.operations.channels import CHANNEL_OPERATIONS
from conspectus.operations.collections import COLLECTION_OPERATIONS, SOURCE_OPERATIONS
from conspectus.operations.documents import DOCUMENT_OPERATIONS
from conspectus.operations.experiments import EXPERIMENT_OPERATIONS
from conspectus.operations.graph import GRAPH_OPERATIONS
from conspectus.operations.identities import IDENTITY_OPERATIONS
from conspectus.operations.jobs import INGEST_OPERATIONS, JOB_OPERATIONS
from conspectus.operations.keys import KEY_OPERATIONS
from conspectus.operations.logins import LOGIN_OPERATIONS
from conspectus.operations.maintenance import MAINTENANCE_OPERATIONS
from conspectus.operations.memory import MEMORY_OPERATIONS
from conspectus.operations.people import PEOPLE_OPERATIONS
from conspectus.operations.search import SEARCH_OPERATIONS
from conspectus.operations.streams import EVENT_OPERATIONS, STREAM_OPERATIONS

OPERATIONS = {
    operation.key: operation
    for operation in (
        *ALERT_OPERATIONS,
        *EVENT_OPERATIONS,
        *PEOPLE_OPERATIONS,
        *KEY_OPERATIONS,
        *LOGIN_OPERATIONS,
        *IDENTITY_OPERATIONS,
        *ACCESS_OPERATIONS,
        *GRAPH_OPERATIONS,
        *COLLECTION_OPERATIONS,
        *SOURCE_OPERATIONS,
        *DOCUMENT_OPERATIONS,
        *CHANNEL_OPERATIONS,
        *SEARCH_OPERATIONS,
        *ANSWER_OPERATIONS,
        *EXPERIMENT_OPERATIONS,
        *JOB_OPERATIONS,
        *INGEST_OPERATIONS,
        *MAINTENANCE_OPERATIONS,
        *MEMORY_OPERATIONS,
        *STREAM_OPERATIONS,
    )
}
"""Every operation by its method, such as `PeopleService.whoami`."""
