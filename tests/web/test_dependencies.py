"""What routes depend on costs no thread."""

import inspect
from collections.abc import Iterator

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from conspectus.web.app import ROUTE_GROUPS
from conspectus.web.openapi import resolve_routes


def walk_functions(dependant: Dependant) -> Iterator[str]:
    """The plain functions below a dependency, each of which the framework calls in a thread."""
    for dependency in dependant.dependencies:
        if inspect.isfunction(dependency.call) and not inspect.iscoroutinefunction(dependency.call):
            yield dependency.call.__qualname__
        yield from walk_functions(dependency)


def test_no_dependency_of_a_route_is_a_plain_function() -> None:
    all_routes = resolve_routes(route for group in ROUTE_GROUPS for route in group.router.routes)
    routes = [route for route in all_routes if isinstance(route, APIRoute)]
    assert len(routes) == len(all_routes) and any(route.dependant.dependencies for route in routes)
    assert {route.path: plain for route in routes if (plain := [*walk_functions(route.dependant)])} == {}
