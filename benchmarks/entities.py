"""Entities: quality of mentions and links, compared with plain string matching."""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Final, TypeVar

import regex

from conspectus.errors import InvalidInput
from conspectus.evals.datasets import Row, rows
from conspectus.evals.measures import percent
from conspectus.graph.english_words import FUNCTION_WORDS, listed_words
from conspectus.graph.entity_linking import Surroundings, link
from conspectus.graph.entity_rules import names_in
from conspectus.graph.gazetteer import Gazetteer
from conspectus.graph.name_matching import initials_of
from conspectus.model.graph import ENTITY, Node
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import Mention, Source
from conspectus.ports import Progress
from conspectus.text.name_keys import key_of

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """What somebody said, the spans that people linked with their entities, and own things with theirs."""

    split: str
    conversation: str
    text: str
    links: Mapping[Span, str]
    references: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document as its tokens joined by spaces, the number of the entity of each mention, and its type."""

    text: str
    entities: Mapping[Span, int]
    types: Mapping[Span, str]


def read_chat_turns(directory: Path) -> list[ChatTurn]:
    """Read `turns.jsonl`: all turns in order; only those of the speaker `USER` are judged by people.

    Raises InvalidInput naming file and line.
    """
    return [_turn(row) for row in rows(directory / "turns.jsonl") if row.text("speaker") == "USER"]


def read_named_documents(directory: Path) -> list[NamedDocument]:
    """Read `docs.jsonl`. Raises InvalidInput naming file and line."""
    return [_document(row) for row in rows(directory / "docs.jsonl")]


def _turn(row: Row) -> ChatTurn:
    text = row.text("text")
    links = {}
    for link_row in _inner(row, "links"):
        start, end = _span(link_row, "span")
        if not 0 <= start < end <= len(text):
            raise InvalidInput(row.position, "a span lies outside of the text")
        links[start, end] = link_row.text("entity")
    references = [
        (mention_row.text("personal_entity_mention"), mention_row.text("entity"))
        for mention_row in _inner(row, "personal")
    ]
    return ChatTurn(row.optional("split") or "", row.id("conv"), text, links, references)


def _document(row: Row) -> NamedDocument:
    sentences = [str(sentence).split(" ") for sentence in row.items("sentences")]
    places, at = [], 0
    for tokens in sentences:
        spans = []
        for token in tokens:
            spans.append((at, at + len(token)))
            at += len(token) + 1
        places.append(spans)
    entities: dict[Span, int] = {}
    types: dict[Span, str] = {}
    for number, entity in enumerate(_inner(row, "entities")):
        for mention in _inner(entity, "mentions"):
            first, last = _span(mention, "tok")
            spans = places[mention.number("sent")] if mention.number("sent") < len(places) else []
            if 0 <= first < last <= len(spans):
                span = (spans[first][0], spans[last - 1][1])
                entities[span], types[span] = number, entity.text("type")
    return NamedDocument(" ".join(" ".join(tokens) for tokens in sentences), entities, types)


def _inner(row: Row, name: str) -> list[Row]:
    rows = row.items(name)
    if not all(isinstance(fields, dict) for fields in rows):
        raise InvalidInput(row.position, f"{name!r} must hold objects")
    return [Row(row.position, fields) for fields in rows if isinstance(fields, dict)]


def _span(row: Row, name: str) -> Span:
    numbers = row.items(name)
    if len(numbers) != 2 or not all(isinstance(number, int) for number in numbers):
        raise InvalidInput(row.position, f"{name!r} must be two whole numbers")
    return int(str(numbers[0])), int(str(numbers[1]))


def by_conversation(turns: Sequence[ChatTurn]) -> dict[str, list[ChatTurn]]:
    """The turns of each conversation, in order."""
    conversations: dict[str, list[ChatTurn]] = defaultdict(list)
    for turn in turns:
        conversations[turn.conversation].append(turn)
    return conversations


_OWN: Final = regex.compile(
    r"(?<!\w)my(?:\s+(?:own|all[- ]?time|very|absolute|most|personal))*+"
    r"\s+(?:favou?rites?\s+)?[\p{L}'-]{2,40}+",
    regex.IGNORECASE,
)
_STATED: Final = regex.compile(
    r"[^.!?\n]{0,40}?\b(?:is|are|was|were|be|called|named|would be|has been|have been)\b[^.!?\n]{0,40}"
    r"|\s*[:,(-]?\s*",
    regex.IGNORECASE,
)
_ENDS: Final = regex.compile(r"[.!?\n]")
_MOST: Final = 100


def own_references(text: str) -> list[tuple[int, int]]:
    """Positions where a text refers to something of the speaker."""
    return [match.span() for match in _OWN.finditer(text)][:_MOST]


def meant_by(
    text: str, reference: tuple[int, int], mentions: Sequence[Mention], earlier: Sequence[Mention] = ()
) -> Mention | None:
    """The name that a reference stands for.

    That is the one it is said to be ("my city is London"), else the nearest before it in the text, else the
    last that was said `earlier`; None where there is none.
    """
    start, end = reference
    after = next((mention for mention in mentions if mention.start >= end), None)
    if after is not None and _STATED.fullmatch(text, end, after.start):
        return after
    before = [mention for mention in mentions if mention.end <= start]
    if before and not (after is not None and _ENDS.search(text, before[-1].end, start)):
        return before[-1]
    same = after is not None and not _ENDS.search(text, end, after.start)
    return after if same else before[-1] if before else earlier[-1] if earlier else None


Linked = dict[Span, str]
STOPPED: Final = 300
"""So many of the most common words are not names."""
LIKELY: Final = 0.35
"""A spelling that meant an entity at least so often in the training turns is linked to it."""
_ASIDE: Final = regex.compile(r"\s*\([^)]*\)$")
_PLACED: Final = regex.compile(r"([^,]+), [^,]+")
_GRAPH: Final = Source(SourceId("titles"), CollectionId("titles"), "titles", kind="graph")
_NOW: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Learnt:
    """The meanings of spellings in other turns: entities by spelling, and spellings without entity."""

    meant: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    unlikely: Set[str] = frozenset()


class TitleLinker:
    """Links texts to entities that are known by their titles alone, or also by the training turns."""

    def __init__(self, titles: Sequence[str], learnt: Learnt = Learnt()) -> None:
        self._learnt = learnt
        names = {title: title.replace("_", " ") for title in titles}
        spellings: dict[str, list[str]] = {title: spellings_of(name) for title, name in names.items()}
        for initials, title in acronyms(
            {title: name for title, name in names.items() if "(" not in name}
        ).items():
            spellings[title].append(initials)
        for spelling, meant in learnt.meant.items():
            best = max(sorted(meant), key=lambda title: meant[title])
            if meant[best] >= LIKELY and best in spellings:
                spellings[best].append(spelling)
        skip = (FUNCTION_WORDS | frozenset(listed_words()[:STOPPED])) - {
            spelling for spelling, meant in learnt.meant.items() if max(meant.values()) >= LIKELY
        }
        self._nodes = {title: _node(title, names[title], spellings[title]) for title in names}
        self._known = Gazetteer(spellings, skip=skip)

    def found(self, text: str) -> list[tuple[Mention, str]]:
        """The mentions in a text with the entities that they mean."""
        linked = []
        for span in self._known.find(text):
            spelling = text[span.start : span.end]
            mention = Mention(span.start, span.end, spelling, key_of(spelling), ENTITY)
            usual = self._learnt.meant.get(spelling.lower(), {})
            if mention.key in self._learnt.unlikely:
                continue
            nodes = [self._nodes[title] for title in span.spelling.names]
            node = link(mention, nodes, Surroundings(usual=usual)).node
            if node is not None:
                linked.append((mention, node.id))
        return linked


def spellings_of(title: str) -> list[str]:
    """How people may write a title in a chat: without what tells it from others, in lower case."""
    bare = _ASIDE.sub("", title)
    placed = _PLACED.fullmatch(bare)
    return list(dict.fromkeys(spelling.lower() for spelling in (title, bare, placed[1] if placed else bare)))


def learnt_from(turns: Sequence[ChatTurn], titles: Sequence[str]) -> Learnt:
    """The meanings of spellings in these turns, as shares of their occurrences."""
    meant: dict[str, Counter[str]] = defaultdict(Counter)
    for turn in turns:
        for (start, end), title in turn.links.items():
            meant[turn.text[start:end].lower()][title] += 1
    everything = Gazetteer({spelling: [spelling] for spelling in meant}, skip=frozenset())
    said_at_all: Counter[str] = Counter()
    linker, occurrences, linked = TitleLinker(titles), Counter[str](), Counter[str]()
    for turn in turns:
        said_at_all.update(turn.text[span.start : span.end].lower() for span in everything.find(turn.text))
        for mention, _ in linker.found(turn.text):
            occurrences[mention.key] += 1
            linked[mention.key] += (mention.start, mention.end) in turn.links
    shares = {
        text: {title: count / max(said_at_all[text], sum(of.values())) for title, count in of.items()}
        for text, of in meant.items()
    }
    likely = {key_of(text) for text, of in shares.items() if max(of.values()) >= LIKELY}
    unlikely = {key for key, count in occurrences.items() if count > 1 and linked[key] / count < LIKELY}
    return Learnt(shares, unlikely - likely)


def acronyms(names: Mapping[str, str]) -> dict[str, str]:
    """The initials of names of several words that no other name has, with whose they are."""
    owners: dict[str, set[str]] = {}
    for owner, name in names.items():
        initials = initials_of(name.lower())
        if initials and len(initials) > 1:
            owners.setdefault(initials.upper(), set()).add(owner)
    return {initials: next(iter(of)) for initials, of in owners.items() if len(of) == 1}


class StringMatch:
    """The baseline: whole words that are a title, the longest first, ignoring case."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._titles = {title.replace("_", " ").lower(): title for title in titles}
        ordered = sorted(self._titles, key=lambda title: (-len(title), title))
        self._form = regex.compile(rf"(?<!\w)(?:{'|'.join(map(regex.escape, ordered))})(?!\w)")

    def found(self, text: str) -> list[tuple[Mention, str]]:
        """The mentions in a text with the entities that they mean."""
        lower = text.lower()
        spans = [match.span() for match in self._form.finditer(lower)] if len(lower) == len(text) else []
        return [
            (Mention(start, end, text[start:end], lower[start:end], ENTITY), self._titles[lower[start:end]])
            for start, end in spans
        ]


