"""Constructors whose signature names each option, although a TypedDict declares them once."""

from collections.abc import Callable, Mapping
from inspect import Parameter, getdoc, signature
from typing import Any, TypeVar, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])


def with_named_options(options: type, defaults: Mapping[str, Any], *extended: type) -> Callable[[F], F]:
    """Give a function with `**options` a signature and a help text that name each key of a TypedDict.

    The default of an option without one is None. The help is that of the TypedDict and of those it extends.
    """

    def name_options(function: F) -> F:
        plain = signature(function)
        positional = [
            parameter for parameter in plain.parameters.values() if parameter.kind != Parameter.VAR_KEYWORD
        ]
        named = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=annotation)
            for name, annotation in get_type_hints(options).items()
        ]
        vars(function)["__signature__"] = plain.replace(parameters=[*positional, *named])
        function.__doc__ = "\n\n".join(filter(None, map(getdoc, (options, *extended))))
        return function

    return name_options
