"""The operations on users and groups, each declared once."""

from typing import Final

from conspectus.engine.people import PeopleService
from conspectus.operations.operation import Operation

_MEMBER: Final = "/groups/{group}/members/{user}"

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
)
