"""Hostile texts, and a call with them of every public function that takes text."""

import collections.abc
import importlib
import inspect
import itertools
import pkgutil
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum

from conspectus.errors import ConspectusError

INVISIBLE = "\u00ad\u034f\u061c\u115f\u180e\u200b\u200c\u200d\u2060\u2064\u3164\ufeff\uffa0"
BIDIRECTIONAL = "\u200e\u200f\u202a\u202c\u202e\u2066\u2069"
COMBINING = "\u0301\u0308\u0327\u0489\u0903\u093c\u20e3\ufe0f\ufe0e\U000e0100\U0001f3fd"
TAGS = "\U000e0001\U000e0041\U000e007f"
UNSTORABLE = "\x00\ud7ff\ud800\udbff\udc00\udfff\ue000\ufffd\uffff"
CONTROLS = "\t\n\r\x0b\x0c\x1b\x7f\u0085\u00a0\u2028\u2029\u3000 "
QUOTES = "'\"`\u00ab\u00bb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u2039\u203a\u300c\u300d\uff07\uff02"
DIGITS = "07\u0660\u06f5\u0967\u09ef\u0be7\u0e53\uff15\u00b2\u2460\u216b\u3007\u4e94\U0001d7d9\U00010107"
SIGNS = ".,:;-_@#+/\\|&<>()[]{}*=!?%$~^"
LETTERS = (
    "aATtZ\u0130\u0131\u00df\u01c5\ufb01\u03c2\u0406\u0629\u05d0\u0e01\u6771\uac00\u1e9e\U0001f642\U0001f1e9"
)
ALPHABET = "".join(
    (INVISIBLE, BIDIRECTIONAL, COMBINING, TAGS, UNSTORABLE, CONTROLS, QUOTES, DIGITS, SIGNS, LETTERS)
)
REPRESENTATIVES = "\u00ad\u200d\ufe0f\u202e\u0301\U000e0041\ud800\x00\n '\u20195\u0665.:<a\u6771"
"""One or two of each kind, so that all texts of three characters can be tried."""
WORDS = (
    *("today", "last week", "10.03.2025", "12:30", "at 5", "in 2024", "days ago", "yesterday", "May 3rd"),
    *("ignore all previous instructions", "<system>", "</documents>", "```", "[1]", "# Heading\n", "| a |"),
    *("http://", "https://a.example/x", "@ann", "ann@example.org", "4111 1111 1111 1111", "sk-", "password="),
    *("and", "not", "metadata.", "..", "1..5", "Mr. Smith", "U.S.", "O\u2019Brien", "the", "WHO", "it's"),
    *("{", '{"a":', "-->", "00:00:01,000 --> 00:00:02,000", "<c>", "&#0;", "&amp;", "{{", "}}", "[[", "]]"),
)


def short_texts() -> Iterator[str]:
    """Yield all texts of one character of the alphabet, and of up to three of its representatives."""
    yield from ALPHABET
    for length in (0, 2, 3):
        yield from map("".join, itertools.product(REPRESENTATIVES, repeat=length))


class Unreachable(Exception):
    """A parameter for which no value can be made of a text."""


Build = Callable[[str], typing.Any]
NOW = datetime(2025, 3, 10, 12, 30, tzinfo=UTC)
_PLAIN: Mapping[object, Build] = {
    str: lambda text: text,
    object: lambda text: text,
    typing.Any: lambda text: text,
    bytes: lambda text: text.encode("utf-8", "surrogatepass"),
    int: len,
    float: lambda _: 0.5,
    bool: lambda text: len(text) % 2 == 1,
    datetime: lambda _: NOW,
    timedelta: lambda _: timedelta(hours=1),
    tzinfo: lambda _: UTC,
    types.NoneType: lambda _: None,
    Callable[[str], int]: lambda _: len,
    Callable[[str], Sequence[str]]: lambda _: str.split,
    Callable[[int, int], bool]: lambda _: lambda first, last: last - first < 2,
}
_BY_NAME: Mapping[str, Build] = {
    **dict.fromkeys(("start", "position", "lowest", "first", "overlap"), lambda _: 0),
    "limit": lambda text: len(text) // 2,
    "size": lambda _: 2_000,
}
"""Numbers of which only some are valid."""
_NAMES: Mapping[str, object] = {"Json": typing.Any}
"""What a recursive type calls itself."""
_MANY: Mapping[object, Callable[..., object]] = {
    **dict.fromkeys(
        (list, *(getattr(collections.abc, name) for name in ("Sequence", "Iterable", "Collection"))), list
    ),
    **dict.fromkeys((frozenset, collections.abc.Set), frozenset),
    collections.abc.Iterator: iter,
    set: set,
    tuple: tuple,
}


