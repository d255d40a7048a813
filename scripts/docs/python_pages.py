"""The reference of Python: public names, the methods of services, types, and what adapts other programs."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from types import GenericAlias, ModuleType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from scripts.docs.markdown import code, contents, page, prose, table

import conspectus
from conspectus.engine import Engine
from conspectus.errors import MissingExtra
from conspectus.model.annotations import NO_EXAMPLE, Range, annotated_hints, declaration_of
from conspectus.model.checks import hints
from conspectus.web.examples import Examples

FOLDER: Final = "reference/python"
UNKNOWN: Final = (PydanticSchemaGenerationError, PydanticUserError, ValueError, KeyError, RecursionError)
"""Errors of types of which no value can be made."""
ADAPTERS: Final = ("facades", "integrations", "testing")


def services() -> dict[str, type]:
    """The services of an engine by their attributes."""
    found = {}
    for name, each in vars(Engine).items():
        if isinstance(each, cached_property) and not name.startswith("_"):
            found[name] = get_type_hints(each.func, _names_of_services())["return"]
    return found


def _names_of_services() -> dict[str, Any]:
    """What annotations of the engine name that is imported for type checks alone."""
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(conspectus.engine.__path__):
        found.update(vars(importlib.import_module(f"conspectus.engine.{info.name}")))
    return found


def methods(kind: type) -> dict[str, Any]:
    """The public methods of a class in their order, those of its bases among them."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        found.update({name: each for name, each in vars(base).items() if not name.startswith("_")})
    routines = {name: getattr(kind, name) for name, each in found.items() if inspect.isroutine(each)}
    return {name: each for name, each in routines.items() if callable(each)}


def public(module: ModuleType) -> dict[str, Any]:
    """The public classes and functions that a module defines."""
    return {
        name: each
        for name, each in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(each) or inspect.isfunction(each))
        and each.__module__ == module.__name__
    }


def modules(package: str) -> list[ModuleType]:
    """The modules of a package, without those whose extra is not installed here."""
    documented = []
    root = importlib.import_module(f"conspectus.{package}")
    # A package that cannot be imported raises again below, unless it is for want of its extra.
    infos = pkgutil.walk_packages(root.__path__, f"{root.__name__}.", onerror=lambda _name: None)
    for name in (root.__name__, *sorted(info.name for info in infos)):
        with suppress(ImportError, MissingExtra):
            documented.append(importlib.import_module(name))
    return documented


def python_pages() -> dict[str, str]:
    """A page for each service, and for the names and types that they share."""
    pages = {f"{FOLDER}/{name}.md": _service(name, kind) for name, kind in services().items()}
    names = ((name, getattr(conspectus, name)) for name in sorted(conspectus.__all__))
    pages[f"{FOLDER}/names.md"] = page(
        "Public names", "What `import conspectus` has.", *(_thing(name, each) for name, each in names)
    )
    for package, title in (("model", "Types"), *((each, each.title()) for each in ADAPTERS)):
        parts = [part for module in modules(package) for part in _module(module)]
        pages[f"{FOLDER}/{package}.md"] = page(title, *parts)
    rows = (
        (f"[`engine.{name}`]({name}.md)", prose(inspect.getdoc(vars(Engine)[name]))) for name in services()
    )
    pages[f"{FOLDER}/index.md"] = page(
        "Python",
        "`conspectus.open` gives an engine on a data directory, and `conspectus.connect` one on a server."
        " Both have the same services. With `async with`, methods are awaited;"
        " with `with`, they block and take no `await`.",
        table(("service", "what it has"), rows),
        contents(["names", *services(), "model", *ADAPTERS]),
    )
    return pages


def _service(name: str, kind: type) -> str:
    parts = [prose(inspect.getdoc(kind))]
    for method, function in methods(kind).items():
        call = f"engine.{name}.{method}"
        parts += [f"## {method}", code("python", _signature(call, function)), prose(inspect.getdoc(function))]
        parts.append(_declared("parameter", function))
        parts.append(f"Example:\n\n{code('python', _example(call, function))}")
    return page(f"engine.{name}", *parts)


def _module(module: ModuleType) -> Iterator[str]:
    found = public(module)
    if found:
        yield f"## {module.__name__}"
        yield prose(inspect.getdoc(module))
        yield from (_thing(name, each, "###") for name, each in found.items())


def _thing(name: str, each: Any, level: str = "##") -> str:
    """A class with its fields and methods, a function, or another value."""
    parts = [f"{level} {name}"]
    if inspect.isclass(each):
        fields_table = _declared("field", each) if is_dataclass(each) else ""
        parts += [_made(name, each), prose(inspect.getdoc(each)), fields_table, _members(each)]
    elif callable(each):
        parts += [code("python", _signature(name, each)), prose(inspect.getdoc(each))]
    else:
        parts.append(f"`{_plain(str(each))}`")
    return "\n\n".join(filter(None, parts))


