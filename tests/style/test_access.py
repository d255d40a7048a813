"""Permission cannot be gone around: AuthorizedReader reads the records, and one module makes the filter."""

import ast
from collections.abc import Callable, Collection

import pytest
from tests.style.sources import MODULES, PACKAGE, name_of, nodes, read

READING = {
    "changes_since", "chunks", "collection", "collections", "count", "counts", "document_chunks",
    "documents", "extent", "has_statements", "hydrate", "list", "list_positions", "list_unembedded",
    "reader", "related", "scan", "sources", "state", "stretches", "text", "timeline",
}  # fmt: skip
"""Methods of Records that give away what is stored."""
READER = "access/reader.py"
READERS = {READER, "access/caption_reader.py", "access/readable_sources.py"}
POLICY = "access/policy.py"
FOR_PEOPLE = ("access/", "engine/", "facades/", "integrations/", "web/", "cli/", "client/")
"""Where a person is answered. What works for the store itself, in ingest/ and index/, reads all of it."""
LISTS = {"In", "Or"}
ASKS_THE_ENGINE = "engine/connection_sources.py"
"""Lists the documents of a connection's own sources, as one person and through the engine."""


def ends_in_records(node: ast.AST) -> bool:
    """Whether an expression is the records: `records`, `self._records`, `core.records` and so on."""
    name = getattr(node, "attr", getattr(node, "id", ""))
    return isinstance(name, str) and name.lstrip("_") == "records"


def readings(source: str) -> list[str]:
    """Every use of a reading method of the records."""
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in nodes(source)
        if isinstance(node, ast.Attribute) and node.attr in READING and ends_in_records(node.value)
    ]


def renamings(source: str) -> list[str]:
    """Records under a name that `readings` would not know."""
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in nodes(source)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)
        and node.value is not None
        and ends_in_records(node.value)
        and not ends_in_records(node.targets[0] if isinstance(node, ast.Assign) else node.target)
    ]


def permission_filters(source: str) -> list[str]:
    """Filters that say which sources someone may see: `In("source", …)`, and `Or()`, which is nothing."""
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in nodes(source)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) in LISTS
        and (not node.args or getattr(node.args[0], "value", None) == "source")
    ]


def reads_grants(source: str) -> list[str]:
    """Uses of what a person was granted, which only AuthorizedReader turns into access."""
    return [str(n.lineno) for n in nodes(source) if isinstance(n, ast.Attribute) and n.attr == "grants_of"]


ANSWERING = [path for path in MODULES if name_of(path).startswith(FOR_PEOPLE)]


def offences(check: Callable[[str], list[str]], exceptions: Collection[str]) -> dict[str, list[str]]:
    """What a check finds where people are answered, by module."""
    lines = {name_of(path): check(read(path)) for path in ANSWERING if name_of(path) not in exceptions}
    return {name: finding for name, finding in lines.items() if finding}


@pytest.mark.parametrize("check", [readings, reads_grants, renamings])
def test_records_are_read_through_the_authorized_reader(check: Callable[[str], list[str]]) -> None:
    assert offences(check, READERS) == {}


def test_one_module_says_what_may_be_seen() -> None:
    assert offences(permission_filters, {POLICY, ASKS_THE_ENGINE}) == {}


def test_the_rules_look_at_what_they_are_about() -> None:
    names = {name_of(path) for path in ANSWERING}
    assert {READER, POLICY, "engine/documents.py", "engine/search.py", "cli/session.py"} <= names
    assert readings(read(PACKAGE / READER)) != []
    assert permission_filters(read(PACKAGE / POLICY)) != []


@pytest.mark.parametrize(
    "planted",
    [
        "await self._core.records.list(home, where)",
        "await records.text(document)",
        "await self._records.collections()",
        "found = parts.records.reader(home, None)",
        "read = partial(core.records.hydrate, ids)",
        "SearchContext(index=i, hydrate=core.records.hydrate, filter=place.restrict_filter(query.filter))",
    ],
)
def test_reading_around_it_is_found(planted: str) -> None:
    assert len(readings(f"async def f():\n    {planted}\n")) == 1


@pytest.mark.parametrize("planted", ["store = self._core.records", "(store := core.records)"])
def test_records_under_another_name_are_found(planted: str) -> None:
    assert len(renamings(planted)) == 1


@pytest.mark.parametrize(
    "planted", ["In('source', ids)", "filter.In('source', (a, b))", "Or()", "And((Or(), x))"]
)
def test_a_permission_filter_elsewhere_is_found(planted: str) -> None:
    assert len(permission_filters(planted)) == 1


@pytest.mark.parametrize(
    "allowed",
    [
        "SearchContext(index=i, hydrate=self._authorized.rows(a), filter=a.restrict_filter(query.filter))",
        "await self._core.records.delete(ids)",
        "await write(self._core.records, batch, by)",
        "self.records = parts.records",
        "Eq('source', name)",
        "In('document', ids)",
        "Or((a, b))",
        "engine.documents.list(collection=name)",
    ],
)
def test_what_is_allowed_is_not_found(allowed: str) -> None:
    source = f"async def f():\n    {allowed}\n"
    assert readings(source) + renamings(source) + permission_filters(source) + reads_grants(source) == []
