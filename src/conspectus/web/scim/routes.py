"""The routes of SCIM 2.0, of which only the identity provider knows the token."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeAlias

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError
from scim2_models import (
    Context,
    ForbiddenException,
    ListResponse,
    Resource,
    ResourceType,
    Schema,
    SCIMException,
    ScimProvider,
)

from conspectus.engine.provisioning import Provisioning
from conspectus.errors import InvalidInput, NotFound, PreconditionFailed
from conspectus.model.provisioning import (
    GroupAttributes,
    ProvisionedGroup,
    ProvisionedUser,
    UserAttributes,
)
from conspectus.settings import Settings
from conspectus.web.auth import read_body
from conspectus.web.etags import is_not_modified, tags_in
from conspectus.web.problem_details import SCIM_MEDIA_TYPE
from conspectus.web.scim.requests import (
    attributes_of_group,
    attributes_of_user,
    describe_error,
    list_page,
    patch_resource,
    read_resource,
    read_response_parameters,
    read_search,
    select_candidates,
)
from conspectus.web.scim.resources import PATH, Group, User, describe_provider, to_group, to_user

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
READING: Final = ["GET"]
USER_NAMES: Final[Mapping[str, Callable[[ProvisionedUser], str | None]]] = {
    "id": lambda provisioned: provisioned.user.id,
    "username": lambda provisioned: provisioned.user_name,
    "externalid": lambda provisioned: provisioned.external_id,
}
GROUP_NAMES: Final[Mapping[str, Callable[[ProvisionedGroup], str | None]]] = {
    "id": lambda provisioned: provisioned.group.id,
    "displayname": lambda provisioned: provisioned.display_name,
    "externalid": lambda provisioned: provisioned.external_id,
}
"""The texts by which a provider looks accounts up, by their attribute in lower case."""


def scim_router(provisioning: Provisioning, settings: Settings) -> APIRouter:
    """Return the routes of a server."""
    handlers = ScimHandlers(provisioning, settings)
    router = APIRouter(include_in_schema=False)
    routes: Mapping[str, tuple[Handler, list[str]]] = {
        "/ServiceProviderConfig": (handlers.read_config, READING),
        "/ResourceTypes": (handlers.list_resource_types, READING),
        "/ResourceTypes/{name}": (handlers.read_resource_type, READING),
        "/Schemas": (handlers.list_schemas, READING),
        "/Schemas/{name}": (handlers.read_schema, READING),
        "/.search": (handlers.search, ["POST"]),
        "/Users/.search": (handlers.search, ["POST"]),
        "/Groups/.search": (handlers.search, ["POST"]),
    }
    for path, (handler, methods) in routes.items():
        router.add_api_route(f"{PATH}{path}", answer_scim_errors(handler), methods=methods)
    for path, get, post, put, delete in (
        ("/Users", handlers.read_user, handlers.create_user, handlers.change_user, handlers.delete_user),
        ("/Groups", handlers.read_group, handlers.create_group, handlers.change_group, handlers.delete_group),
    ):
        router.add_api_route(f"{PATH}{path}", answer_scim_errors(handlers.list_resources), methods=READING)
        router.add_api_route(f"{PATH}{path}", answer_scim_errors(post), methods=["POST"])
        router.add_api_route(f"{PATH}{path}/{{id}}", answer_scim_errors(get), methods=READING)
        router.add_api_route(f"{PATH}{path}/{{id}}", answer_scim_errors(put), methods=["PUT", "PATCH"])
        router.add_api_route(f"{PATH}{path}/{{id}}", answer_scim_errors(delete), methods=["DELETE"])
    return router


def answer_scim_errors(handler: Handler) -> Handler:
    """Return a handler that answers what the library refuses with an error of SCIM."""

    @wraps(handler)
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except (SCIMException, ValidationError) as fault:
            error = describe_error(fault)
            return _answer(error.model_dump(), error.status or 400)

    # The framework would read the annotations of the method, which has `self`.
    del answer.__wrapped__
    return answer


class ScimHandlers:
    """Answers the requests of the identity provider."""

    def __init__(self, provisioning: Provisioning, settings: Settings) -> None:
        self._provisioning = provisioning
        self._max_results = settings.scim_max_results
        self._max_bytes = settings.scim_max_bytes
        self._address = settings.own_address
        self._provider: ScimProvider = describe_provider(max_results=settings.scim_max_results)

    async def read_config(self, request: Request) -> Response:
        """Return what the server can do."""
        config = self._provider.config
        if config is None:
            raise NotFound("page", request.url.path)
        return _answer(config.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE))

    async def list_resource_types(self, request: Request) -> Response:
        """Return the kinds of resources."""
        return self._list_all(request, ResourceType, self._provider.resource_types)

    async def read_resource_type(self, request: Request) -> Response:
        """Return a kind of resource."""
        return self._read_one(request, self._provider.resource_types)

    async def list_schemas(self, request: Request) -> Response:
        """Return the schemas."""
        return self._list_all(request, Schema, self._provider.schemas)

    async def read_schema(self, request: Request) -> Response:
        """Return a schema."""
        return self._read_one(request, self._provider.schemas)

    async def list_resources(self, request: Request) -> Response:
        """Return a page of users or groups, by query parameters."""
        return await self._answer_search(request, dict(request.query_params))

    async def search(self, request: Request) -> Response:
        """Return a page of users or groups, or of both, by a body."""
        body = await self._read_body(request)
        if not isinstance(body, dict):
            raise InvalidInput("body", "must be an object of JSON")
        return await self._answer_search(request, body)

    async def read_user(self, request: Request) -> Response:
        """Return a user."""
        provisioned = await self._provisioning.get_user(request.path_params["id"])
        return self._answer_resource(request, await self._to_user(provisioned))

    async def create_user(self, request: Request) -> Response:
        """Create a user."""
        body = await self._read_body(request)
        user = await asyncio.to_thread(read_resource, User, body, self._provider)
        created = await self._provisioning.create_user(attributes_of_user(user))
        return self._answer_resource(request, await self._to_user(created), status=201)

    async def change_user(self, request: Request) -> Response:
        """Replace or patch a user."""
        body = await self._read_body(request)

        async def change(current: ProvisionedUser) -> UserAttributes:
            original = await self._to_user(current)
            return attributes_of_user(await self._change(request, User, body, original))

        changed = await self._provisioning.change_user(request.path_params["id"], change)
        return self._answer_resource(request, await self._to_user(changed))

    async def delete_user(self, request: Request) -> Response:
        """End the access of a user for good."""
        await self._provisioning.delete_user(request.path_params["id"])
        return Response(status_code=204)

    async def read_group(self, request: Request) -> Response:
        """Return a group."""
        provisioned = await self._provisioning.get_group(request.path_params["id"])
        return self._answer_resource(request, await self._to_group(provisioned))

    async def create_group(self, request: Request) -> Response:
        """Create a group."""
        body = await self._read_body(request)
        group = await asyncio.to_thread(read_resource, Group, body, self._provider)
        created = await self._provisioning.create_group(attributes_of_group(group))
        return self._answer_resource(request, await self._to_group(created), status=201)

    async def change_group(self, request: Request) -> Response:
        """Replace or patch a group."""
        body = await self._read_body(request)

        async def change(current: ProvisionedGroup) -> GroupAttributes:
            original = await self._to_group(current)
            return attributes_of_group(await self._change(request, Group, body, original))

        changed = await self._provisioning.change_group(request.path_params["id"], change)
        return self._answer_resource(request, await self._to_group(changed))

    async def delete_group(self, request: Request) -> Response:
        """Delete a group."""
        await self._provisioning.delete_group(request.path_params["id"])
        return Response(status_code=204)

    async def _change(self, request: Request, model: Any, body: Any, original: Any) -> Any:
        """Return a resource after a request. Raises PreconditionFailed if If-Match names another version."""
        tags = tags_in(request.headers.get("if-match"))
        if tags and not {original.meta.version, "*"} & set(tags):
            raise PreconditionFailed(model.__name__.lower(), original.id)
        if request.method == "PATCH":
            return await asyncio.to_thread(patch_resource, model, body, self._provider, original)
        return await asyncio.to_thread(read_resource, model, body, self._provider, original)

    async def _answer_search(self, request: Request, parameters: Mapping[str, Any]) -> Response:
        kind = request.url.path.removeprefix(PATH).removesuffix("/.search")
        models = {"/Users": User, "/Groups": Group}.get(kind, User | Group)
        search = await asyncio.to_thread(read_search, models, parameters)
        resources: list[Resource[Any]] = []
        if kind != "/Groups":
            names = await self._group_names()
            users = select_candidates(await self._provisioning.list_users(), search, USER_NAMES)
            resources += await asyncio.to_thread(
                lambda: [to_user(user, names, self._address) for user in users]
            )
        if kind != "/Users":
            groups = select_candidates(await self._provisioning.list_groups(), search, GROUP_NAMES)
            resources += await asyncio.to_thread(lambda: [to_group(group, self._address) for group in groups])
        page = await asyncio.to_thread(list_page, models, search, resources, max_results=self._max_results)
        return _answer(page)

    def _list_all(self, request: Request, model: Any, resources: Any) -> Response:
        if "filter" in request.query_params:
            raise ForbiddenException(detail="filters are not supported here")
        list_model: Any = ListResponse.__class_getitem__(model)
        count = len(resources)
        listing = list_model(
            total_results=count, start_index=1, items_per_page=count, resources=list(resources)
        )
        return _answer(listing.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE))

    def _read_one(self, request: Request, resources: Any) -> Response:
        name = request.path_params["name"]
        for resource in resources:
            if str(resource.id) == name:
                return _answer(resource.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE))
        raise NotFound("page", request.url.path)

    async def _to_user(self, provisioned: ProvisionedUser) -> User:
        return to_user(provisioned, await self._group_names(), self._address)

    async def _to_group(self, provisioned: ProvisionedGroup) -> Group:
        return await asyncio.to_thread(to_group, provisioned, self._address)

    async def _group_names(self) -> dict[str, str]:
        return {group.group.id: group.display_name for group in await self._provisioning.list_groups()}

    async def _read_body(self, request: Request) -> Any:
        """Return the JSON in a body. Raises TooLarge or InvalidInput."""
        body = await read_body(request.receive, self._max_bytes)
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise InvalidInput("body", "must be JSON in UTF-8") from None

    def _answer_resource(self, request: Request, resource: Any, *, status: int = 200) -> Response:
        """Return a resource with its tag; 304 without it if the client has it already."""
        version, location = resource.meta.version, str(resource.meta.location)
        headers = {"ETag": version}
        if request.method == "GET" and is_not_modified(
            version.removeprefix("W/"), request.headers.get("if-none-match")
        ):
            return Response(status_code=304, headers=headers)
        parameters = read_response_parameters(type(resource), request.query_params)
        context = Context.RESOURCE_CREATION_RESPONSE if status == 201 else Context.RESOURCE_QUERY_RESPONSE
        document = resource.model_dump(scim_ctx=context, response_parameters=parameters)
        return _answer(document, status, {**headers, "Location": location})


def _answer(
    document: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(json.dumps(document).encode(), status, dict(headers or {}), SCIM_MEDIA_TYPE)
