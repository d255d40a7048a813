"""What pages show but no test can run, as it needs other hosts or products, names what there is.

Commands with their arguments and options, settings, routes, extras, targets of make, scripts with their
options. `test_pages.py` runs everything else.
"""

import asyncio
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any

import pytest
import typer
from scripts.openapi import read_document

from conspectus.cli.main import build_app
from conspectus.settings import CONFIG, PREFIX, Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *(ROOT / "benchmarks").glob("*.md"),
    *(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "adr"),
]
PROGRAM = typer.main.get_command(build_app())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SETTINGS = {PREFIX + name.upper() for name in Settings.__dataclass_fields__} | {CONFIG}
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```(?:sh|shell)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^(?:    [^\n]*\n(?:\n(?=    ))?)+", re.MULTILINE)
ASSIGNED = re.compile(r"([A-Z_]+)=")
INLINE = re.compile(r"`(conspectus [a-z][^`]*)`")
CODE = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
JSON_KEY = re.compile(r'"([A-Za-z_][\w.-]*)"\s*:')
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
FILTER_WORDS = {"field", "eq", "in", "from", "to", "exists", "overlaps", "not", "and", "or", "time"} | {
    "contains"
}
"""Words of filters, which are no properties of a schema."""
OTHER_PROGRAMS = {"mcpServers", "servers", "command", "args", "password", "Authorization"}
"""Keys of the configuration of programs that connect with this one."""
SCRIPT = re.compile(r"`?python ((?:benchmarks|scripts)/\w+\.py)((?:[^`\n]|\n(?!\n))*)`")


def read_page(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def code_blocks(language: str) -> list[str]:
    """All blocks of a language."""
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [block for page in PAGES for block in fence.findall(read_page(page))]


def indented_blocks(page: Path) -> list[str]:
    """The indented blocks of a page."""
    return [
        re.sub("^    ", "", block, flags=re.M) for block in INDENTED.findall(FENCED.sub("", read_page(page)))
    ]


def statements(block: str) -> Iterator[list[str]]:
    """The words of each statement for a shell; a line whose quotation marks are open goes on in the next."""
    begun = ""
    for line in block.replace("\\\n", " ").splitlines():
        begun = f"{begun}\n{line}".strip()
        try:
            yield shlex.split(begun, comments=True)
        except ValueError:
            continue
        begun = ""


STATEMENTS = [
    (page.name, words)
    for page in PAGES
    for block in (*SHELL.findall(read_page(page)), *indented_blocks(page))
    for words in statements(block)
]


def calls_of(program: str) -> list[tuple[str, list[str]]]:
    """The calls of a program: their words without settings before and redirections behind."""
    calls = []
    for page, words in STATEMENTS:
        call = list(dropwhile(ASSIGNED.match, words))
        if call and call[0] == program:
            calls.append(
                (page, list(takewhile(lambda word: not word.startswith((">", "|", "&&")), call[1:])))
            )
    return calls


def resolve_command(words: list[str]) -> tuple[Any, list[str]]:
    """The command or group that words lead to, and the words that are left."""
    command, left = PROGRAM, list(words)
    while left and left[0] in getattr(command, "commands", {}):
        command = command.commands[left.pop(0)]
    return command, left


def option_names(command: Any) -> set[str]:
    """The options of a command, or of all below a group."""
    names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return names.union(*map(option_names, getattr(command, "commands", {}).values()))


def options_in(words: list[str]) -> list[str]:
    return [word.partition("=")[0] for word in words if re.match("--[a-z]", word)]


def test_commands_can_be_parsed() -> None:
    calls = [call for call in calls_of("conspectus") if call[1] != ["--version"]]
    assert len(calls) > 40
    for page, words in calls:
        context = PROGRAM.make_context("conspectus", list(words), resilient_parsing=True)
        rest = [*getattr(context, "_protected_args", []), *context.args]
        command, left = resolve_command(rest)
        assert not getattr(command, "commands", {}), (page, words)
        command.make_context("conspectus", left, parent=context)


def test_commands_within_sentences_exist() -> None:
    calls = [(page.name, shlex.split(call)) for page in PAGES for call in INLINE.findall(read_page(page))]
    assert len(calls) > 80
    for page, (_, *words) in calls:
        command, left = resolve_command(words)
        assert command is not PROGRAM, (page, words)
        assert [
            option
            for option in options_in(left)
            if option not in option_names(command) | option_names(PROGRAM)
        ] == [], page


def test_settings_before_commands_exist() -> None:
    words = [word for _, words in STATEMENTS for word in words]
    names = {
        setting[1] for word in words if (setting := ASSIGNED.match(word)) and setting[1].startswith(PREFIX)
    }
    assert len(names) > 5
    assert names <= SETTINGS


def test_requests_go_to_routes_that_exist() -> None:
    paths = json.loads(asyncio.run(read_document()))["paths"]
    routes = [
        (method.upper(), re.compile(re.sub(r"\{[^}]+\}", "[^/?]+", path) + r"(\?.*)?"))
        for path, methods in paths.items()
        for method in methods
    ]
    requests = calls_of("curl")
    assert len(requests) > 5
    for page, words in requests:
        [address] = [word for word in words if word.startswith("http://")]
        path = "/" + address.split("/", 3)[3]
        sends = any(word in {"-d", "-F", "--data-binary"} for word in words)
        method = words[words.index("-X") + 1] if "-X" in words else "POST" if sends else "GET"
        assert [verb for verb, route in routes if verb == method and route.fullmatch(path)], (page, address)


def json_texts(page: Path) -> Iterator[str]:
    """Texts of a page that may hold JSON: code within sentences, and blocks that are no Python."""
    text = read_page(page)
    yield from (block for language, block in BLOCK.findall(text) if language != "python")
    yield from CODE.findall(FENCED.sub("", text))
    yield from (block for block in indented_blocks(page) if "import " not in block)


def names_of(schema: object) -> Iterator[str]:
    """The properties and parameters of a document."""
    if isinstance(schema, dict):
        yield from schema["properties"] if isinstance(schema.get("properties"), dict) else ()
        if "in" in schema and isinstance(schema.get("name"), str):
            yield schema["name"]
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from names_of(part)


def test_json_keys_exist() -> None:
    """A key that no request and no answer has, such as `form` for `format`, is refused by a server."""
    names = {*names_of(json.loads(asyncio.run(read_document())))} | FILTER_WORDS | OTHER_PROGRAMS
    keys = [(page.name, key) for page in PAGES for text in json_texts(page) for key in JSON_KEY.findall(text)]
    assert len(keys) > 40
    assert [(page, key) for page, key in keys if key not in names] == []
    assert "form" not in names


def test_options_within_sentences_exist() -> None:
    """Also without their command; those of other programs stand behind the name of the program."""
    scripts = [path for folder in ("benchmarks", "scripts") for path in (ROOT / folder).glob("*.py")]
    # The last is an option of the conformance tests of MCP.
    options = option_names(PROGRAM) | {"--help", "--spec-version"}
    words = {word for path in scripts for word in re.findall(r'"([\w-]+)"', read_page(path))}
    options |= {f"--{word.lstrip('-')}" for word in words} | {
        "--spec-version"
    }  # of the MCP conformance tests
    unknown = [
        (page.name, option)
        for page in PAGES
        for code in CODE.findall(FENCED.sub("", read_page(page)))
        if code.startswith(("--", "conspectus"))
        for option in FLAG.findall(code)
        if option not in options
    ]
    assert unknown == []


def test_installed_extras_exist() -> None:
    names = {
        extra
        for page in PAGES
        for extras in re.findall(r"conspectus\[([\w,-]+)\]", read_page(page))
        for extra in extras.split(",")
    }
    assert len(names) > 8
    assert names <= set(PROJECT["optional-dependencies"])


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", read_page(ROOT / "Makefile"), re.MULTILINE))
    named = {words[0] for _, words in calls_of("make")}
    assert named and named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_scripts_and_their_options_exist(page: Path) -> None:
    for script, arguments in SCRIPT.findall(read_page(page)):
        source = read_page(ROOT / script)
        if "option_parser(" in source:
            source += read_page(ROOT / "benchmarks" / "results.py")
        words = {option.strip("-") for option in re.findall(r'"([\w-]+)"', source)}
        assert [option for option in options_in(arguments.split()) if option.strip("-") not in words] == [], (
            script
        )


def test_programs_are_fenced_so_that_a_test_runs_them() -> None:
    indented = [block for page in PAGES for block in indented_blocks(page)]
    assert [block for block in indented if block.startswith(("from conspectus", "import conspectus"))] == []


@pytest.mark.parametrize("block", code_blocks("yaml"))
def test_a_file_of_settings_is_read(block: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(block, encoding="utf-8")
    assert Settings.from_environment({CONFIG: str(file)}) != Settings()


@pytest.mark.parametrize("block", code_blocks("js"))
def test_scripts_of_web_pages_can_be_parsed(block: str, tmp_path: Path) -> None:
    file = tmp_path / "page.mjs"
    file.write_text(block, encoding="utf-8")
    node = Path(sys.executable).with_name("node")
    done = subprocess.run([node, "--check", file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
