"""Commands that call one operation, as tables declare them; see `derived`."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from rich.console import RenderableType

from conspectus.cli.session import Opening, Session
from conspectus.deferred import dataclass

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A command that calls one operation and prints its result.

    Required parameters are arguments, the others are options; the collection is that of the session. Names,
    types, help, bounds and defaults are those of the operation.

    Args:
        operation: module and method, such as `people:PeopleService.whoami`; of a method that is no operation,
            the module of its service, such as `engine.jobs:JobService.get`.
        picture: the readable form of the result: a function, or a text with `{result}` and the arguments.
        arguments: the arguments with their names in the usage, if they are not the required parameters.
        only: the other parameters that are offered; None: all.
        element: a list of records, of which the command has the fields of a single one.
        service: the service, if it is not that of the engine.
        options: other names of options.
        defaults: other defaults.
        fixed: parameters that are not offered, with their arguments.
        extra: a dataclass of options that are no parameters.
        prepare: called before the operation, and may ask for confirmation or change the arguments.
        show: prints the result in place of `picture`.
        document: the members of the JSON document with their arguments, if it is not the result.
        limit: the default of an option for the length of a result that is a whole list; 0: none.
        nothing: the remark for an empty result, which has an exit code of its own; None: none.
        any_collection: without --collection, those of all collections.
        opening: differences from the usual session.
    """

    operation: str
    help: str
    picture: str | Callable[[Any], RenderableType] = ""
    arguments: Mapping[str, str] | None = None
    only: str | None = None
    element: str = ""
    service: Callable[[Session], Any] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    extra: type[Any] | None = None
    prepare: Callable[[Session, Arguments], None] | None = None
    show: Callable[[Session, Any, Arguments], None] | None = None
    document: Mapping[str, str] | None = None
    limit: int = 0
    nothing: str | None = None
    any_collection: bool = False
    opening: Opening = field(default_factory=Opening)
