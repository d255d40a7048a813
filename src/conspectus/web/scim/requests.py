"""What a SCIM request asks for: its page of resources, and what it makes of one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from unicodedata import normalize

from pydantic import ValidationError
from scim2_models import (
    Context,
    Error,
    ListResponse,
    PatchOp,
    Resource,
    ResponseParameters,
    SCIMException,
    ScimProvider,
    SearchRequest,
)
from scim2_models.path import CompareOperator, Comparison

from conspectus.errors import InvalidInput
from conspectus.model.provisioning import (
    GroupAttributes,
    ProvisionedGroup,
    ProvisionedUser,
    UserAttributes,
)
from conspectus.web.scim.resources import Group, User

MAX_FILTER_LENGTH: Final = 2_000
MAX_OPERATIONS: Final = 1_000
"""Most operations of a patch."""
OPERATIONS: Final = "operations"

AnyResource = TypeVar("AnyResource", User, Group)
Account = TypeVar("Account", ProvisionedUser, ProvisionedGroup)


def read_resource(
    model: type[AnyResource], body: Any, provider: ScimProvider, original: AnyResource | None = None
) -> AnyResource:
    """Return the resource in the body of a creation, or with an `original` of its replacement.

    Raises SCIMException or ValidationError.
    """
    if isinstance(body, dict) and not any(name.casefold() == "active" for name in body):
        is_active = original.active if isinstance(original, User) else True
        body = {**body, "active": is_active} if model is User else body
    context = Context.RESOURCE_CREATION_REQUEST if original is None else Context.RESOURCE_REPLACEMENT_REQUEST
    resource = model.model_validate(body, scim_ctx=context, scim_provider=provider)
    if original is not None:
        with provider:
            resource.replace(original)
    return resource


def patch_resource(
    model: type[AnyResource], body: Any, provider: ScimProvider, original: AnyResource
) -> AnyResource:
    """Return a resource after the operations of a patch.

    Raises SCIMException or ValidationError, or InvalidInput for too many of them.
    """
    operations = _find_operations(body)
    if len(operations) > MAX_OPERATIONS:
        raise InvalidInput("Operations", f"must be at most {MAX_OPERATIONS}; send several requests")
    patch_model: Any = PatchOp.__class_getitem__(model)
    with provider:
        patch = patch_model.model_validate(body, scim_ctx=Context.RESOURCE_PATCH_REQUEST)
        patched = original.model_copy(deep=True)
        patch.patch(patched)
    return patched


def attributes_of_user(user: User) -> UserAttributes:
    """Return what a request sets of a user."""
    return UserAttributes(user.user_name or "", user.external_id, active=bool(user.active))


def attributes_of_group(group: Group) -> GroupAttributes:
    """Return what a request sets of a group."""
    members = frozenset(member.value for member in group.members or () if member.value)
    return GroupAttributes(group.display_name or "", group.external_id, members)


def read_search(models: Any, parameters: Mapping[str, Any]) -> SearchRequest[Any]:
    """Return the search in query parameters or a body. Raises SCIMException or ValidationError."""
    if len(str(parameters.get("filter") or "")) > MAX_FILTER_LENGTH:
        raise InvalidInput("filter", f"must have at most {MAX_FILTER_LENGTH} characters")
    search_model: Any = SearchRequest.__class_getitem__(models)
    search: SearchRequest[Any] = search_model.model_validate(dict(parameters))
    return search


def select_candidates(
    accounts: Sequence[Account],
    search: SearchRequest[Any],
    names: Mapping[str, Callable[[Account], str | None]],
) -> Sequence[Account]:
    """Return the accounts that a filter may match, before resources are made of them.

    Providers look up each user by a filter such as `userName eq "ann"`. `names` has the texts of accounts by
    attribute, in lower case. Filters of another form leave all accounts.
    """
    condition = None if search.filter is None else search.filter.ast
    if not isinstance(condition, Comparison) or condition.op is not CompareOperator.eq:
        return accounts
    text_of = names.get(str(condition.attr_path).casefold())
    if text_of is None or not isinstance(condition.value, str):
        return accounts
    comparable_text = _comparable(condition.value)
    return [account for account in accounts if _comparable(text_of(account) or "") == comparable_text]


def _comparable(text: str) -> str:
    """Return a text as filters compare it, whatever its case."""
    return normalize("NFC", normalize("NFC", text).lower())


def read_response_parameters(model: Any, parameters: Mapping[str, Any]) -> ResponseParameters[Any]:
    """Return which attributes an answer has. Raises SCIMException or ValidationError."""
    names = {name: text for name, text in parameters.items() if name in {"attributes", "excludedAttributes"}}
    parameters_model: Any = ResponseParameters.__class_getitem__(model)
    read: ResponseParameters[Any] = parameters_model.model_validate(names)
    return read


def list_page(
    models: Any, search: SearchRequest[Any], resources: Sequence[Resource[Any]], *, max_results: int
) -> dict[str, Any]:
    """Return the page of the resources that a search asks for, as JSON."""
    matching = [resource for resource in resources if search.filter is None or search.filter.match(resource)]
    start = search.start_index_0 or 0
    count = max_results if search.count is None else min(search.count, max_results)
    page = search.sort(matching)[start : start + count]
    list_model: Any = ListResponse.__class_getitem__(models)
    listing = list_model(
        total_results=len(matching), start_index=start + 1, items_per_page=len(page), resources=page
    )
    document: dict[str, Any] = listing.model_dump(
        scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=search
    )
    return document


def describe_error(error: SCIMException | ValidationError) -> Error:
    """Return what is wrong with a request; of several faults, the first."""
    if isinstance(error, SCIMException):
        return error.to_error()
    return Error.from_validation_errors(error)[0]


def _find_operations(body: Any) -> Sequence[Any]:
    """Return the operations of a patch, whatever the case of their name."""
    members = body.items() if isinstance(body, dict) else ()
    operations = next((part for name, part in members if name.casefold() == OPERATIONS), ())
    return operations if isinstance(operations, list) else ()