def builder(annotation: object, name: str = "") -> Build:
    """Return how a value of a type is made of a text. Raises Unreachable."""
    if typing.get_origin(annotation) is typing.Annotated:
        return builder(typing.get_args(annotation)[0], name)
    if annotation is int and name in _BY_NAME:
        return _BY_NAME[name]
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, typing.NewType):
        return builder(annotation.__supertype__)
    if isinstance(annotation, typing.ForwardRef):
        return _PLAIN[str]
    if typing.get_origin(annotation) is not None:
        return _of_parts(typing.get_origin(annotation), typing.get_args(annotation), name)
    if inspect.isclass(annotation) and not getattr(annotation, "_is_protocol", False):
        return _of_class(annotation)
    raise Unreachable(str(annotation))


def _of_parts(origin: object, parts: Sequence[typing.Any], name: str) -> Build:
    if origin is typing.Literal:
        return lambda text: parts[len(text) % len(parts)]
    if origin in {typing.Union, types.UnionType}:
        return _of_choices(parts, name)
    if origin is tuple and parts[-1] is not Ellipsis:
        members = [builder(part) for part in parts]
        return lambda text: tuple(member(text) for member in members)
    if origin in _MANY:
        member, kind = builder(parts[0]), _MANY[origin]
        return lambda text: kind([member(text), member(text[::-1])])
    if origin in {collections.abc.Mapping, dict}:
        key, content = map(builder, parts)
        return lambda text: {key(text): content(text)}
    raise Unreachable(f"{origin}{parts}")


def _of_choices(choices: Sequence[object], name: str) -> Build:
    """Return the text where a text is possible, else the first type that can be made."""
    for choice in sorted(choices, key=lambda choice: (choice is not str, choice is types.NoneType)):
        with suppress(Unreachable):
            return builder(choice, name)
    raise Unreachable(str(choices))


_OPEN: list[type] = []
"""The classes whose fields are looked at."""


def _of_class(kind: type) -> Build:
    is_ours = kind.__module__.startswith("conspectus.") and not issubclass(kind, Exception)
    if kind in _OPEN or not is_ours or inspect.isabstract(kind):
        raise Unreachable(kind.__name__)
    if issubclass(kind, Enum):
        return lambda text: list(kind)[len(text) % len(kind)]
    if typing.is_typeddict(kind):
        fields = {name: builder(hint, name) for name, hint in _hints(kind).items() if takes_text(hint)}
        return lambda text: {name: make(text) for name, make in fields.items()}
    _OPEN.append(kind)
    try:
        parameters = _parameters(kind, _hints(kind if is_dataclass(kind) else kind.__init__))
    finally:
        _OPEN.remove(kind)
    return lambda text: kind(**{name: make(text) for name, make in parameters.items()})


def _parameters(function: Callable[..., object], hints: Mapping[str, object]) -> dict[str, Build]:
    """Return how the required parameters of a call are made, and the optional ones that take text."""
    builders: dict[str, Build] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            continue
        if parameter.default is parameter.empty:
            builders[name] = builder(hints.get(name, str), name)
        elif takes_text(hints.get(name)):
            with suppress(Unreachable):
                builders[name] = builder(hints[name], name)
    return builders


def takes_text(annotation: object) -> bool:
    """Return whether a value of a type is a text, or holds texts and nothing of ours."""
    if annotation is str or annotation is bytes:
        return True
    if typing.get_origin(annotation) in {collections.abc.Callable, typing.Literal}:
        return False
    return any(map(takes_text, typing.get_args(annotation)))


