"""status, check, version, reindex, reembed, migrate, backup and restore."""

import platform
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.command import Arguments, Command
from conspectus.cli.errors import DIFFERENT
from conspectus.cli.output import (
    cell,
    make_plain_table,
    note,
    printable,
    progress,
    rows_table,
    similarity_table,
    to_json_value,
)
from conspectus.cli.session import Session
from conspectus.model.records import Json
from conspectus.model.reports import CheckReport, Status
from conspectus.model.sensitive_reports import CATEGORIES, SensitiveReport
from conspectus.settings import Settings
from conspectus.text.counts import format_count

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from conspectus.bootstrap.transfer import BackupReceipt, MoveReceipt
    from conspectus.ports import Progress

PLACE = "a directory, or the postgresql:// URL of a database"


def _make_speed_column() -> "ProgressColumn":
    """Return a column with items per second."""
    from rich.progress import ProgressColumn, Task

    class Speed(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f}/s")

    return Speed()


def _show_check(session: Session, report: CheckReport, _: Arguments) -> None:
    summary: dict[str, Json] = {
        "clean": report.clean,
        "records": to_json_value(report.records),
        "index": to_json_value(report.index),
        "settings": to_json_value(report.settings),
    }
    session.show(summary, check_table(report))
    if not report.clean:
        raise typer.Exit(DIFFERENT)


FEATURES: Final[Mapping[str, str]] = {
    "anthropic": "chat models of Anthropic",
    "audio": "captions of recordings",
    "bedrock": "models on Amazon Bedrock",
    "cohere": "models of Cohere",
    "connectors": "connections with S3 and WebDAV",
    "credentials": "connections with passwords or tokens",
    "gliner": "entities found by GLiNER",
    "google": "models of Google",
    "google-adk": "memory service for Google ADK",
    "graphml": "graphs exported as GraphML",
    "haystack": "document store and retriever for Haystack",
    "hosted": "embeddings from services with OpenAI's API",
    "json-schema": "summaries that follow a JSON Schema",
    "langchain": "adapters for LangChain",
    "langgraph": "store and checkpointer for LangGraph",
    "llama-index": "adapters for LlamaIndex",
    "mcp": "MCP server",
    "milvus": "index in Milvus",
    "multilingual": "embeddings of about 100 languages",
    "ocr": "text of scans and pictures",
    "oidc": "sign-in with tokens of an identity provider",
    "openai": "chat models with OpenAI's API",
    "openai-agents": "sessions for the OpenAI Agents SDK",
    "otel": "traces and metrics by OpenTelemetry",
    "outlook": "messages of Outlook (.msg)",
    "postgresql": "data in PostgreSQL",
    "pydantic-ai": "tools and histories for Pydantic AI",
    "ldap": "groups of an LDAP directory",
    "scim": "users and groups managed by an identity provider",
    "secrets": "secrets and phone numbers found in what is written",
    "spacy": "entities found by spaCy",
    "static": "model2vec embeddings",
    "testing": "test suites for your own adapters",
}
"""The features of each extra of pyproject.toml; `all` has no feature of its own."""
_REQUIREMENT: Final = re.compile(r"([\w.-]+)(?:\[([\w,.-]+)\])?")
_EXTRA: Final = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")


def show_version(
    session: Session,
    *,
    verbose: Annotated[bool, typer.Option("--verbose", help="List the features and their extras.")] = False,
) -> None:
    """Show the version, and the features with --verbose."""
    facts: dict[str, Json] = {"version": version("conspectus"), "python": platform.python_version()}
    if not verbose:
        session.show(facts, f"conspectus {facts['version']}")
        return
    missing = {extra: sorted(set(_find_missing("conspectus", extra))) for extra in FEATURES}
    features = [
        {"extra": extra, "feature": feature, "installed": not missing[extra], "missing": missing[extra]}
        for extra, feature in FEATURES.items()
    ]
    rows = (
        (
            feature["feature"],
            feature["extra"],
            "yes" if feature["installed"] else "no",
            missing[str(feature["extra"])],
        )
        for feature in features
    )
    table = rows_table(("feature", "extra", "installed", "missing packages"), rows)
    heading = f"conspectus {facts['version']}, Python {facts['python']}"
    session.show({**facts, "features": to_json_value(features)}, Group(heading, table))


