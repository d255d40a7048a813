"""Users and groups that an identity provider manages by SCIM, with what it calls them."""

from datetime import datetime

from conspectus.deferred import dataclass
from conspectus.model.access import Group, User
from conspectus.model.ids import GroupId, UserId


@dataclass(frozen=True, slots=True)
class ProvisionedUser:
    """A user whom the provider manages. `user_name` is the name there, which may change; that here stays.

    `external_id` is the provider's own id. `groups` are those that the provider manages too, by their ids.
    `active` is what the provider said last; an administrator may have disabled the user since.
    """

    user: User
    user_name: str
    external_id: str | None
    modified: datetime
    active: bool = True
    groups: tuple[GroupId, ...] = ()


@dataclass(frozen=True, slots=True)
class ProvisionedGroup:
    """A group that the provider manages. `members` are those of its users whom the provider manages too."""

    group: Group
    display_name: str
    external_id: str | None
    modified: datetime
    members: tuple[UserId, ...] = ()


@dataclass(frozen=True, slots=True)
class UserAttributes:
    """What the provider sets of a user."""

    user_name: str
    external_id: str | None
    active: bool


@dataclass(frozen=True, slots=True)
class GroupAttributes:
    """What the provider sets of a group; `members` are ids of users."""

    display_name: str
    external_id: str | None
    members: frozenset[str]
