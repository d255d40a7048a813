"""An operation: a method of a service, with its place on HTTP."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import cached_property
from types import GenericAlias, NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast, get_args

from conspectus.deferred import dataclass
from conspectus.model.annotations import Declaration, annotated_hints, base_of, declaration_of
from conspectus.model.checks import hints
from conspectus.model.memory import Scope, ScopeNames
from conspectus.model.query import Budget, Query, WindowForm

if TYPE_CHECKING:
    from conspectus.engine.any_engine import AnyEngine

Verb = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Location = Literal["path", "query", "body", "header"]
ModelUse = Literal["offered", "named", "never"]
"""Whether models are offered an operation: always, only if a setting names it, or never."""
REQUIRED: Final = inspect.Parameter.empty
OMITTED: Final = object()
"""The default of a parameter that is passed on only if it is given."""
QUERY: Final = str | Query
"""A query object is sent as its text, with the other fields beside it as options of the method."""
IF_MATCH: Final = "if_match"
"""The parameter of a `tagged` operation that is sent as the header If-Match."""
SERVICES: Final = {
    "AccessService": "access",
    "AlertService": "alerts",
    "AnswerService": "answers",
    "ChannelService": "channels",
    "CollectionService": "collections",
    "ConnectionService": "connections",
    "DocumentService": "documents",
    "EventService": "events",
    "ExperimentService": "experiments",
    "FileService": "files",
    "GraphService": "graph",
    "IdentityService": "identities",
    "JobService": "jobs",
    "KeyService": "keys",
    "LoginService": "logins",
    "MaintenanceService": "maintenance",
    "MemoryService": "memory",
    "PeopleService": "people",
    "RetentionService": "retention",
    "SearchService": "search",
    "StreamService": "streams",
    "SummaryService": "summaries",
}
"""The engine's attribute for each class of services with operations."""
LOCAL: Final = frozenset({"self", "progress"})
"""Parameters that are not sent."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method: its type, its default or `REQUIRED`, and its place in a request."""

    name: str
    hint: Any
    default: Any
    location: Location
    annotation: Any
    """The type with what its annotation declares."""
    owner: str = ""
    """The dataclass of which it is a field."""
    is_spread: bool = False
    """Whether a request has its fields instead."""
    apart: Mapping[str, Location] = field(default_factory=dict)
    """The place of fields that are elsewhere."""

    @cached_property
    def declaration(self) -> Declaration:
        """The help, the bounds and the example that its annotation declares."""
        return declaration_of(self.annotation)

    @cached_property
    def takes_none(self) -> bool:
        """Whether None is a value, and not the default."""
        return self.default is REQUIRED or NoneType in get_args(self.hint)

    @property
    def leaves(self) -> Sequence["Parameter"]:
        """Return what a request has for it: the fields of a dataclass, including those of a nested scope.

        In the query string, nested dataclasses are flattened too. A field that is named like the parameter,
        as `max_tokens` of a budget, has its default.
        """
        if not self.is_spread:
            return [self]
        owner = record_of(self.hint)
        types, annotated = hints(owner), annotated_hints(owner)
        named = [
            Parameter(
                member_of(owner, field.name),
                types[field.name],
                self.default if field.name == self.name else default_of(field),
                self.apart.get(field.name, self.location),
                annotated[field.name],
                owner.__name__,
                is_spread=types[field.name] is Scope
                or (self.location == "query" and is_dataclass(types[field.name])),
            )
            for field in fields(owner)
        ]
        return [leaf for parameter in named for leaf in parameter.leaves]


