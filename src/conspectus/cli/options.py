"""Options that several commands share, as dataclasses that are spread over the commands' signatures."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from conspectus.cli.errors import reported
from conspectus.errors import InvalidInput
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import QueryContext
from conspectus.text.times import parse_instant

WHERE_HELP = (
    "Only documents that match: field=value (kind, source, author, role, thread, metadata.KEY, ...), "
    "occurred=START..END, or a JSON filter. May be repeated; all must match."
)
COLLECTION = (
    "Collection. Default: CONSPECTUS_DEFAULT_COLLECTION, else 'default' (tasks: 'tasks', memory: 'memory')."
)


@dataclass(frozen=True, slots=True)
class Common:
    """Where to look, and in which form to answer; may also stand before the command."""

    data: Annotated[
        str | None,
        typer.Option(
            help="Folder of the data, or the postgresql:// URL of a database. "
            "Default: CONSPECTUS_PATH, else ./conspectus-data."
        ),
    ] = None
    collection: Annotated[str | None, typer.Option(help=COLLECTION)] = None
    json: Annotated[bool, typer.Option("--json", help="Answer with one JSON document on stdout.")] = False
    url: Annotated[
        str | None, typer.Option(help="Server to ask instead of a folder. Default: CONSPECTUS_URL.")
    ] = None

    def within(self, outer: object) -> "Common":
        """These options, completed by those that stood before the command."""
        if not isinstance(outer, Common):
            return self
        place = outer if self.data is None and self.url is None else self
        return Common(place.data, self.collection or outer.collection, self.json or outer.json, place.url)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which documents."""

    where: Annotated[list[str], typer.Option(help=WHERE_HELP)] = field(default_factory=list)
    source: Annotated[str | None, typer.Option(help="Only documents of this source (its name or path).")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class Looking(Selection):
    """What may be found."""

    floor: Annotated[
        float | None, typer.Option(help="Leave out what is less similar than this (cosine, 0 to 1).")
    ] = None


@dataclass(frozen=True, slots=True)
class Situated(Looking):
    """What may be found, and where and when the question is asked."""

    channel: Annotated[str | None, typer.Option(help="The channel it is asked in (its name or id).")] = None
    thread: Annotated[str | None, typer.Option(help="The thread of the channel it is asked in.")] = None
    at: Annotated[str | None, typer.Option(help="When it is asked, as an ISO 8601 time. Default: now.")] = (
        None
    )
    profile: Annotated[
        str | None, typer.Option(help="How parts of scores are weighed: default or multiplicative.")
    ] = None

    def situation(self) -> QueryContext | None:
        """None where no option says anything."""
        if (self.channel, self.thread, self.at, self.profile) == (None,) * 4:
            return None
        at = None if self.at is None else parse_instant(self.at)
        return QueryContext(self.channel, self.thread, at, self.profile or QueryContext().profile)


@dataclass(frozen=True, slots=True)
class Connected(Situated):
    """The same, with what names and graphs have to do with it, and as of when it is answered."""

    graph: Annotated[
        bool, typer.Option("--graph", help="Let the names in passages, and graphs, have a say.")
    ] = False
    alpha: Annotated[
        float | None, typer.Option(help="Weight of the graph, 0 to 1, with --graph. Default: 0.5.")
    ] = None
    hops: Annotated[
        int | None, typer.Option(help="How far the graph is walked, with --graph. Default: 2.")
    ] = None
    as_of: Annotated[
        str | None, typer.Option(help="Answer with what was known at this ISO 8601 time. Default: now.")
    ] = None

    def fields(self) -> dict[str, Any]:
        """The parts of a query that are named. Raises InvalidInput."""
        usual = GraphExpansion()
        if not self.graph and (self.alpha, self.hops) != (None, None):
            raise InvalidInput("hops" if self.alpha is None else "alpha", "needs --graph too")
        alpha = usual.alpha if self.alpha is None else self.alpha
        ask = GraphExpansion(alpha, usual.hops if self.hops is None else self.hops) if self.graph else None
        return {"graph": ask, "as_of": None if self.as_of is None else parse_instant(self.as_of)}


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each option of its dataclass parameters as a parameter of its own, as Typer reads it.

    Errors that Conspectus raises on purpose end it with a message and an exit code.
    """
    hints = get_type_hints(command, include_extras=True)
    bundles = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}

    def call(ctx: typer.Context, **given: Any) -> None:
        for name, bundle in bundles.items():
            made: object = bundle(**{each.name: given.pop(each.name) for each in fields(bundle)})
            given[name] = made.within(ctx.obj) if isinstance(made, Common) else made
        with reported(as_json=given["common"].json):
            command(**given)

    parameters = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in bundles:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=kind, annotation=hints[name]))
        else:
            parameters.extend(_options(bundles[name]))
    vars(call).update(__signature__=inspect.Signature(parameters))
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__name__, call.__doc__ = command.__name__, command.__doc__
    return call


def _options(bundle: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(bundle, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=[] if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(bundle)
    ]
