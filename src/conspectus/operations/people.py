"""Operations on people: users, groups, API keys and grants."""

from typing import Final

from conspectus.engine.people import PeopleService
from conspectus.operations.operation import Operation

_MEMBER: Final = "/groups/{group}/members/{user}"
_GRANTS: Final = "/collections/{collection}/grants"

PEOPLE_OPERATIONS: Final = (
    Operation(PeopleService.whoami, "GET", "/me"),
    Operation(PeopleService.list_users, "GET", "/users"),
    Operation(PeopleService.create_user, "POST", "/users", status=201),
    Operation(PeopleService.get_user, "GET", "/users/{user}"),
    Operation(PeopleService.set_user_disabled, "PATCH", "/users/{user}"),
    Operation(PeopleService.delete_user, "DELETE", "/users/{user}", status=204),
    Operation(PeopleService.list_groups, "GET", "/groups"),
    Operation(PeopleService.create_group, "POST", "/groups", status=201),
    Operation(PeopleService.delete_group, "DELETE", "/groups/{group}", status=204),
    Operation(PeopleService.list_members, "GET", "/groups/{group}/members"),
    Operation(PeopleService.add_member, "PUT", _MEMBER, status=204),
    Operation(PeopleService.remove_member, "DELETE", _MEMBER, status=204),
    Operation(PeopleService.list_keys, "GET", "/keys"),
    Operation(PeopleService.create_key, "POST", "/keys", status=201, secret=True),
    Operation(PeopleService.revoke_key, "DELETE", "/keys/{key}"),
    Operation(PeopleService.effective_roles, "GET", "/users/{user}/roles"),
    Operation(PeopleService.list_readers, "GET", "/documents/{document}/readers"),
    Operation(PeopleService.list_audit, "GET", "/audit"),
    Operation(PeopleService.rotate_key, "POST", "/keys/{key}/rotate", status=201, secret=True),
)
GRANT_OPERATIONS: Final = (
    Operation(PeopleService.list_grants, "GET", _GRANTS),
    Operation(PeopleService.grant, "PUT", _GRANTS, id="put_grant"),
    Operation(PeopleService.revoke, "DELETE", _GRANTS, id="revoke_grant", wrapped="revoked"),
)
