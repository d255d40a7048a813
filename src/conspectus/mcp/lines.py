"""Lines of results."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from conspectus.model.graph import EdgeStep, Neighbor, Node
from conspectus.model.memory import Memory, MemoryHit
from conspectus.model.records import Document
from conspectus.model.results import Citation, Hit, TraceEntry
from conspectus.model.trust import level_mark
from conspectus.text.clean import on_one_line
from conspectus.window.render import renderer_by_name

MAX_NAME_LENGTH = 200
MAX_NOTICE_LENGTH = 300
MAX_NOTICES = 3


def content(text: str) -> str:
    """A text that cannot be mistaken for a line of the tool."""
    return renderer_by_name("text").show(text)


def short(text: str) -> str:
    """A name on one line, shortened if it is long."""
    line = on_one_line(text)
    return line if len(line) <= MAX_NAME_LENGTH else line[: MAX_NAME_LENGTH - 1] + "…"


def instant(at: datetime) -> str:
    """A time in UTC, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def notices(told: Iterable[str]) -> str:
    """The notices of a result, a line each."""
    return "\n".join(f"Note: {on_one_line(each)[:MAX_NOTICE_LENGTH]}" for each in list(told)[:MAX_NOTICES])


def named(document: Document) -> str:
    """The name that a document is shown with."""
    return short(document.title or (document.kind if document.kind == "memory" else document.location))


def hit_lines(number: int, hit: Hit) -> str:
    """A passage with its citation and its text."""
    chunk, document = hit.chunk, hit.document
    said = [named(document)]
    said += [f"p. {chunk.page}"] if chunk.page is not None else []
    said += [short(chunk.heading)] if chunk.heading else []
    said += [instant(document.occurred.start)] if document.occurred is not None else []
    said += [short(document.author)] if document.author else []
    place = f"document {document.id}, characters {chunk.start} to {chunk.end} of {document.characters}"
    mark = level_mark(document.trust)
    lines = [f"[{number}]{mark} {', '.join(said)} ({place}; score {hit.score:.3g})"]
    lines += [f"found through {way(hit.through)}"] if hit.through else []
    return "\n".join((*lines, content(chunk.text)))


def way(names: Iterable[str]) -> str:
    """A path of entity names."""
    return " → ".join(short(each) for each in names)


def sources(citations: Iterable[Citation]) -> list[str]:
    """For each document of a window the numbers of its passages and its id."""
    numbers: dict[str, list[str]] = {}
    for each in citations:
        numbers.setdefault(each.document, []).append(f"[{each.number}]")
    return [f"{''.join(passages)} document {document}" for document, passages in numbers.items()]


def trace_line(entry: TraceEntry) -> str:
    """A candidate: its status with the reason, and its score with the parts."""
    why = on_one_line(entry.reason) or entry.status
    fate = why if why.startswith(entry.status) else f"{entry.status}: {why}"
    where = f"document {entry.document}, chunk {entry.chunk}, {entry.tokens} tokens"
    score = f"score {entry.score:.3g}{summed(entry.parts)}"
    return f"{entry.rank}. {fate} —{level_mark(entry.trust)} {short(entry.title)} ({where}; {score})"


def summed(parts: Mapping[str, float]) -> str:
    """The parts of a score."""
    told = " + ".join(f"{name} {part:.3g}" for name, part in parts.items())
    return f" = {told}" if told else ""


def memory_lines(memory: Memory, about: Iterable[str] = ()) -> str:
    """A memory with its id, time and speaker, and further facts about it."""
    document = memory.document
    said = document.occurred.start if document.occurred is not None else memory.known_from
    who = " ".join(short(each) for each in (document.role, document.author) if each)
    told = [*_facts(memory), *about]
    head = " ".join(filter(None, (f"[{memory.id}]{level_mark(document.trust)}", instant(said), who)))
    known = f" ({'; '.join(told)})" if told else ""
    return f"{head}{known}: {content(memory.text)}"


def recalled_lines(recalled: MemoryHit) -> str:
    """A memory that was found, with the reasons."""
    through = [f"found through {way(recalled.through)}"] if recalled.through else []
    why = [on_one_line(each)[:MAX_NOTICE_LENGTH] for each in recalled.why]
    return memory_lines(recalled.memory, (f"score {recalled.score:.3g}", *through, *why))


def node_line(node: Node, score: float | None = None) -> str:
    """A node of a graph."""
    told = [short(node.type)]
    told += [f"also {', '.join(short(each) for each in node.aliases[:5])}"] if node.aliases else []
    told += _times(node.valid_from, node.valid_until)
    told += [f"score {score:.3g}"] if score is not None else []
    name = "" if node.name == node.id else f" “{short(node.name)}”"
    return f"{short(node.id)}{name}{level_mark(node.trust)} ({'; '.join(told)})"


def neighbor_line(neighbor: Neighbor) -> str:
    """A neighbor with the path to it."""
    steps = ", ".join(map(_step, neighbor.steps))
    return f"hop {neighbor.hop}, decay {neighbor.decay:.3g}: {node_line(neighbor.node)} by {steps}"


def _step(step: EdgeStep) -> str:
    source, target = short(step.source), short(step.target)
    mark = level_mark(step.trust)
    if step.backwards:
        return f"{source} ←{short(step.type)}— {target}{mark}"
    return f"{source} —{short(step.type)}→ {target}{mark}"


def _facts(memory: Memory) -> list[str]:
    told: list[str] = [] if memory.kind == "turn" else [memory.kind]
    told += [f"from {memory.cites.memory}"] if memory.cites is not None else []
    told += ["pinned"] if memory.pinned else []
    told += _times(memory.valid_from, memory.valid_until)
    told += [f"ended by {memory.closed_by}"] if memory.closed_by else []
    told += [f"replaced {instant(memory.known_until)}"] if memory.known_until else []
    return told


def _times(start: datetime | None, end: datetime | None) -> list[str]:
    told = [f"true from {instant(start)}"] if start else []
    return told + ([f"true until {instant(end)}"] if end else [])
