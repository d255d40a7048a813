"""Lines of results."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from conspectus.model.graph import EdgeStep, Neighbor, Node
from conspectus.model.memory import Memory, MemoryHit
from conspectus.model.records import (
    Document,
    reading_mark,
)
from conspectus.model.results import Citation, Hit, TraceEntry
from conspectus.model.trust import level_mark
from conspectus.text.counts import format_count
from conspectus.text.document_names import key_beside_title, name_with_key
from conspectus.text.printing import on_one_line
from conspectus.window.render import renderer_by_name

MAX_SHOWN_NAME_LENGTH = 200
MAX_NOTICE_LENGTH = 300
MAX_NOTICES = 3


def escape_content(text: str) -> str:
    """Escape a text, so that it cannot be mistaken for a line of the tool."""
    return renderer_by_name("text").escape(text)


def shorten(text: str) -> str:
    """Put a name on one line, and shorten it if it is long."""
    line = on_one_line(text)
    return line if len(line) <= MAX_SHOWN_NAME_LENGTH else line[: MAX_SHOWN_NAME_LENGTH - 1] + "…"


def time_text(at: datetime) -> str:
    """Return a time in UTC, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def notice_lines(texts: Iterable[str]) -> str:
    """Return the notices of a result, a line each."""
    return "\n".join(
        f"Note: {on_one_line(notice)[:MAX_NOTICE_LENGTH]}" for notice in list(texts)[:MAX_NOTICES]
    )


def document_name(document: Document) -> str:
    """Return the name that a document is shown with."""
    return shorten(document.title or (document.kind if document.kind == "memory" else document.location))


def hit_lines(number: int, hit: Hit) -> str:
    """Return a passage with its citation and its text."""
    chunk, document = hit.chunk, hit.document
    key = key_beside_title(document.title, document.location) if document.kind in {"page", "task"} else ""
    facts = [document_name(document), *([shorten(key)] if key else [])]
    facts += [f"p. {chunk.page}"] if chunk.page is not None else []
    facts += filter(None, [reading_mark(document.read_by)])
    facts += [shorten(chunk.heading)] if chunk.heading else []
    facts += [time_text(document.occurred.start)] if document.occurred is not None else []
    facts += [shorten(document.author)] if document.author else []
    position = f"document {document.id}, characters {chunk.start} to {chunk.end} of {document.characters}"
    mark = level_mark(document.trust)
    lines = [f"[{number}]{mark} {', '.join(facts)} ({position}; score {hit.score:.3g})"]
    lines += [f"found through {path_line(hit.through)}"] if hit.through else []
    return "\n".join((*lines, escape_content(chunk.text_with_header)))


def path_line(names: Iterable[str]) -> str:
    """Return a path of entity names."""
    return " → ".join(shorten(name) for name in names)


def source_lines(citations: Iterable[Citation]) -> list[str]:
    """Return a line for each document of a window: the numbers of its passages and its id."""
    numbers: dict[str, list[str]] = {}
    for citation in citations:
        numbers.setdefault(citation.document, []).append(f"[{citation.number}]")
    return [f"{''.join(passages)} document {document}" for document, passages in numbers.items()]


def trace_line(candidate: TraceEntry) -> str:
    """Return a candidate with its status, the reason, its score and the parts."""
    reason = on_one_line(candidate.reason) or candidate.status
    status = reason if reason.startswith(candidate.status) else f"{candidate.status}: {reason}"
    name = shorten(name_with_key(candidate.title, candidate.key))
    head = f"{candidate.rank}. {status} —{level_mark(candidate.trust)} {name}"
    chunk = (
        f"document {candidate.document}, chunk {candidate.chunk}, {format_count(candidate.tokens, 'token')}"
    )
    return f"{head} ({chunk}; score {candidate.score:.3g}{score_terms(candidate.parts)})"


def score_terms(parts: Mapping[str, float]) -> str:
    """Return the parts of a score as a sum."""
    terms = " + ".join(f"{name} {part:.3g}" for name, part in parts.items())
    return f" = {terms}" if terms else ""


def memory_lines(memory: Memory, about: Iterable[str] = ()) -> str:
    """Return a memory with its id, time, speaker and further facts."""
    document = memory.document
    at = document.occurred.start if document.occurred is not None else memory.known_from
    who = " ".join(shorten(name) for name in (document.role, document.author) if name)
    facts = [*_memory_facts(memory), *about]
    head = " ".join(filter(None, (f"[{memory.id}]{level_mark(document.trust)}", time_text(at), who)))
    in_brackets = f" ({'; '.join(facts)})" if facts else ""
    return f"{head}{in_brackets}: {escape_content(memory.text)}"


def format_recalled(recalled: MemoryHit) -> str:
    """Return a memory with the reasons why it matches."""
    through = [f"found through {path_line(recalled.through)}"] if recalled.through else []
    why = [on_one_line(reason)[:MAX_NOTICE_LENGTH] for reason in recalled.why]
    return memory_lines(recalled.memory, (f"score {recalled.score:.3g}", *through, *why))


def node_line(node: Node, score: float | None = None) -> str:
    """Return a node of a graph."""
    facts = [shorten(node.type)]
    facts += [f"also {', '.join(shorten(alias) for alias in node.aliases[:5])}"] if node.aliases else []
    facts += _validity_facts(node.valid_from, node.valid_until)
    facts += [f"score {score:.3g}"] if score is not None else []
    name = "" if node.name == node.id else f" “{shorten(node.name)}”"
    return f"{shorten(node.id)}{name}{level_mark(node.trust)} ({'; '.join(facts)})"


def neighbor_line(neighbor: Neighbor) -> str:
    """Return a neighbor with the path to it."""
    steps = ", ".join(map(_step_text, neighbor.steps))
    return f"hop {neighbor.hop}, decay {neighbor.decay:.3g}: {node_line(neighbor.node)} by {steps}"


def _step_text(step: EdgeStep) -> str:
    source, target = shorten(step.source), shorten(step.target)
    mark = level_mark(step.trust)
    if step.backwards:
        return f"{source} ←{shorten(step.type)}— {target}{mark}"
    return f"{source} —{shorten(step.type)}→ {target}{mark}"


def _memory_facts(memory: Memory) -> list[str]:
    facts: list[str] = [] if memory.kind == "turn" else [memory.kind]
    facts += [f"from {memory.cites.memory}"] if memory.cites is not None else []
    facts += ["pinned"] if memory.pinned else []
    facts += _validity_facts(memory.valid_from, memory.valid_until)
    facts += [f"ended by {memory.closed_by}"] if memory.closed_by else []
    facts += [f"replaced {time_text(memory.known_until)}"] if memory.known_until else []
    return facts


def _validity_facts(start: datetime | None, end: datetime | None) -> list[str]:
    validity = [f"true from {time_text(start)}"] if start else []
    return validity + ([f"true until {time_text(end)}"] if end else [])
