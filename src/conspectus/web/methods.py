"""Which methods a path answers to."""

from collections.abc import Iterable

from starlette.routing import BaseRoute, Match
from starlette.types import Scope


def answers(routes: Iterable[BaseRoute], scope: Scope) -> bool:
    """Whether there is a route for the path and the method of a request."""
    return any(route.matches(scope)[0] is Match.FULL for route in routes)


def allowed(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """The methods of all routes for the path of a request, as `Allow` names them."""
    found: set[str] = set()
    for route in routes:
        if route.matches(scope)[0] is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return ", ".join(sorted(found))
