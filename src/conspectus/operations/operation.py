"""What an operation is: a method of a service, and where it stands on HTTP."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cached_property
from types import GenericAlias, NoneType
from typing import Any, Final, Literal, cast, get_args

from conspectus.engine.any_engine import AnyEngine
from conspectus.model.checks import hints
from conspectus.model.memory import Scope
from conspectus.model.query import Budget, Query

Verb = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Location = Literal["path", "query", "body", "header"]
REQUIRED: Final = inspect.Parameter.empty
OMITTED: Final = object()
"""The default of a parameter that is handed on only where it is given."""
QUERY: Final = str | Query
"""Of a query, a request has the text, and the other fields beside it as options of the method."""
IF_MATCH: Final = "if_match"
"""The parameter of a tagged operation that is the header If-Match."""
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
    owner: str = ""
    """The class that it is a field of."""
    is_spread: bool = False
    """Whether a request has its fields instead."""
    apart: Mapping[str, Location] = field(default_factory=dict)
    """Where fields stand that stand elsewhere."""

    @cached_property
    def takes_none(self) -> bool:
        """Whether None stands for itself and not for the default."""
        return self.default is REQUIRED or NoneType in get_args(self.hint)

    @property
    def leaves(self) -> Sequence["Parameter"]:
        """What a request has for it: the fields of a dataclass, those of a scope in it among them.

        In the query, those of every dataclass in it.
        """
        if not self.is_spread:
            return [self]
        owner = record_of(self.hint)
        known = hints(owner)
        named = [
            Parameter(
                member_of(owner, each.name),
                known[each.name],
                default_of(each),
                self.apart.get(each.name, self.location),
                owner.__name__,
                is_spread=known[each.name] is Scope
                or (self.location == "query" and is_dataclass(known[each.name])),
            )
            for each in fields(owner)
        ]
        return [leaf for each in named for leaf in each.leaves]


@dataclass(frozen=True)
class Operation:
    """A method of a service at a path.

    Parameters that the path names stand there. Those in `query` are in the query; the others do in a GET
    or DELETE, and in the body otherwise; those in `local` do not travel. Of a scope, of a dataclass in the
    query and of the dataclass `spread`, a request has the fields, each where its name stands. `reads` says
    that a POST changes nothing, `unhurried` that it may take longer than the time limit of requests, `secret`
    that its answer is given once and never stored, `asks_model` that it waits for a chat model. An answer
    that is no object is the member `wrapped` of one. `id` is the operation's id in the OpenAPI document,
    where that is not the method's name. With `tagged`, a GET answers with an ETag, and a PATCH takes that of
    the GET at its path as If-Match. With the status 202 the answer is a job, whose address is in `Location`.
    `problems` are statuses that not every operation answers with. With `as_lines`, the body of a POST or the
    answer to a GET may be JSON lines, for which there is another route. `listed` is a list of which the
    method takes a single element too, with the type of these. Elements that may have a key are there twice
    where they are sent twice without one.
    `**` stands for fields of the dataclass `fields_of`, whose defaults and limits hold, but for those in
    `defaults`; what has none, or `OMITTED`, is handed on only where it is given.
    """

    method: Callable[..., Any]
    verb: Verb
    path: str
    query: Sequence[str] = ()
    reads: bool = False
    unhurried: bool = False
    status: int = 200
    secret: bool = False
    asks_model: bool = False
    wrapped: str = ""
    id: str = ""
    tagged: bool = False
    local: Sequence[str] = ()
    spread: str = ""
    problems: Sequence[int] = ()
    as_lines: bool = False
    listed: Mapping[str, Any] = field(default_factory=dict)
    fields_of: Any = None
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name of the method with its class."""
        return self.method.__qualname__

    @property
    def name(self) -> str:
        """The operation's id in the OpenAPI document."""
        return self.id or self.method.__name__

    @property
    def keyed(self) -> Sequence[str]:
        """The lists whose elements may have a key."""
        return [name for name, kind in self.listed.items() if is_dataclass(kind)]

    def of(self, engine: AnyEngine) -> Callable[..., Any]:
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
            Parameter(
                name,
                hint,
                default,
                self._location(name),
                is_spread=self._is_spread(name, hint),
                apart=self._apart,
            )
            for each in inspect.signature(self.method).parameters.values()
            for name, hint, default in self._named(each)
            if name not in apart
        ]

    def _named(self, parameter: inspect.Parameter) -> Iterable[tuple[str, Any, Any]]:
        """Name, type and default of a parameter, or of each that `**` stands for."""
        hint = self._hint(parameter.name)
        if parameter.kind is not parameter.VAR_KEYWORD:
            return [(parameter.name, str if hint == QUERY else hint, parameter.default)]
        given = hints(get_args(hint)[0])
        usual = {each.name: default_of(each) for each in fields(self.fields_of)} if self.fields_of else {}
        usual |= self.defaults
        return [(name, each, usual.get(name, OMITTED)) for name, each in given.items()]

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        return hints(inspect.unwrap(self.method))

    def _hint(self, name: str) -> Any:
        return GenericAlias(tuple, (self.listed[name], ...)) if name in self.listed else self._hints.get(name)

    def _is_spread(self, name: str, hint: Any) -> bool:
        in_query = is_dataclass(hint) and self._location(name) == "query"
        return in_query or hint is Scope or name == self.spread

    @cached_property
    def _apart(self) -> Mapping[str, Location]:
        named: dict[str, Location] = dict.fromkeys(self.query, "query")
        return {**named, **dict.fromkeys(re.findall(r"\{(\w+)", self.path), "path")}

    def _location(self, name: str) -> Location:
        if self.tagged and name == IF_MATCH:
            return "header"
        return self._apart.get(name, "query" if self.verb in {"GET", "DELETE"} else "body")


def record_of(hint: Any) -> Any:
    """The dataclass that a type is, or has among others."""
    return next(each for each in (hint, *get_args(hint)) if is_dataclass(each))


def member_of(owner: Any, field: str) -> str:
    """What a request calls a field of a dataclass whose fields it has beside others."""
    return "budget_query" if (owner, field) == (Budget, "query") else field


def default_of(field: Field[Any]) -> Any:
    """The default of a field of a dataclass, or `REQUIRED`."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING else field.default
