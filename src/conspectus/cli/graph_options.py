"""Options that commands about graphs share, and how graphs look."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
from rich.console import RenderableType
from rich.tree import Tree

from conspectus.cli.output import cell
from conspectus.cli.reporting import plain_table
from conspectus.errors import InvalidInput
from conspectus.model.graph import Edge, Neighbour, NewEdge, NewNode, Node, Step

STANDARD: Final = Path("-")
TEXT: Final = 80
LISTS: Final = frozenset({"aliases"})
WITH_ID: Final = {"source_id": "source", "target_id": "target"}
"""Other names of fields of edges that programs write."""
New = TypeVar("New", NewNode, NewEdge)
NodeId = Annotated[str, typer.Argument(metavar="NODE", help="Id of a node.")]
From = Annotated[str | None, typer.Option("--from", help="Since when it is so, an ISO 8601 time.")]
Until = Annotated[str | None, typer.Option("--until", help="Until when it is so.")]
At = Annotated[str | None, typer.Option(help="As it was at this ISO 8601 time. Default: now, and all.")]
Reason = Annotated[str, typer.Option(help="Why, for the history.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A JSON list, or JSON lines; - is stdin.")]


@dataclass(frozen=True, slots=True)
class OfGraph:
    """Which graph."""

    graph: Annotated[str, typer.Option(help="Name or id of the graph.")] = "default"


def parts_in(file: Path, kind: type[New]) -> list[New]:
    """The nodes or edges of a file. Raises InvalidInput with the number of the one at fault."""
    known = {each.name for each in fields(kind)}
    parts = []
    for number, told in enumerate(_objects(file), 1):
        given = {WITH_ID.get(name, name): value for name, value in told.items()}
        if unknown := given.keys() - known:
            raise InvalidInput(
                f"item {number}", f"has {min(unknown)!r}; there are {', '.join(sorted(known))}"
            )
        given |= {name: tuple(given[name]) for name in LISTS & given.keys()}
        try:
            parts.append(kind(**given))
        except TypeError as error:
            raise InvalidInput(f"item {number}", str(error).rpartition("() ")[2]) from None
    return parts


def properties(pairs: Sequence[str]) -> dict[str, Any]:
    """Values by their names, from KEY=VALUE; what is JSON is read as such. Raises InvalidInput."""
    told: dict[str, Any] = {}
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark or not name:
            raise InvalidInput("property", f"{pair!r} is not KEY=VALUE")
        try:
            told[name] = json.loads(value)
        except ValueError:
            told[name] = value
    return told


def nodes_table(nodes: Sequence[Node], scores: Sequence[float] = ()) -> RenderableType:
    """Nodes, one a line."""
    table = plain_table(
        *(["score"] if scores else []), "id", "type", "name", "aliases", "valid", "properties"
    )
    for number, each in enumerate(nodes):
        score = [f"{scores[number]:.3f}"] if scores else []
        table.add_row(
            *score,
            cell(each.id),
            cell(each.type),
            cell(each.name if each.name != each.id else ""),
            cell(", ".join(each.aliases), limit=TEXT),
            valid(each.valid_from, each.valid_until),
            cell(_told(each.properties), limit=TEXT),
        )
    return table


def edges_table(edges: Sequence[Edge]) -> RenderableType:
    """Edges, one a line."""
    table = plain_table("source", "type", "target", "weight", "valid", "ended by", "id")
    for each in edges:
        ends = [cell(each.source), cell(each.type), cell(each.target)]
        when = valid(each.valid_from, each.valid_until)
        table.add_row(*ends, f"{each.weight:g}", when, cell(each.closed_by or ""), cell(each.id))
    return table


def neighbours_tree(node: str, found: Sequence[Neighbour]) -> RenderableType:
    """A node with what it is connected with, each below the one that leads to it."""
    tree = Tree(cell(node, style="bold"))
    branches: dict[tuple[str, ...], Tree] = {(node,): tree}
    for each in sorted(found, key=lambda one: one.hop):
        above = branches.get(each.path[:-1], tree)
        label = cell(f"{_arrow(each.steps[-1])} {each.node.name}" if each.steps else each.node.name)
        label.append(f"  {each.decay:.3f}", style="dim")
        branches[each.path] = above.add(label)
    return tree


def valid(start: datetime | None, end: datetime | None) -> str:
    """From when to when something is so."""
    if start is None and end is None:
        return ""
    return " to ".join("-" if each is None else f"{each:%Y-%m-%d %H:%M:%S}" for each in (start, end))


def _arrow(step: Step) -> str:
    line = f"{step.type} {step.weight:g}"
    return f"<-[{line}]-" if step.backwards else f"-[{line}]->"


def _told(values: Mapping[str, Any]) -> str:
    return json.dumps(dict(values), ensure_ascii=False) if values else ""


def _objects(file: Path) -> list[dict[str, Any]]:
    text = _text(file)
    try:
        read = (
            json.loads(text) if text.lstrip().startswith("[") else [json.loads(each) for each in _lines(text)]
        )
    except (ValueError, RecursionError) as error:
        raise InvalidInput("file", f"is neither a JSON list nor JSON lines: {error}") from None
    if isinstance(read, list) and all(isinstance(each, dict) for each in read):
        return read
    raise InvalidInput("file", "must hold objects")


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _text(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if file == STANDARD else file.read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("file", f"is not UTF-8: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise InvalidInput("file", f"{str(file)!r} cannot be read: {error.strerror}") from None
