"""The reference of commands: each with its arguments, its options and a call."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import typer
from scripts.docs.markdown import format_code, format_contents, format_docstring, format_page, format_table

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


def walk_commands(command: Any, name: str = PROGRAM) -> Iterator[tuple[str, Any]]:
    """Yield every command below this one, by its full name."""
    inner = getattr(command, "commands", {})
    for part, subcommand in inner.items():
        yield from walk_commands(subcommand, f"{name} {part}")
    if not inner:
        yield name, command


def make_cli_pages() -> dict[str, str]:
    """Return a page for each group of commands, and one for those without a group."""
    groups: dict[str, list[str]] = {}
    for name, command in walk_commands(typer.main.get_command(build_app())):
        _, first, *rest = name.split()
        groups.setdefault(first if rest else "", []).append(_describe_command(name, command))
    pages = {
        f"reference/commands/{group or 'main'}.md": format_page(
            f"{PROGRAM} {group}" if group else "Commands without a group", *sections
        )
        for group, sections in groups.items()
    }
    names = sorted(path.rpartition("/")[2].removesuffix(".md") for path in pages)
    pages["reference/commands/index.md"] = format_page(
        "Commands",
        "Every command with its arguments and options. [The command line](../cli.md) has what they share.",
        format_contents(["main", *(name for name in names if name != "main")]),
    )
    return pages


def _describe_command(name: str, command: Any) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [
        parameter
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.hidden
    ]
    specific_options = [parameter for parameter in options if parameter.name not in SHARED]
    usage = " ".join([name, *(["[OPTIONS]"] if options else []), *map(_format_argument, arguments)])
    example_words = [_make_example_argument(parameter) for parameter in arguments if parameter.required]
    example_words += [
        f"{parameter.opts[0]} {_make_example_argument(parameter)}"
        for parameter in options
        if parameter.required
    ]
    parts = (
        f"## {name}",
        format_docstring(command.help),
        format_code("text", usage),
        format_table(
            ("argument", "meaning"),
            (
                (f"`{_format_argument(parameter)}`", format_docstring(parameter.help))
                for parameter in arguments
            ),
        ),
        format_table(("option", "default", "meaning"), map(_make_option_row, specific_options)),
        "Example:\n\n" + format_code("sh", " ".join([name, *example_words])),
    )
    return "\n\n".join(filter(None, parts))


def _format_argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    ellipsis = "…" if parameter.nargs == -1 and not name.endswith("…") else ""
    return f"{name}{ellipsis}" if parameter.required else f"[{name.strip('[]')}{ellipsis}]"


def _make_example_argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.upper()).strip("[]…. ")
    return str(VALUES.get(name, VALUES.get(name.removesuffix("S"), name.lower())))


def _make_option_row(parameter: Any) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    default: Any = parameter.default
    has_default = (
        default not in (None, "", False, ..., [], ())
        and not callable(default)
        and not isinstance(default, Mapping)
    )
    return names, f"`{default}`" if has_default else "", format_docstring(parameter.help)
