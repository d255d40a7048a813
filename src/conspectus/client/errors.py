"""Convert problem documents of a server to the errors that an embedded engine raises."""

import inspect
from collections.abc import Iterator, Mapping
from functools import cache

from conspectus.errors import ChatError, ConspectusError

STANDARD = frozenset({"type", "title", "status", "detail", "instance", "code"})
"""Members of every problem document; all others are attributes of the error."""
RENAMED = "upstream_"
"""Prefix of attributes whose name has another meaning in a problem document."""

MODEL = "the server's chat model"
MODEL_FACTS = ("status", "retry_after")
"""Attributes of errors of the chat model that a server does not send."""


def error_of(problem: Mapping[str, object]) -> ConspectusError:
    """Return the error of a problem document, with its message and attributes.

    If attributes of the class are missing, the nearest base class without missing attributes is used.
    """
    detail = str(problem.get("detail") or problem.get("title") or "the server gave no reason")
    facts = {
        name.removeprefix(RENAMED): tuple(value) if isinstance(value, list) else value
        for name, value in problem.items()
        if name not in STANDARD
    }
    named = _by_code().get(str(problem.get("code")), ConspectusError)
    if issubclass(named, ChatError):
        facts = {"provider": MODEL, "reason": detail, **dict.fromkeys(MODEL_FACTS), **facts}
    complete = (
        each for each in named.__mro__ if issubclass(each, ConspectusError) and _needed(each) <= facts.keys()
    )
    kind = next(complete)
    error = kind.__new__(kind)
    Exception.__init__(error, detail)
    vars(error).update(facts)
    return error


@cache
def _by_code() -> dict[str, type[ConspectusError]]:
    return {kind.code: kind for kind in _kinds(ConspectusError) if "code" in vars(kind)}


def _kinds(kind: type[ConspectusError]) -> Iterator[type[ConspectusError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _kinds(inner)


def _needed(kind: type[ConspectusError]) -> set[str]:
    """Return the attributes that the constructor requires."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    plain = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    return {each.name for each in parameters if each.kind in plain and each.default is each.empty}
