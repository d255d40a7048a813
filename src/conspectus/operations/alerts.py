"""The operations on alerts, each declared once."""

from typing import Final

from conspectus.engine.alerts import AlertService
from conspectus.operations.operation import Operation

_ALERT: Final = "/alerts/{alert}"

ALERT_OPERATIONS: Final = (
    Operation(AlertService.put, "POST", "/alerts", spread="alert", id="put_alert", for_models="never"),
    Operation(AlertService.list, "GET", "/alerts", id="list_alerts"),
    Operation(AlertService.list_matches, "GET", "/alerts/events", id="list_alert_matches"),
    Operation(AlertService.get, "GET", _ALERT, id="get_alert"),
    Operation(AlertService.delete, "DELETE", _ALERT, status=204, id="delete_alert", for_models="named"),
)
