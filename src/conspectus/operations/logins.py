"""The operations on sessions of browsers and on invitations, each declared once."""

from typing import Final

from conspectus.engine.logins import LoginService
from conspectus.operations.operation import Operation

LOGIN_OPERATIONS: Final = (
    Operation(LoginService.list_sessions, "GET", "/sessions", for_models="never"),
    Operation(
        LoginService.end_session,
        "DELETE",
        "/sessions/{session}",
        status=204,
        for_models="never",
        audited=True,
    ),
    Operation(LoginService.list_invitations, "GET", "/invitations", for_models="never"),
    Operation(
        LoginService.create_invitation,
        "POST",
        "/invitations",
        status=201,
        secret=True,
        for_models="never",
        audited=True,
    ),
    Operation(
        LoginService.withdraw_invitation,
        "DELETE",
        "/invitations/{invitation}",
        status=204,
        for_models="never",
        audited=True,
    ),
)