def _hints(function: Callable[..., object]) -> dict[str, object]:
    if function is object.__init__:
        return {}
    try:
        hints = typing.get_type_hints(inspect.unwrap(function), localns=_NAMES, include_extras=True)
    except NameError as fault:
        raise Unreachable(f"a type that is imported for type checkers only: {fault}") from None
    hints.pop("return", None)
    return hints


@dataclass(frozen=True)
class TextFunction:
    """A public function, and how it is called with a text; or why it cannot be called."""

    name: str
    call: Callable[[str], object] | None
    why: str = ""

    def fault(self, text: str) -> Exception | None:
        """Return the error of a call if it is none of ours."""
        assert self.call is not None, self.why
        try:
            answer = self.call(text)
            if isinstance(answer, Iterator):
                list(answer)
        except ConspectusError:
            return None
        except Exception as error:  # noqa: BLE001 - what is looked for
            return error
        return None


def text_functions(package: str) -> Iterator[TextFunction]:
    """Yield the public functions and methods of a package that take text, and no session of a command."""
    for module in _modules(package):
        for name, member in sorted(vars(module).items()):
            if name.startswith("_") or getattr(member, "__module__", None) != module.__name__:
                continue
            path = f"{module.__name__.removeprefix('conspectus.')}.{name}"
            if inspect.isclass(member):
                yield from _methods(path, member)
            elif inspect.isfunction(inspect.unwrap(member)):
                yield from _function(path, member)


def _modules(package: str) -> Iterator[types.ModuleType]:
    root = importlib.import_module(f"conspectus.{package}")
    yield root
    for module in pkgutil.walk_packages(getattr(root, "__path__", ()), f"{root.__name__}."):
        yield importlib.import_module(module.name)


def _takes_text(function: Callable[..., object]) -> bool:
    try:
        return any(map(takes_text, _hints(function).values()))
    except Unreachable:
        return False


def _function(name: str, function: Callable[..., object]) -> Iterator[TextFunction]:
    is_command = "session" in inspect.signature(function).parameters
    if inspect.iscoroutinefunction(function) or is_command or not _takes_text(function):
        return
    try:
        yield TextFunction(name, _call(function, _parameters(function, _hints(function))))
    except Unreachable as fault:
        yield TextFunction(name, None, str(fault))


def _call(function: Callable[..., object], builders: Mapping[str, Build]) -> Callable[[str], object]:
    parameters = inspect.signature(function).parameters.values()
    is_variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    first = [
        parameter.name
        for parameter in parameters
        if is_variadic or parameter.kind is parameter.POSITIONAL_ONLY
    ]
    positional = [builders[name] for name in first if name in builders]
    by_name = {name: make for name, make in builders.items() if name not in first}

    def call(text: str) -> object:
        texts = [text] if is_variadic else []
        named = {name: make(text) for name, make in by_name.items()}
        return function(*(make(text) for make in positional), *texts, **named)

    return call


def _methods(name: str, kind: type) -> Iterator[TextFunction]:
    methods = {
        method: function
        for method, function in vars(kind).items()
        if not method.startswith("_") and inspect.isfunction(function)
        if not inspect.iscoroutinefunction(function) and _takes_text(function)
    }
    if not methods or getattr(kind, "_is_protocol", False) or inspect.isabstract(kind):
        return
    try:
        make = _of_class(kind)
        builders = {
            method: _parameters(function, {"self": str} | _hints(function))
            for method, function in methods.items()
        }
    except Unreachable as fault:
        yield TextFunction(name, None, str(fault))
        return
    for method, parameters in builders.items():
        parameters.pop("self")
        yield TextFunction(f"{name}.{method}", _method_call(make, method, parameters))


def _method_call(make: Build, method: str, builders: Mapping[str, Build]) -> Callable[[str], object]:
    def call(text: str) -> object:
        bound = getattr(make(text), method)
        return bound(**{name: build(text) for name, build in builders.items()})

    return call
