"""The operations on API keys, each declared once."""

from typing import Final

from conspectus.engine.keys import KeyService
from conspectus.operations.operation import Operation

KEY_OPERATIONS: Final = (
    Operation(KeyService.list, "GET", "/keys", id="list_keys", for_models="never"),
    Operation(
        KeyService.create,
        "POST",
        "/keys",
        id="create_key",
        status=201,
        secret=True,
        for_models="never",
        audited=True,
    ),
    Operation(KeyService.revoke, "DELETE", "/keys/{key}", id="revoke_key", for_models="never", audited=True),
    Operation(
        KeyService.rotate,
        "POST",
        "/keys/{key}/rotate",
        id="rotate_key",
        status=201,
        secret=True,
        for_models="never",
        audited=True,
    ),
)