def _made(name: str, kind: type) -> str:
    """How a class is called; one without a signature of its own is not."""
    try:
        return "" if kind is conspectus.Settings else code("python", _signature(name, kind))
    except ValueError:
        return ""


def _members(kind: type) -> str:
    """The methods of a class, each with its first line."""
    rows = []
    for name, each in methods(kind).items():
        if (getattr(each, "__module__", None) or "").startswith("conspectus"):
            first = (inspect.getdoc(each) or "").partition("\n")[0]
            rows.append((f"`{_signature(name, each, wide=10_000)}`", prose(first)))
    return table(("method", "what it does"), rows)


def _declared(what: str, owner: Any) -> str:
    """The parameters or fields whose annotations have help, with the bounds of numbers."""
    try:
        declarations = {name: declaration_of(hint) for name, hint in annotated_hints(owner).items()}
    except NameError:
        return ""
    rows = (
        (f"`{name}`", prose(each.help), _range(each.range))
        for name, each in declarations.items()
        if each.help
    )
    return table((what, "meaning", "range"), rows)


def _range(bounds: Range | None) -> str:
    if bounds is None:
        return ""
    lowest = f"above {bounds.lowest:g}" if bounds.above else f"{bounds.lowest:g}"
    highest = f"`{bounds.setting}`" if bounds.setting else _number(bounds.highest)
    return f"{lowest} to {highest}" if highest else f"{lowest} or more"


def _number(highest: object) -> str:
    return f"{highest:,}" if isinstance(highest, int | float) else ""


def _signature(name: str, function: Any, wide: int = 100) -> str:
    """A call with the types of its parameters, one a line where it is long."""
    found = inspect.signature(function)
    types = _types(function)
    named = [
        each.replace(annotation=types.get(each.name, each.annotation))
        for each in found.parameters.values()
        if each.name != "self"
    ]
    given, kinds = [str(each) for each in named], [each.kind for each in named]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        given.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    answer = types.get("return", found.return_annotation)
    after = "" if answer is inspect.Signature.empty else f" -> {inspect.formatannotation(answer)}"
    before = "await " if inspect.iscoroutinefunction(function) and "." in name else ""
    line = f"{before}{name}({_plain(', '.join(given))}){_plain(after)}"
    if len(line) <= wide:
        return line
    inside = "".join(f"    {_plain(each)},\n" for each in given)
    return f"{before}{name}(\n{inside}){_plain(after)}"


def _types(function: Any) -> dict[str, Any]:
    """The types of parameters, without what is declared about them."""
    try:
        return hints(function)
    except (NameError, TypeError):
        return {}


def _plain(text: str) -> str:
    """A signature without the modules of its types."""
    text = re.sub(r"<(?:class '|function |object )?([\w.]+)[^>]*>", r"\1", text.replace("NoneType", "None"))
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text).replace("'", "")


def _example(call: str, function: Any) -> str:
    """A call with the arguments that are required; one that only another call gives is named."""
    annotated, types = get_type_hints(function, include_extras=True), get_type_hints(function)
    needed = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.default is inspect.Parameter.empty
        and each.name != "self"
        and each.kind not in {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    ]
    given = [(each, _argument(annotated[each.name], types[each.name], each.name)) for each in needed]
    named = [text if each.kind is not each.KEYWORD_ONLY else f"{each.name}={text}" for each, text in given]
    before = "await " if inspect.iscoroutinefunction(function) else ""
    return f"{before}{call}({', '.join(named)})"


def _argument(annotation: Any, hint: Any, name: str) -> str:
    """The example that is declared, or a value of the type."""
    example = declaration_of(annotation).example
    try:
        return _literal(_value(hint) if example is NO_EXAMPLE else example)
    except UNKNOWN:
        return name


def _value(hint: Any) -> Any:
    """A value of a type, from the examples of its fields."""
    adapter = TypeAdapter(_listed(hint))
    schema = adapter.json_schema(ref_template="#/components/schemas/{model}")
    return adapter.validate_python(Examples(schema.get("$defs", {})).request(schema))


def _listed(hint: Any) -> Any:
    """A type with lists in place of what is only iterated."""
    origin, members = get_origin(hint), get_args(hint)
    if origin is Iterable:
        return GenericAlias(list, members)
    return reduce(or_, map(_listed, members)) if origin in {Union, UnionType} else hint


def _literal(value: Any) -> str:
    """A value as it is written in a program; fields with their default are left out."""
    if isinstance(value, datetime):
        return f'datetime.fromisoformat("{value.isoformat()}")'
    if isinstance(value, Path):
        return repr(str(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if not is_dataclass(value):
        return repr(value)
    told = (
        f"{each.name}={_literal(getattr(value, each.name))}"
        for each in fields(value)
        if each.default is MISSING or getattr(value, each.name) != each.default
        if each.default_factory is MISSING or getattr(value, each.name) != each.default_factory()
    )
    return f"{type(value).__name__}({', '.join(told)})"
