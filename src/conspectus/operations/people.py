"""The operations on users, groups, keys and grants, each declared once."""

from typing import Final

from conspectus.engine.people import PeopleService
from conspectus.operations.operation import Operation

_MEMBER: Final = "/groups/{group}/members/{user}"
_GRANTS: Final = "/collections/{collection}/grants"

PEOPLE_OPERATIONS: Final = (
    Operation(PeopleService.whoami, "GET", "/me"),
    Operation(PeopleService.list_users, "GET", "/users", for_models="never"),
    Operation(PeopleService.create_user, "POST", "/users", status=201, for_models="never", audited=True),
    Operation(PeopleService.get_user, "GET", "/users/{user}", for_models="never"),
    Operation(PeopleService.set_user_disabled, "PATCH", "/users/{user}", for_models="never", audited=True),
    Operation(
        PeopleService.delete_user, "DELETE", "/users/{user}", status=204, for_models="never", audited=True
    ),
    Operation(PeopleService.list_groups, "GET", "/groups", for_models="never"),
    Operation(PeopleService.create_group, "POST", "/groups", status=201, for_models="never", audited=True),
    Operation(
        PeopleService.delete_group, "DELETE", "/groups/{group}", status=204, for_models="never", audited=True
    ),
    Operation(PeopleService.list_members, "GET", "/groups/{group}/members", for_models="never"),
    Operation(PeopleService.add_member, "PUT", _MEMBER, status=204, for_models="never", audited=True),
    Operation(PeopleService.remove_member, "DELETE", _MEMBER, status=204, for_models="never", audited=True),
    Operation(PeopleService.list_keys, "GET", "/keys", for_models="never"),
    Operation(
        PeopleService.create_key, "POST", "/keys", status=201, secret=True, for_models="never", audited=True
    ),
    Operation(PeopleService.revoke_key, "DELETE", "/keys/{key}", for_models="never", audited=True),
    Operation(PeopleService.list_sessions, "GET", "/sessions", for_models="never"),
    Operation(
        PeopleService.end_session,
        "DELETE",
        "/sessions/{session}",
        status=204,
        for_models="never",
        audited=True,
    ),
    Operation(PeopleService.effective_roles, "GET", "/users/{user}/roles", for_models="never"),
    Operation(PeopleService.list_readers, "GET", "/documents/{document}/readers", for_models="never"),
    Operation(PeopleService.list_audit, "GET", "/audit", for_models="never"),
    Operation(
        PeopleService.rotate_key,
        "POST",
        "/keys/{key}/rotate",
        status=201,
        secret=True,
        for_models="never",
        audited=True,
    ),
)
GRANT_OPERATIONS: Final = (
    Operation(PeopleService.list_grants, "GET", _GRANTS, for_models="never"),
    Operation(PeopleService.grant, "PUT", _GRANTS, id="put_grant", for_models="never", audited=True),
    Operation(
        PeopleService.revoke,
        "DELETE",
        _GRANTS,
        id="revoke_grant",
        wrapped="revoked",
        for_models="never",
        audited=True,
    ),
)