def own_things(turns: Sequence[ChatTurn], linker: TitleLinker) -> tuple[int, int, int]:
    """Of what people call their own: how many meanings agree, were found, and are true."""
    agreeing = total = true = 0
    for conversation in by_conversation(turns).values():
        earlier: list[tuple[Mention, str]] = []
        for turn in conversation:
            linked = linker.found(turn.text)
            meant = _own_meant(turn.text, linked, earlier)
            expected = {title for _, title in turn.references}
            agreeing += len(meant & expected)
            total, true = total + len(meant), true + len(expected)
            earlier += linked
    return agreeing, total, true


def _own_meant(
    text: str, linked: Sequence[tuple[Mention, str]], earlier: Sequence[tuple[Mention, str]]
) -> set[str]:
    titles = {id(mention): title for mention, title in (*earlier, *linked)}
    names = [mention for mention, _ in linked]
    before = [mention for mention, _ in earlier]
    meant = (meant_by(text, reference, names, before) for reference in own_references(text))
    return {titles[id(mention)] for mention in meant if mention is not None}


def _node(title: str, name: str, spellings: Sequence[str]) -> Node:
    return Node(title, _GRAPH, ENTITY, name, tuple(spellings), {}, _NOW, _NOW)


Spans = set[Span]
Pairs = set[tuple[Span, Span]]
_CAPITALS: Final = regex.compile(r"\p{Lu}\S*+(?: \p{Lu}\S*+)*+|\d\S*+")
_OF_DOCUMENT: Final = Source(SourceId("document"), CollectionId("document"), "document", kind="graph")


