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
from scripts.docs.markdown import format_code, format_contents, format_docstring, format_page, format_table

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


def list_services() -> dict[str, type]:
    """Return the services of an engine by their attributes."""
    kinds = {}
    for name, attribute in vars(Engine).items():
        if isinstance(attribute, cached_property) and not name.startswith("_"):
            kinds[name] = get_type_hints(attribute.func, _import_service_names())["return"]
    return kinds


def _import_service_names() -> dict[str, Any]:
    """Return the names in annotations of the engine that are imported for type checks alone."""
    names: dict[str, Any] = {}
    for info in pkgutil.iter_modules(conspectus.engine.__path__):
        names.update(vars(importlib.import_module(f"conspectus.engine.{info.name}")))
    return names


def list_methods(kind: type) -> dict[str, Any]:
    """Return the public methods of a class in their order, inherited ones included."""
    attributes: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        attributes.update(
            {name: attribute for name, attribute in vars(base).items() if not name.startswith("_")}
        )
    routines = {
        name: getattr(kind, name) for name, attribute in attributes.items() if inspect.isroutine(attribute)
    }
    return {name: attribute for name, attribute in routines.items() if callable(attribute)}


def list_public_members(module: ModuleType) -> dict[str, Any]:
    """Return the public classes and functions that a module defines."""
    return {
        name: member
        for name, member in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(member) or inspect.isfunction(member))
        and member.__module__ == module.__name__
    }


def list_modules(package: str) -> list[ModuleType]:
    """Return the modules of a package, without those whose extra is not installed here."""
    documented = []
    root = importlib.import_module(f"conspectus.{package}")
    # A package that cannot be imported raises again below, unless it is for want of its extra.
    infos = pkgutil.walk_packages(root.__path__, f"{root.__name__}.", onerror=lambda _name: None)
    for name in (root.__name__, *sorted(info.name for info in infos)):
        with suppress(ImportError, MissingExtra):
            documented.append(importlib.import_module(name))
    return documented


def make_python_pages() -> dict[str, str]:
    """Return a page for each service, and for the names and types that they share."""
    pages = {f"{FOLDER}/{name}.md": _describe_service(name, kind) for name, kind in list_services().items()}
    names = ((name, getattr(conspectus, name)) for name in sorted(conspectus.__all__))
    pages[f"{FOLDER}/names.md"] = format_page(
        "Public names",
        "What `import conspectus` has.",
        *(_describe_member(name, member) for name, member in names),
    )
    for package, title in (("model", "Types"), *((adapter, adapter.title()) for adapter in ADAPTERS)):
        parts = [part for module in list_modules(package) for part in _describe_module(module)]
        pages[f"{FOLDER}/{package}.md"] = format_page(title, *parts)
    rows = (
        (f"[`engine.{name}`]({name}.md)", format_docstring(inspect.getdoc(vars(Engine)[name])))
        for name in list_services()
    )
    pages[f"{FOLDER}/index.md"] = format_page(
        "Python",
        "`conspectus.open` gives an engine on a data directory, and `conspectus.connect` one on a server."
        " Both have the same services. With `async with`, methods are awaited;"
        " with `with`, they block and take no `await`.",
        format_table(("service", "what it has"), rows),
        format_contents(["names", *list_services(), "model", *ADAPTERS]),
    )
    return pages


def _describe_service(name: str, kind: type) -> str:
    parts = [format_docstring(inspect.getdoc(kind))]
    for method, function in list_methods(kind).items():
        call = f"engine.{name}.{method}"
        parts += [
            f"## {method}",
            format_code("python", _format_signature(call, function)),
            format_docstring(inspect.getdoc(function)),
        ]
        parts.append(_describe_parameters("parameter", function))
        parts.append(f"Example:\n\n{format_code('python', _make_example_call(call, function))}")
    return format_page(f"engine.{name}", *parts)


def _describe_module(module: ModuleType) -> Iterator[str]:
    members = list_public_members(module)
    if members:
        yield f"## {module.__name__}"
        yield format_docstring(inspect.getdoc(module))
        yield from (_describe_member(name, member, "###") for name, member in members.items())


def _describe_member(name: str, member: Any, level: str = "##") -> str:
    """Return the entry of a class with its fields and methods, of a function, or of a constant."""
    parts = [f"{level} {name}"]
    if inspect.isclass(member):
        fields_table = _describe_parameters("field", member) if is_dataclass(member) else ""
        parts += [
            _format_class_call(name, member),
            format_docstring(inspect.getdoc(member)),
            fields_table,
            _make_methods_table(member),
        ]
    elif callable(member):
        parts += [
            format_code("python", _format_signature(name, member)),
            format_docstring(inspect.getdoc(member)),
        ]
    else:
        parts.append(f"`{_remove_modules(str(member))}`")
    return "\n\n".join(filter(None, parts))


def _format_class_call(name: str, kind: type) -> str:
    """Return the call of a class; nothing for a class without a signature of its own."""
    try:
        return "" if kind is conspectus.Settings else format_code("python", _format_signature(name, kind))
    except ValueError:
        return ""


