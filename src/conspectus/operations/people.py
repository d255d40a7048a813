"""Operations on people: users, groups, API keys and grants."""

from typing import Final

from conspectus.engine import Engine
from conspectus.operations.operation import Operation

_MEMBER: Final = "/groups/{group}/members/{user}"
_GRANTS: Final = "/collections/{collection}/grants"

PEOPLE_OPERATIONS: Final = (
    Operation(Engine.whoami, "GET", "/me", id="who_am_i"),
    Operation(Engine.users, "GET", "/users", id="list_users"),
    Operation(Engine.create_user, "POST", "/users", status=201),
    Operation(Engine.find_user, "GET", "/users/{user}", id="get_user"),
    Operation(Engine.disable_user, "PATCH", "/users/{user}", id="update_user"),
    Operation(Engine.delete_user, "DELETE", "/users/{user}", status=204),
    Operation(Engine.groups, "GET", "/groups", id="list_groups"),
    Operation(Engine.create_group, "POST", "/groups", status=201),
    Operation(Engine.delete_group, "DELETE", "/groups/{group}", status=204),
    Operation(Engine.members, "GET", "/groups/{group}/members", id="list_members"),
    Operation(Engine.join, "PUT", _MEMBER, status=204, id="join_group"),
    Operation(Engine.leave, "DELETE", _MEMBER, status=204, id="leave_group"),
    Operation(Engine.keys, "GET", "/keys", id="list_keys"),
    Operation(Engine.create_key, "POST", "/keys", status=201, secret=True),
    Operation(Engine.revoke_key, "DELETE", "/keys/{key}"),
    Operation(Engine.rotate_key, "POST", "/keys/{key}/rotate", status=201, secret=True),
)
GRANT_OPERATIONS: Final = (
    Operation(Engine.grants, "GET", _GRANTS, id="list_grants"),
    Operation(Engine.grant, "PUT", _GRANTS, id="put_grant"),
    Operation(Engine.revoke, "DELETE", _GRANTS, id="revoke_grant", wrapped="revoked"),
)