@dataclass(frozen=True)
class Operation:
    """A method of a service at a path.

    Parameters named in the path are path parameters. Those in `query` are query parameters. All others are in
    the query string of a GET or DELETE, and in the body of other requests; those in `local` are not sent. The
    fields of a scope, of a dataclass in the query and of the dataclass `spread` are sent individually.

    Args:
        reads: a POST that changes nothing.
        unhurried: the operation may exceed the time limit of requests.
        status: with 202, the response is a job, whose address is in `Location`.
        secret: the response is given once and never stored.
        asks_model: the operation waits for a chat model.
        audited: the operation is noted in the audit log, with its name as the action.
        for_models: whether models are offered it over MCP. Quoted text may lead a model, so what deletes,
            costs, changes settings or speaks for a person is offered only if a setting names it; what gives
            rights, reviews or names an address for the server to contact, never.
        wrapped: the member of the response's object that contains a result which is no object.
        id: the operation id in the OpenAPI document, if it is not the method's name.
        tagged: a GET returns an ETag, and a PATCH at its path takes it as If-Match.
        problems: statuses that not every operation returns.
        as_lines: the body of a POST or the response of a GET may be JSON Lines, by another route.
        listed: lists of which the method also takes a single element, with the type of the elements. Elements
            that may have a key are written twice if they are sent twice without one.
        fields_of: the dataclass whose fields `**` stands for, with its defaults and limits.
        defaults: other defaults; a field with no default, or `OMITTED`, is passed on only if it is given.
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
    audited: bool = False
    for_models: ModelUse = "offered"
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
        """The operation id in the OpenAPI document."""
        return self.id or self.method.__name__

    @property
    def keyed(self) -> Sequence[str]:
        """The lists whose elements may have a key."""
        return [name for name, kind in self.listed.items() if is_dataclass(kind)]

    def of(self, engine: "AnyEngine") -> Callable[..., Any]:
        """Return the method of an engine's service."""
        service = getattr(engine, SERVICES[self.key.partition(".")[0]])
        return cast(Callable[..., Any], getattr(service, self.method.__name__))

    @property
    def summary(self) -> str:
        """The first paragraph of the method's docstring, without the errors that it raises."""
        first = (inspect.getdoc(self.method) or "").split("\n\n")[0]
        return " ".join(first.split("Raises ")[0].split())

    @cached_property
    def returns(self) -> Any:
        """The return type."""
        return self._hints["return"]

    @property
    def returned(self) -> Declaration:
        """The help and the example that the annotation of the result declares."""
        return declaration_of(self._annotations["return"])

    @cached_property
    def parameters(self) -> Sequence[Parameter]:
        """The parameters that are sent, in the order of the method."""
        apart = LOCAL.union(self.local)
        return [
            Parameter(
                name,
                hint,
                default,
                self._location(name),
                annotation,
                is_spread=self._is_spread(name, hint),
                apart=self._apart,
            )
            for parameter in inspect.signature(self.method).parameters.values()
            for name, hint, annotation, default in self._expand_parameter(parameter)
            if name not in apart
        ]

    def _expand_parameter(self, parameter: inspect.Parameter) -> Iterable[tuple[str, Any, Any, Any]]:
        """Yield name, type, annotation and default of a parameter, or of each field that `**` stands for.

        For a field of a dataclass, its declaration counts. The names of a scope stand for its fields.
        """
        name, hint = parameter.name, self._hint(parameter.name)
        owners = (WindowForm, *((self.fields_of,) if self.fields_of else ()))
        if parameter.kind is not parameter.VAR_KEYWORD:
            fields_annotated = annotated_hints(self.fields_of) if self.fields_of else {}
            annotation = fields_annotated.get(name, self._annotation(name))
            return [(name, str if hint == QUERY else hint, annotation, parameter.default)]
        options = get_args(hint)[0]
        types, annotated = hints(options), annotated_hints(options)
        for owner in owners:
            types |= {name: hint for name, hint in hints(owner).items() if name in types}
            annotated |= {
                name: annotation for name, annotation in annotated_hints(owner).items() if name in types
            }
        usual = {field.name: default_of(field) for owner in owners for field in fields(owner)}
        usual |= self.defaults
        return [
            (name, hint, annotated[name], usual.get(name, OMITTED))
            for name, hint in types.items()
            if name not in ScopeNames.__annotations__
        ]

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        return hints(inspect.unwrap(self.method))

    @cached_property
    def _annotations(self) -> Mapping[str, Any]:
        return annotated_hints(inspect.unwrap(self.method))

    def _hint(self, name: str) -> Any:
        """Return the type of a parameter."""
        is_listed = name in self.listed
        return GenericAlias(tuple, (base_of(self.listed[name]), ...)) if is_listed else self._hints.get(name)

    def _annotation(self, name: str) -> Any:
        """Return the annotation of a parameter, with the type of a list that may be a single element."""
        annotation = self._annotations.get(name)
        if name not in self.listed:
            return annotation
        return Annotated[(GenericAlias(tuple, (self.listed[name], ...)), *get_args(annotation)[1:])]

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
    """Return the dataclass of a type, or among the members of a union."""
    return next(member for member in (hint, *get_args(hint)) if is_dataclass(member))


def member_of(owner: Any, field: str) -> str:
    """Return the name in a request of a field of a dataclass whose fields are sent."""
    return "budget_query" if (owner, field) == (Budget, "query") else field


def default_of(field: Field[Any]) -> Any:
    """Return the default of a field of a dataclass, or `REQUIRED`."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING else field.default
