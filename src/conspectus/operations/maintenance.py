"""The operations on the store itself, each declared once."""

from typing import Final

from conspectus.engine.maintenance import MaintenanceService
from conspectus.operations.operation import Operation

_COLLECTION: Final = "/collections/{collection}"

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