def _make_methods_table(kind: type) -> str:
    """Return the methods of a class, each with the first line of its docstring."""
    rows = []
    for name, method in list_methods(kind).items():
        if (getattr(method, "__module__", None) or "").startswith("conspectus"):
            first = (inspect.getdoc(method) or "").partition("\n")[0]
            rows.append((f"`{_format_signature(name, method, max_width=10_000)}`", format_docstring(first)))
    return format_table(("method", "what it does"), rows)


def _describe_parameters(column: str, owner: Any) -> str:
    """Return the parameters or fields whose annotations have help, with the bounds of numbers."""
    try:
        declarations = {name: declaration_of(hint) for name, hint in annotated_hints(owner).items()}
    except NameError:
        return ""
    rows = (
        (f"`{name}`", format_docstring(declaration.help), _format_range(declaration.range))
        for name, declaration in declarations.items()
        if declaration.help
    )
    return format_table((column, "meaning", "range"), rows)


def _format_range(bounds: Range | None) -> str:
    if bounds is None:
        return ""
    lowest = f"above {bounds.lowest:g}" if bounds.above else f"{bounds.lowest:g}"
    highest = f"`{bounds.setting}`" if bounds.setting else _format_bound(bounds.highest)
    return f"{lowest} to {highest}" if highest else f"{lowest} or more"


def _format_bound(highest: object) -> str:
    return f"{highest:,}" if isinstance(highest, int | float) else ""


def _format_signature(name: str, function: Any, max_width: int = 100) -> str:
    """Return a call with the types of its parameters; a long one has a line for each parameter."""
    signature = inspect.signature(function)
    types = _read_types(function)
    parameters = [
        parameter.replace(annotation=types.get(parameter.name, parameter.annotation))
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    arguments, kinds = (
        [str(parameter) for parameter in parameters],
        [parameter.kind for parameter in parameters],
    )
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        arguments.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    return_type = types.get("return", signature.return_annotation)
    return_text = (
        "" if return_type is inspect.Signature.empty else f" -> {inspect.formatannotation(return_type)}"
    )
    await_word = "await " if inspect.iscoroutinefunction(function) and "." in name else ""
    line = f"{await_word}{name}({_remove_modules(', '.join(arguments))}){_remove_modules(return_text)}"
    if len(line) <= max_width:
        return line
    inside = "".join(f"    {_remove_modules(parameter)},\n" for parameter in arguments)
    return f"{await_word}{name}(\n{inside}){_remove_modules(return_text)}"


def _read_types(function: Any) -> dict[str, Any]:
    """Return the types of parameters, without the rest of their annotations."""
    try:
        return hints(function)
    except (NameError, TypeError):
        return {}


def _remove_modules(text: str) -> str:
    """Return a signature without the modules of its types."""
    text = re.sub(r"<(?:class '|function |object )?([\w.]+)[^>]*>", r"\1", text.replace("NoneType", "None"))
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text).replace("'", "")


def _make_example_call(call: str, function: Any) -> str:
    """Return a call with the required arguments; one that only another call gives is named."""
    annotated, types = get_type_hints(function, include_extras=True), get_type_hints(function)
    required_parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is inspect.Parameter.empty
        and parameter.name != "self"
        and parameter.kind not in {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    ]
    arguments = [
        (
            parameter,
            _format_example_argument(annotated[parameter.name], types[parameter.name], parameter.name),
        )
        for parameter in required_parameters
    ]
    argument_texts = [
        text if parameter.kind is not parameter.KEYWORD_ONLY else f"{parameter.name}={text}"
        for parameter, text in arguments
    ]
    await_word = "await " if inspect.iscoroutinefunction(function) else ""
    return f"{await_word}{call}({', '.join(argument_texts)})"


def _format_example_argument(annotation: Any, hint: Any, name: str) -> str:
    """Return the declared example, or an instance of the type."""
    example = declaration_of(annotation).example
    try:
        return _format_literal(_make_example(hint) if example is NO_EXAMPLE else example)
    except UNKNOWN:
        return name


def _make_example(hint: Any) -> Any:
    """Return an instance of a type, from the examples of its fields."""
    adapter = TypeAdapter(_list_type(hint))
    schema = adapter.json_schema(ref_template="#/components/schemas/{model}")
    return adapter.validate_python(Examples(schema.get("$defs", {})).request(schema))


def _list_type(hint: Any) -> Any:
    """Return a type with lists in place of iterables."""
    origin, members = get_origin(hint), get_args(hint)
    if origin is Iterable:
        return GenericAlias(list, members)
    return reduce(or_, map(_list_type, members)) if origin in {Union, UnionType} else hint


def _format_literal(instance: Any) -> str:
    """Return an instance as a program writes it, without fields that have their default."""
    if isinstance(instance, datetime):
        return f'datetime.fromisoformat("{instance.isoformat()}")'
    if isinstance(instance, Path):
        return repr(str(instance))
    if isinstance(instance, list | tuple):
        return f"[{', '.join(map(_format_literal, instance))}]"
    if not is_dataclass(instance):
        return repr(instance)
    arguments = (
        f"{field.name}={_format_literal(getattr(instance, field.name))}"
        for field in fields(instance)
        if field.default is MISSING or getattr(instance, field.name) != field.default
        if field.default_factory is MISSING or getattr(instance, field.name) != field.default_factory()
    )
    return f"{type(instance).__name__}({', '.join(arguments)})"
