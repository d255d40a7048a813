"""The reference of commands: each with its arguments, its options and a call."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import typer
from scripts.docs.markdown import code, contents, page, prose, table

from conspectus.cli.main import build_app

PROGRAM: Final = "conspectus"
SHARED: Final = frozenset({"data_dir", "url", "collection", "as_json", "json"})
"""Options of most commands, which the page about the command line describes."""
VALUES: Final = {
    "PATH": "notes",
    "QUERY": '"When does the backup run?"',
    "TEXT": '"Prefers short answers."',
    "NAME": "notes",
    "NEW_NAME": "handbook",
    "ID": "auth-1",
    "TITLE": '"Fix login"',
    "FILE": "export.json",
    "CHANNEL": "operations",
    "KEY": "17",
    "USER": "ann",
    "GROUP": "operators",
    "STREAM": "camera-1",
    "URL": "https://example.org/handbook",
    "ARCHIVE": "export.zip",
    "NODE": "backup",
    "GRAPH": "default",
    "ALERT": "arrivals",
    "DIRECTORY": "backups",
}
"""Values of arguments by their names."""


def commands(command: Any, name: str = PROGRAM) -> Iterator[tuple[str, Any]]:
    """Every command below one, by its whole name."""
    inner = getattr(command, "commands", {})
    for part, each in inner.items():
        yield from commands(each, f"{name} {part}")
    if not inner:
        yield name, command


def cli_pages() -> dict[str, str]:
    """A page for each group of commands, and one for those without a group."""
    groups: dict[str, list[str]] = {}
    for name, command in commands(typer.main.get_command(build_app())):
        _, first, *rest = name.split()
        groups.setdefault(first if rest else "", []).append(_section(name, command))
    pages = {
        f"reference/commands/{group or 'main'}.md": page(
            f"{PROGRAM} {group}" if group else "Commands without a group", *sections
        )
        for group, sections in groups.items()
    }
    names = sorted(path.rpartition("/")[2].removesuffix(".md") for path in pages)
    pages["reference/commands/index.md"] = page(
        "Commands",
        "Every command with its arguments and options. [The command line](../cli.md) has what they share.",
        contents(["main", *(each for each in names if each != "main")]),
    )
    return pages


def _section(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    own = [each for each in options if each.name not in SHARED]
    usage = " ".join([name, *(["[OPTIONS]"] if options else []), *map(_named, arguments)])
    shown = [_value(each) for each in arguments if each.required]
    shown += [f"{each.opts[0]} {_value(each)}" for each in options if each.required]
    parts = (
        f"## {name}",
        prose(command.help),
        code("text", usage),
        table(("argument", "meaning"), ((f"`{_named(each)}`", prose(each.help)) for each in arguments)),
        table(("option", "default", "meaning"), map(_option, own)),
        "Example:\n\n" + code("sh", " ".join([name, *shown])),
    )
    return "\n\n".join(filter(None, parts))


def _named(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    many = "…" if parameter.nargs == -1 and not name.endswith("…") else ""
    return f"{name}{many}" if parameter.required else f"[{name.strip('[]')}{many}]"


def _value(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.upper()).strip("[]…. ")
    return str(VALUES.get(name, VALUES.get(name.removesuffix("S"), name.lower())))


def _option(parameter: Any) -> tuple[str, str, str]:
    names = ", ".join(f"`{each}`" for each in [*parameter.opts, *parameter.secondary_opts])
    default: Any = parameter.default
    has_one = (
        default not in (None, "", False, ..., [], ())
        and not callable(default)
        and not isinstance(default, Mapping)
    )
    return names, f"`{default}`" if has_one else "", prose(parameter.help)
