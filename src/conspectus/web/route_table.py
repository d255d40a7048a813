"""What the routes declare about requests: which of them only read."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from starlette.routing import BaseRoute, Route
from starlette.types import Scope

WRITING_METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class ReadOnlyRoute(Route):
    """A route whose requests change no content of the store, by whatever method they come."""

    is_read_only = True


def is_read_only(route: BaseRoute) -> bool:
    """Return whether a route is declared as one whose requests change no content of the store."""
    return getattr(route, "is_read_only", False) is True


class RouteTable:
    """Looks up what the route of a request declares; `routes` are in the order in which they match."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._routes = routes

    def is_read_only(self, scope: Scope) -> bool:
        """Return whether a request changes nothing; False for one that has no route."""
        method, path = scope["method"], scope["path"]
        if method not in WRITING_METHODS:
            return True
        exact = self._exact[method].get(path)
        if exact is not None:
            return exact
        match = next((route for route in self._patterns[method] if route.path_regex.match(path)), None)
        return match is not None and is_read_only(match)

    @cached_property
    def _by_method(self) -> Mapping[str, Sequence[Route]]:
        routes = [route for route in self._routes if isinstance(route, Route)]
        return {
            method: [route for route in routes if not route.methods or method in route.methods]
            for method in WRITING_METHODS
        }

    @cached_property
    def _exact(self) -> Mapping[str, Mapping[str, bool]]:
        """The routes without parameters, of which the first of a path counts."""
        return {
            method: {
                route.path: is_read_only(route) for route in reversed(routes) if not route.param_convertors
            }
            for method, routes in self._by_method.items()
        }

    @cached_property
    def _patterns(self) -> Mapping[str, Sequence[Route]]:
        return {
            method: [route for route in routes if route.param_convertors]
            for method, routes in self._by_method.items()
        }
