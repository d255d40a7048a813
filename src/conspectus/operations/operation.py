"""What an operation is: a method of a service, and where it stands on HTTP."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, cast, get_args

from conspectus.engine import Engine
from conspectus.model.checks import hints

Verb = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Location = Literal["path", "query", "body"]
REQUIRED: Final = inspect.Parameter.empty
SERVICES: Final = {
    "AlertService": "alerts",
    "ChannelService": "channels",
    "CollectionService": "collections",
    "ConnectionService": "connections",
    "DocumentService": "documents",
    "EventService": "events",
    "GraphService": "graph",
    "JobService": "jobs",
    "MaintenanceService": "maintenance",
    "MemoryService": "memory",
    "PeopleService": "people",
    "RetentionService": "retention",
    "SearchService": "search",
    "StreamService": "streams",
    "SummaryService": "summaries",
}
"""The engine's attribute for each class of services that has operations."""
LOCAL: Final = frozenset({"self", "progress"})
"""Parameters that do not travel."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method: its type, its default or `REQUIRED`, and where a request has it."""

    name: str
    hint: Any
    default: Any
    location: Location


@dataclass(frozen=True)
class Operation:
    """A method of a service at a path.

    Parameters that the path names stand there. Those in `query` stand in the query; the others do in a GET
    or DELETE, and in the body otherwise; those in `local` do not travel. The fields of the dataclass `spread`
    are themselves members of the body. `reads` says that a POST changes
    nothing, `unhurried` that it may take longer than the time limit of requests, `secret` that its answer is
    given once and never stored. An answer that is no object is the member `wrapped` of one. `id` is the
    operation's id in the OpenAPI document, where that is not the method's name. With `tagged`, a GET answers
    with an ETag, and a PATCH takes that of the GET at its path as If-Match. With the status 202 the answer is
    a job, whose address is in `Location`. `problems` are statuses that not every operation answers with.
    """

    method: Callable[..., Any]
    verb: Verb
    path: str
    query: Sequence[str] = ()
    reads: bool = False
    unhurried: bool = False
    status: int = 200
    secret: bool = False
    wrapped: str = ""
    id: str = ""
    tagged: bool = False
    local: Sequence[str] = ()
    spread: str = ""
    problems: Sequence[int] = ()

    @property
    def key(self) -> str:
        """The name of the method with its class."""
        return self.method.__qualname__

    @property
    def name(self) -> str:
        """The operation's id in the OpenAPI document."""
        return self.id or self.method.__name__

    def of(self, engine: Engine) -> Callable[..., Any]:
        """The method of an engine's service."""
        service = getattr(engine, SERVICES[self.key.partition(".")[0]])
        return cast(Callable[..., Any], getattr(service, self.method.__name__))

    @property
    def summary(self) -> str:
        """The first paragraph of the method's docstring, but for the errors that it raises."""
        first = (inspect.getdoc(self.method) or "").split("\n\n")[0]
        return " ".join(first.split("Raises ")[0].split())

    @cached_property
    def returns(self) -> Any:
        """The type of the answer."""
        return self._hints["return"]

    @cached_property
    def parameters(self) -> Sequence[Parameter]:
        """The parameters that travel, in the order of the method."""
        apart = LOCAL.union(self.local)
        return [
            Parameter(name, hint, default, self._location(name))
            for each in inspect.signature(self.method).parameters.values()
            for name, hint, default in self._named(each)
            if name not in apart
        ]

    def _named(self, parameter: inspect.Parameter) -> Iterable[tuple[str, Any, Any]]:
        """Name, type and default of a parameter, or of each that `**` stands for; those default to None."""
        hint = self._hints.get(parameter.name)
        if parameter.kind is not parameter.VAR_KEYWORD:
            return [(parameter.name, hint, parameter.default)]
        return [(name, each, None) for name, each in hints(get_args(hint)[0]).items()]

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        return hints(inspect.unwrap(self.method))

    def _location(self, name: str) -> Location:
        if name in re.findall(r"\{(\w+)", self.path):
            return "path"
        return "query" if name in self.query or self.verb in {"GET", "DELETE"} else "body"
