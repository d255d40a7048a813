"""How well names are found and linked, beside what plain matching of strings does."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from conspectus.errors import InvalidInput
from conspectus.evals.entity_chats import StringMatch, TitleLinker, learnt_from, own_things
from conspectus.evals.entity_documents import (
    EveryName,
    by_rules,
    linked_within,
    pairs,
    recall_by_type,
    runs_of_capitals,
    same_string,
)
from conspectus.evals.entity_sets import (
    ChatTurn,
    NamedDocument,
    read_chat_turns,
    read_named_documents,
)
from conspectus.evals.metrics import percent
from conspectus.ports import Progress

LEARNT_FROM = "val"
Figures = dict[str, float | int]
EntitiesReport = dict[str, Figures]
"""Figures from 0 to 100 by way of finding them, which the set decides; `true` is how many there are."""
_Thing = TypeVar("_Thing")


def entities(directory: str | Path, *, progress: Progress | None = None) -> EntitiesReport:
    """Measure chats with links (`turns.jsonl`) or documents with entities (`docs.jsonl`).

    Raises InvalidInput for a folder with neither, and naming file and line for what cannot be read.
    """
    folder = Path(directory)
    if (folder / "turns.jsonl").exists():
        return _chats(read_chat_turns(folder), progress)
    if (folder / "docs.jsonl").exists():
        return _documents(read_named_documents(folder), progress)
    raise InvalidInput(str(directory), "has neither turns.jsonl nor docs.jsonl")


def _chats(turns: Sequence[ChatTurn], progress: Progress | None) -> EntitiesReport:
    """Links of spans to titles, every title of the set being an entity; learnt aliases apart."""
    titles = sorted({title for turn in turns for title in (*turn.links.values(), *dict(turn.own).values())})
    if not titles:
        raise InvalidInput("turns.jsonl", "no name is linked")
    plain, linker = StringMatch(titles), TitleLinker(titles)
    report = {
        "string match": _linking(_told(progress, "matching", turns), plain),
        "linked": _linking(_told(progress, "linking", turns), linker),
        "own things": agreement(*own_things(turns, linker)),
    }
    others = [turn for turn in turns if turn.split != LEARNT_FROM]
    if 0 < len(others) < len(turns):
        known = [turn for turn in turns if turn.split == LEARNT_FROM]
        taught = TitleLinker(titles, learnt_from(known, titles))
        report |= {
            f"not {LEARNT_FROM}: string match": _linking(others, plain),
            f"not {LEARNT_FROM}: linked": _linking(others, linker),
            f"not {LEARNT_FROM}: aliases learnt": _linking(others, taught),
        }
    return report


def _documents(documents: Sequence[NamedDocument], progress: Progress | None) -> EntitiesReport:
    """Spans of mentions, and pairs of mentions of one entity in a document."""
    if not any(document.entities for document in documents):
        raise InvalidInput("docs.jsonl", "no entity is marked")
    every = EveryName(documents)
    ways: dict[str, Callable[[NamedDocument], set[tuple[int, int]]]] = {
        "mentions: runs of capitals": runs_of_capitals,
        "mentions: every name matched": every.found,
        "mentions: found": by_rules,
    }
    report = {name: _spans(_told(progress, name, documents), way) for name, way in ways.items()}
    report["pairs: same string"] = _pairs(documents, same_string)
    report["pairs: linked"] = _pairs(documents, linked_within)
    found = {
        f"recall {kind}": percent([right / all_of])
        for kind, (right, all_of) in recall_by_type(documents).items()
    }
    report["mentions: found"] |= found
    return report


def agreement(agreeing: int, found: int, true: int) -> Figures:
    """Precision, recall and their harmonic mean, of counts."""
    precision = agreeing / found if found else 0.0
    recall = agreeing / true if true else 0.0
    together = precision + recall
    f1 = 2 * precision * recall / together if together else 0.0
    return {
        "precision": percent([precision]),
        "recall": percent([recall]),
        "f1": percent([f1]),
        "true": true,
    }


def _linking(turns: Iterable[ChatTurn], way: StringMatch | TitleLinker) -> Figures:
    agreeing = found = true = 0
    for turn in turns:
        ours = {((mention.start, mention.end), title) for mention, title in way.found(turn.text)}
        theirs = set(turn.links.items())
        agreeing, found, true = agreeing + len(ours & theirs), found + len(ours), true + len(theirs)
    return agreement(agreeing, found, true)


def _spans(
    documents: Iterable[NamedDocument], way: Callable[[NamedDocument], set[tuple[int, int]]]
) -> Figures:
    agreeing = found = true = 0
    for document in documents:
        ours = way(document)
        agreeing += len(ours & document.entities.keys())
        found, true = found + len(ours), true + len(document.entities)
    return agreement(agreeing, found, true)


def _pairs(
    documents: Iterable[NamedDocument], way: Callable[[NamedDocument], dict[tuple[int, int], str]]
) -> Figures:
    agreeing = found = true = 0
    for document in documents:
        ours, theirs = pairs(way(document)), pairs(document.entities)
        agreeing, found, true = agreeing + len(ours & theirs), found + len(ours), true + len(theirs)
    return agreement(agreeing, found, true)


def _told(progress: Progress | None, what: str, things: Sequence[_Thing]) -> Iterator[_Thing]:
    """The same things one by one, telling how far it is."""
    for number, each in enumerate(things):
        if progress is not None:
            progress(what, number, len(things))
        yield each
