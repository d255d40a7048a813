"""Users and groups as SCIM names them, and what the server says of itself."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from pydantic import Field
from scim2_models import (
    URN,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    Filter,
    Meta,
    Mutability,
    Patch,
    Reference,
    Required,
    Resource,
    ResourceType,
    Schema,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)

from conspectus.model.provisioning import ProvisionedGroup, ProvisionedUser

PATH: Final = "/scim/v2"
TAG_LENGTH: Final = 32
POLICY: Final = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)
"""Attributes of people that nobody needs here are ignored; patches may have the form of Microsoft Entra."""


class GroupMembership(ComplexAttribute):
    """A group of a user."""

    value: Annotated[str | None, Mutability.read_only, CaseExact.true] = None
    display: Annotated[str | None, Mutability.read_only] = None


class User(Resource[Any]):
    """A user: no more than what the server needs, so that no personal data is stored for nothing."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Required.true, Uniqueness.server] = None
    active: Annotated[bool | None, Required.true] = None
    groups: Annotated[list[GroupMembership] | None, Mutability.read_only] = None


class GroupMember(ComplexAttribute):
    """A user in a group."""

    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    ref: Annotated[Reference["User"] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )


class Group(Resource[Any]):
    """A group of users."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Required.true] = None
    members: list[GroupMember] | None = None


ScimResource: TypeAlias = "User | Group"


def describe_provider(*, max_results: int) -> ScimProvider:
    """Return what the server says of itself: resource types, schemas and what it can do."""
    config = ServiceProviderConfig(
        patch=Patch(supported=True),
        bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=max_results),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=True),
        etag=ETag(supported=True),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type.oauthbearertoken,
                name="Bearer token",
                description="The token in the setting CONSPECTUS_SCIM_TOKEN.",
                primary=True,
            )
        ],
    )
    resource_types = [ResourceType.from_resource(User), ResourceType.from_resource(Group)]
    models: list[type[Resource[Any]]] = [User, Group, ServiceProviderConfig, ResourceType, Schema]
    return ScimProvider(models, resource_types, config, POLICY)


def to_user(provisioned: ProvisionedUser, group_names: Mapping[str, str], address: str) -> User:
    """Return a user as SCIM has it; `group_names` are those at the provider by id."""
    user = User(
        id=provisioned.user.id,
        external_id=provisioned.external_id,
        user_name=provisioned.user_name,
        active=not provisioned.user.disabled,
        groups=[GroupMembership(value=group, display=group_names.get(group)) for group in provisioned.groups]
        or None,
    )
    user.meta = Meta(
        resource_type="User",
        created=provisioned.user.created,
        last_modified=provisioned.modified,
        location=f"{address}{PATH}/Users/{provisioned.user.id}",
        version=_version_of(user),
    )
    return user


def to_group(provisioned: ProvisionedGroup, address: str) -> Group:
    """Return a group as SCIM has it."""
    group = Group(
        id=provisioned.group.id,
        external_id=provisioned.external_id,
        display_name=provisioned.display_name,
        members=[
            GroupMember(value=user, ref=Reference["User"](f"{address}{PATH}/Users/{user}"))
            for user in provisioned.members
        ]
        or None,
    )
    group.meta = Meta(
        resource_type="Group",
        created=provisioned.group.created,
        last_modified=provisioned.modified,
        location=f"{address}{PATH}/Groups/{provisioned.group.id}",
        version=_version_of(group),
    )
    return group


def _version_of(resource: Resource[Any]) -> str:
    """Return the ETag of a resource: a hash of what it holds, also of what others changed."""
    digest = hashlib.sha256(resource.model_dump_json().encode()).hexdigest()
    return f'W/"{digest[:TAG_LENGTH]}"'
