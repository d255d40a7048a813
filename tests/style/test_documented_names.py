"""A name in backticks, in a docstring or a page, is that of something that exists."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from typing import Final

from tests.style.sources import MODULES, PYTHON_FILES, ROOT, name_of, read, statements

from conspectus.settings import Settings

OTHER_FILES: Final = (
    "console/src/**/*.ts*",
    "clients/typescript/src/**/*.ts",
    "deploy/**/*",
    "examples/**/*",
    "*.toml",
    "Makefile",
    "compose.yaml",
    "Dockerfile",
    ".env.example",
)
HISTORIES: Final = ("CHANGELOG.md", "docs/adr")
"""Pages about names of other times."""
FOREIGN: Final = {
    *(
        "CHANGELOG",
        "CacheBackedEmbeddings",
        "DeltaChannel",
        "DocumentStore",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    ),
    *(
        "KF_RULE_CACHE_DIR",
        "MADV_RANDOM",
        "MultiServerMCPClient",
        "OTEL_RESOURCE_ATTRIBUTES",
        "OTEL_SERVICE_NAME",
    ),
    *(
        "OTEL_TRACES_SAMPLER",
        "admin_api_key",
        "archive_command",
        "claude_desktop_config",
        "conspectus_sources",
    ),
    *(
        "create_kv_docstore",
        "get_all",
        "known_hosts",
        "maxGeneralCapacity",
        "maxOutputSize",
        "max_total_tokens",
    ),
    *(
        "pg_restore",
        "pg_stat_user_tables",
        "pg_upgrade",
        "pg_wal",
        "podPidsLimit",
        "preStop",
        "preload_memory",
    ),
    *("quotaAndLimits", "rootCoord", "semantic_hybrid", "skip_vector", "test_logging_tool", "text_search"),
    *("test_missing_capability", "test_streaming_elicitation", "workload_identity"),
}
"""Names of other programs, and names that SQL is made with."""
SPAN: Final = re.compile(r"`([^`\n]+)`")
NAME: Final = re.compile(r"[A-Za-z_]\w*")
SAMPLE: Final = re.compile(r"\d")
"""Examples of times such as `1h2m` are no names."""


@cache
def existing_names() -> frozenset[str]:
    """Every name in code and settings; docstrings and comments name nothing into existence."""
    names = set(FOREIGN)
    for path in PYTHON_FILES:
        names |= {path.stem, *path.parts, *code_names(read(path))}
    for pattern in OTHER_FILES:
        for path in ROOT.glob(pattern):
            if path.is_file():
                names |= set(NAME.findall(path.read_bytes().decode(errors="replace")))
    settings = {field.name.upper() for field in fields(Settings)}
    return frozenset(names | settings | {f"CONSPECTUS_{name}" for name in settings})


def code_names(source: str) -> set[str]:
    """The names in a source, but for its docstrings and lines of comments."""
    lines = source.split("\n")
    for text in statements_of_text(source):
        for number in range(text.lineno - 1, text.end_lineno or text.lineno):
            lines[number] = ""
    return {name for line in lines if not line.lstrip().startswith("#") for name in NAME.findall(line)}


def statements_of_text(source: str) -> Iterator[ast.Constant]:
    """Yield the docstrings, of constants too."""
    for statement in statements(source):
        match statement:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                yield text


def missing_in_docstrings(source: str) -> list[str]:
    """The names in backticks in docstrings that nothing has."""
    texts = "\n".join(str(text.value) for text in statements_of_text(source))
    return missing(span for span in SPAN.findall(texts) if not SAMPLE.search(span))


def missing_in_page(page: str) -> list[str]:
    """The names in backticks in the prose of a page that nothing has."""
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    return missing(span for span in SPAN.findall(prose) if re.search(r"[_.()]", span))


def missing(spans: Iterable[str]) -> list[str]:
    """The names that nothing has, of texts in backticks that are code."""
    names = {name for span in spans if is_code(span) for name in NAME.findall(span)}
    return sorted(names - existing_names())


def is_code(span: str) -> bool:
    """Whether a text in backticks is a name, dotted or called, and not a sentence, a path or a command."""
    return re.fullmatch(r"[A-Za-z_][\w.]*(\(\))?", span) is not None


def test_names_in_docstrings_exist() -> None:
    names_by_module = {name_of(path): missing_in_docstrings(read(path)) for path in MODULES}
    assert {path: names for path, names in names_by_module.items() if names} == {}


def test_names_in_pages_exist() -> None:
    pages = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    names_by_page = {
        name: missing_in_page(read(page))
        for page in pages
        if not (name := page.relative_to(ROOT).as_posix()).startswith(HISTORIES)
    }
    assert {page: names for page, names in names_by_page.items() if names} == {}


def test_planted_names_are_found() -> None:
    absent = "absent" + "_name"
    assert missing_in_docstrings(f'"""Calls `{absent}` and `read_file()`."""\n') == [absent]
    assert missing_in_page(
        f"`{absent}()` and `{absent}` as `max_window_tokens`\n```\n`x_{absent}`\n```\n"
    ) == [absent]
    assert code_names('"""A `docstring`."""\n# comment\nvariable = "text"\n') == {"variable", "text"}
