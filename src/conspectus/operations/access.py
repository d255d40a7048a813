"""The operations on grants, roles and the audit log, each declared once."""

from typing import Final

from conspectus.engine.access import AccessService
from conspectus.operations.operation import Operation

_GRANTS: Final = "/collections/{collection}/grants"

ACCESS_OPERATIONS: Final = (
    Operation(AccessService.list_grants, "GET", _GRANTS, for_models="never"),
    Operation(AccessService.grant, "PUT", _GRANTS, id="put_grant", for_models="never", audited=True),
    Operation(
        AccessService.revoke,
        "DELETE",
        _GRANTS,
        id="revoke_grant",
        wrapped="revoked",
        for_models="never",
        audited=True,
    ),
    Operation(AccessService.effective_roles, "GET", "/users/{user}/roles", for_models="never"),
    Operation(AccessService.list_readers, "GET", "/documents/{document}/readers", for_models="never"),
    Operation(AccessService.list_audit, "GET", "/audit", for_models="never"),
)