def runs_of_capitals(document: NamedDocument) -> Spans:
    """The baseline without known names: adjacent capitalized words, and numbers."""
    return {match.span() for match in _CAPITALS.finditer(document.text)}


def by_rules(document: NamedDocument) -> Spans:
    """The entities that the product's rules find in a text alone, with plain numbers."""
    return {(mention.start, mention.end) for mention in names_in(document.text, with_numbers=True)}


class EveryName:
    """The plain way with every name known that any document of the set has: whole words, in any case."""

    def __init__(self, documents: Sequence[NamedDocument]) -> None:
        names = {
            document.text[start:end].lower() for document in documents for start, end in document.entities
        }
        ordered = sorted(names, key=lambda name: (-len(name), name))
        self._firsts: dict[str, list[str]] = {}
        for name in ordered:
            self._firsts.setdefault(name.split(" ")[0], []).append(name)

    def found(self, document: NamedDocument) -> Spans:
        """The spans of names, the longest first, without overlaps."""
        text, spans, done = document.text.lower(), set[Span](), 0
        at = 0
        for token in text.split(" "):
            if at >= done:
                name = next(
                    (candidate for candidate in self._firsts.get(token, ()) if _stands(text, candidate, at)),
                    None,
                )
                if name is not None:
                    done = at + len(name)
                    spans.add((at, done))
            at += len(token) + 1
        return spans


