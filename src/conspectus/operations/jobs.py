"""The operations on jobs and connections, each declared once."""

from typing import Final

from conspectus.engine.connections import ConnectionService
from conspectus.engine.jobs import JobService
from conspectus.operations.operation import Operation

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
    Operation(ConnectionService.list_connectors, "GET", "/connectors", for_models="never"),
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
        ConnectionService.set_credentials,
        "PUT",
        f"{_CONNECTION}/credentials",
        for_models="never",
        audited=True,
    ),
    Operation(
        ConnectionService.list_people,
        "GET",
        f"{_CONNECTION}/people",
        id="list_remote_people",
        for_models="never",
    ),
    Operation(
        ConnectionService.map_person,
        "PUT",
        f"{_CONNECTION}/people",
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