def _find_missing(package: str, extra: str) -> Iterator[str]:
    """Return the missing packages of an extra, including those of the extras that it refers to."""
    for requirement in requires(package) or ():
        requirement_match, condition = _REQUIREMENT.match(requirement), _EXTRA.search(requirement)
        if requirement_match is None or condition is None or condition[1] != extra:
            continue
        try:
            version(requirement_match[1])
        except PackageNotFoundError:
            yield requirement_match[1]
            continue
        for further in filter(None, (requirement_match[2] or "").split(",")):
            yield from _find_missing(requirement_match[1], further)


def _scan_table(report: SensitiveReport) -> RenderableType:
    rows = (
        (match.category, match.kind, match.column, match.row, match.title, match.start, match.end)
        for match in report.places
    )
    counts = [
        f"{number:,} {name} ({format_count(report.documents.get(name, 0), 'document')})"
        for name, number in report.found.items()
    ]
    heading = f"{format_count(report.scanned, 'document')}: {', '.join(counts) or 'nothing found'}"
    columns = ("category", "kind", "column", "row", "title", "start", "end")
    return Group(heading, rows_table(columns, rows)) if report.places else heading


def _all_categories(_: Session, arguments: Arguments) -> None:
    arguments["categories"] = arguments["categories"] or CATEGORIES


def _show_reindexed(session: Session, _: None, __: Arguments) -> None:
    name = session.collection
    session.show({"collection": name, "reindexed": True}, f"rebuilt the index of {name}")


def _show_reembedded(session: Session, count: int, _: Arguments) -> None:
    name = session.collection
    session.show(
        {"collection": name, "embedded": count}, f"embedded {format_count(count, 'chunk')} of {name}"
    )


def migrate(
    session: Session,
    *,
    source: Annotated[str, typer.Option("--from", help=f"Data to copy: {PLACE}.")],
    target: Annotated[str, typer.Option("--to", help=f"Empty target: {PLACE}.")],
    index: Annotated[bool, typer.Option("--index/--no-index", help="Build the indexes at the end.")] = True,
) -> None:
    """Copy all data to another directory or database."""
    from conspectus.bootstrap import transfer

    session.require_here()
    settings = session.settings
    with progress(_make_speed_column()) as bars:
        receipt = transfer.move(source, target, settings=settings, progress=bars)
        if index:
            moment = receipt.moved.moment.isoformat()
            note(f"copied and verified as of {moment}; building the indexes.")
            note("If this is interrupted, run `conspectus reindex` for each collection.")
        indexed = _build_indexes(target, settings, bars) if index else []
    session.show(_move_json(receipt, indexed), _move_line(receipt, indexed))


def backup(
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")],
    session: Session,
    *,
    check: Annotated[bool, typer.Option("--check", help="Only check whether FILE can be restored.")] = False,
) -> None:
    """Write a consistent backup to one file."""
    from conspectus.bootstrap import transfer as backups

    session.require_here()
    settings = session.settings
    if check:
        receipt = backups.check_backup(file, settings=settings)
    else:
        with progress(_make_speed_column()) as bars:
            receipt = backups.back_up(
                session.common.data_dir or settings.path, file, settings=settings, progress=bars
            )
    done = f"{receipt.file} can be restored" if check else f"Backed up to {receipt.file}"
    session.show(_backup_json(receipt), _backup_line(receipt, done))


def restore(
    file: Annotated[Path, typer.Argument(help="Backup file.")],
    session: Session,
    *,
    target: Annotated[Path, typer.Option("--to", help="New or empty data directory.")],
) -> None:
    """Restore a verified backup to a data directory."""
    from conspectus.bootstrap import transfer as backups

    session.require_here()
    receipt = backups.restore(file, target, settings=session.settings)
    payload = {**_backup_json(receipt), "to": str(target)}
    session.show(payload, _backup_line(receipt, f"Restored {receipt.file} to {target}"))


def status_table(status: Status) -> RenderableType:
    """Return the sizes of collections."""
    columns = (
        "sources",
        "documents",
        "chunks",
        "vectors",
        "pending",
        "errors",
        "unindexable",
        "lag",
        "erasures",
    )
    rows = (
        (
            collection.name, *(str(getattr(collection, name)) for name in columns),
            str(collection.index.segments), collection.space or "none",
        )
        for collection in status.collections
    )  # fmt: skip
    table = rows_table(("collection", *columns, "segments", "embedding model"), rows)
    similarities = {
        collection.space or "": collection.similarity
        for collection in status.collections
        if collection.similarity
    }
    stored = (status.path, format_count(status.bytes, "byte")) if status.path else ()
    parts: list[RenderableType] = [table, similarity_table(similarities)] if similarities else [table]
    parts += [
        Text(f"{collection.name}: its index cannot be used: {collection.fault}")
        for collection in status.collections
        if collection.fault
    ]
    return Group(Text(", ".join((*stored, f"version {status.version}"))), *parts)