def same_string(document: NamedDocument) -> dict[Span, str]:
    """The baseline of coreference: mentions with equal spelling, ignoring case."""
    return {span: document.text[span[0] : span[1]].lower() for span in document.entities}


def linked_within(document: NamedDocument) -> dict[Span, str]:
    """Which mentions the product tells to mean the same: each is linked to what was named before, or is new.

    The spans are those that people marked; their types are those that the product finds by itself.
    """
    kinds = {(mention.start, mention.end): mention.type for mention in names_in(document.text)}
    nodes: list[Node] = []
    meant: dict[Span, str] = {}
    longest = sorted(document.entities, key=lambda span: (-_words(document.text, span), span))
    for span in longest:
        surface = document.text[span[0] : span[1]]
        mention = Mention(*span, surface, key_of(surface), kinds.get(span, ENTITY))
        recent = frozenset(node.id for node in nodes)
        node = link(mention, nodes, Surroundings(recent=recent)).node
        if node is None:
            node = Node(str(len(nodes)), _OF_DOCUMENT, mention.type, surface, (), {}, _NOW, _NOW)
            nodes.append(node)
        elif surface not in (node.name, *node.aliases):
            nodes[int(node.id)] = replace(node, aliases=(*node.aliases, surface))
        meant[span] = node.id
    return meant


def pairs(meant: Mapping[Span, object]) -> Pairs:
    """The pairs of mentions that are one."""
    together: dict[object, list[Span]] = {}
    for span in sorted(meant):
        together.setdefault(meant[span], []).append(span)
    return {pair for spans in together.values() for pair in combinations(spans, 2)}


def recall_by_type(documents: Iterable[NamedDocument]) -> dict[str, tuple[int, int]]:
    """For each type of entities how many mentions the rules find, and how many there are."""
    counts, all_of = Counter[str](), Counter[str]()
    for document in documents:
        spans = by_rules(document)
        for span, kind in document.types.items():
            all_of[kind] += 1
            counts[kind] += span in spans
    return {kind: (counts[kind], all_of[kind]) for kind in sorted(all_of)}


def _words(text: str, span: Span) -> int:
    return text.count(" ", *span) + 1


def _stands(text: str, name: str, at: int) -> bool:
    end = at + len(name)
    return text.startswith(name, at) and (end == len(text) or text[end] == " ")


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
    titles = sorted(
        {title for turn in turns for title in (*turn.links.values(), *dict(turn.references).values())}
    )
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
        training = [turn for turn in turns if turn.split == LEARNT_FROM]
        taught = TitleLinker(titles, learnt_from(training, titles))
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
    recalls = {
        f"recall {kind}": percent([right / all_of])
        for kind, (right, all_of) in recall_by_type(documents).items()
    }
    report["mentions: found"] |= recalls
    return report


def agreement(agreeing: int, total: int, true: int) -> Figures:
    """Precision, recall and their harmonic mean, of counts."""
    precision = agreeing / total if total else 0.0
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
    agreeing = total = true = 0
    for turn in turns:
        ours = {((mention.start, mention.end), title) for mention, title in way.found(turn.text)}
        theirs = set(turn.links.items())
        agreeing, total, true = agreeing + len(ours & theirs), total + len(ours), true + len(theirs)
    return agreement(agreeing, total, true)


def _spans(
    documents: Iterable[NamedDocument], way: Callable[[NamedDocument], set[tuple[int, int]]]
) -> Figures:
    agreeing = total = true = 0
    for document in documents:
        ours = way(document)
        agreeing += len(ours & document.entities.keys())
        total, true = total + len(ours), true + len(document.entities)
    return agreement(agreeing, total, true)


def _pairs(
    documents: Iterable[NamedDocument], way: Callable[[NamedDocument], dict[tuple[int, int], str]]
) -> Figures:
    agreeing = total = true = 0
    for document in documents:
        ours, theirs = pairs(way(document)), pairs(document.entities)
        agreeing, total, true = agreeing + len(ours & theirs), total + len(ours), true + len(theirs)
    return agreement(agreeing, total, true)


def _told(progress: Progress | None, what: str, things: Sequence[_Thing]) -> Iterator[_Thing]:
    """The same things one by one, telling how far it is."""
    for number, element in enumerate(things):
        if progress is not None:
            progress(what, number, len(things))
        yield element


def main() -> None:
    """Print the figures of a set as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    print(json.dumps(entities(arguments.directory), indent=2))


if __name__ == "__main__":
    main()
