"""Operations on jobs, connections, and the whole store."""

from typing import Final

from conspectus.engine.connections import ConnectionService
from conspectus.engine.jobs import JobService
from conspectus.engine.maintenance import MaintenanceService
from conspectus.operations.operation import Operation

_INGEST: Final = "/collections/{collection}/ingest"
_CONNECTIONS: Final = "/collections/{collection}/connections"
_CONNECTION: Final = f"{_CONNECTIONS}/{{name}}"

JOB_OPERATIONS: Final = (
    Operation(JobService.list, "GET", "/jobs", id="list_jobs"),
    Operation(JobService.cancel, "POST", "/jobs/{job}/cancel", id="cancel_job"),
    Operation(JobService.retry, "POST", "/jobs/{job}/retry", id="retry_job"),
    Operation(JobService.report, "GET", "/ingest/report", id="ingest_report"),
    Operation(JobService.list_requests, "GET", "/requests"),
    Operation(JobService.request_totals, "GET", "/requests/totals"),
)
INGEST_OPERATIONS: Final = (
    Operation(JobService.ingest_url, "POST", f"{_INGEST}/url", status=202),
    Operation(ConnectionService.list, "GET", _CONNECTIONS, id="list_connections"),
    Operation(ConnectionService.create, "POST", _CONNECTIONS, status=201, id="create_connection"),
    Operation(ConnectionService.delete, "DELETE", _CONNECTION, unhurried=True, id="delete_connection"),
    Operation(ConnectionService.sync, "POST", f"{_CONNECTION}/sync", status=202),
)
MAINTENANCE_OPERATIONS: Final = (
    Operation(MaintenanceService.status, "GET", "/status", local=("collection",)),
    Operation(MaintenanceService.check, "GET", "/check", unhurried=True),
)