def check_table(report: CheckReport) -> RenderableType:
    """Return every difference."""
    if report.clean:
        return Text("records and index agree")
    table = make_plain_table("where", "chunk", "problem", "detail")
    for problem in report.records:
        table.add_row("records", "", "damaged", cell(problem))
    for problem in report.settings:
        table.add_row("settings", "", "wrong", cell(problem))
    for name, problems in report.index.items():
        for difference in problems:
            table.add_row(cell(name), str(difference.chunk), difference.problem, cell(difference.detail))
    return table


def _backup_json(receipt: "BackupReceipt") -> dict[str, Json]:
    manifest = receipt.manifest
    return {
        "file": receipt.file,
        "bytes": receipt.bytes,
        "unpacked": receipt.unpacked,
        "moment": manifest.moment,
        "program": manifest.program,
        "version": manifest.version,
        "tables": {name: to_json_value(table) for name, table in manifest.tables.items()},
        "files": len(manifest.members),
    }


def _backup_line(receipt: "BackupReceipt", done: str) -> str:
    """Return the sentence about a backup."""
    tables = receipt.manifest.tables
    rows = sum(digest.rows for digest in tables.values())
    return printable(
        f"{done}: {format_count(rows, 'row')} in {format_count(len(tables), 'table')}"
        f" as of {receipt.manifest.moment}, all verified ({format_count(receipt.bytes, 'byte')})."
    )


def _build_indexes(target: str, settings: Settings, bars: "Progress | None") -> list[str]:
    from conspectus import sync

    with sync.open(target, settings=settings) as engine:
        names = [collection.name for collection in engine.collections.list()]
        for name in names:
            engine.maintenance.reindex(collection=name, progress=bars)
    return names


def _move_json(receipt: "MoveReceipt", indexed: list[str]) -> dict[str, Json]:
    moved = receipt.moved
    tables: list[Json] = [
        {
            "table": table.table,
            "rows": table.source.rows,
            "source_hash": str(table.source),
            "target_hash": str(table.target),
        }
        for table in moved.tables
    ]
    return {
        "from": receipt.source,
        "to": receipt.target,
        "moment": to_json_value(moved.moment),
        "sequence": moved.sequence,
        "held_seconds": round(moved.held_seconds, 3),
        "rounds": moved.rounds,
        "written": moved.written,
        "resumed": moved.resumed,
        "tables": tables,
        "indexed": to_json_value(indexed),
    }


def _move_line(receipt: "MoveReceipt", indexed: list[str]) -> str:
    """Return the sentence about a migration."""
    moved = receipt.moved
    rows = sum(table.source.rows for table in moved.tables)
    indexes = f"{format_count(len(indexed), 'index')} built" if indexed else "no index built"
    return printable(
        f"Copied {receipt.source} to {receipt.target}: {format_count(rows, 'row')} in"
        f" {format_count(len(moved.tables), 'table')} as of {moved.moment.isoformat()}, all verified;"
        f" writers waited {moved.held_seconds:.2f} s, {indexes}."
    )


status = Command(
    "maintenance:MaintenanceService.status", "Show the data directory and the size of collections.",
    status_table, any_collection=True,
)  # fmt: skip
check = Command(
    "maintenance:MaintenanceService.check", "Check the index against the records (read-only).",
    show=_show_check,
)  # fmt: skip
reindex = Command(
    "engine.maintenance:MaintenanceService.reindex", "Rebuild the index from the records.",
    show=_show_reindexed,
)  # fmt: skip
reembed = Command(
    "engine.maintenance:MaintenanceService.reembed", "Change the embedding model of the collection.",
    show=_show_reembedded,
)  # fmt: skip
scan = Command(
    "maintenance:MaintenanceService.scan", "Search stored texts for secrets and personal data.", _scan_table,
    options={"categories": "--category"}, defaults={"categories": None}, prepare=_all_categories,
)  # fmt: skip
