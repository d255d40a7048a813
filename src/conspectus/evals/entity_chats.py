"""How well the names in chats are linked to the entities that they mean."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import regex

from conspectus.evals.entity_sets import ChatTurn, Span, by_conversation
from conspectus.graph.entity_linking import Surroundings, link
from conspectus.graph.gazetteer import Gazetteer, acronyms
from conspectus.graph.name_keys import key_of
from conspectus.graph.personal import meant_by, own
from conspectus.graph.word_lists import FUNCTION_WORDS, most_common_words
from conspectus.model.graph import ENTITY, Mention, Node
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import Source

Linked = dict[Span, str]
STOPPED: Final = 300
"""So many of the most common words are no names."""
LIKELY: Final = 0.35
"""What meant an entity at least so often where it was learnt, is taken for it."""
_ASIDE: Final = regex.compile(r"\s*\([^)]*\)$")
_PLACED: Final = regex.compile(r"([^,]+), [^,]+")
_GRAPH: Final = Source(SourceId("titles"), CollectionId("titles"), "titles", kind="graph")
_NOW: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Learnt:
    """What spellings meant in other turns: entities by spelling, and spellings that mostly meant none."""

    meant: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    unlikely: Set[str] = frozenset()


class TitleLinker:
    """Links what is said to entities that are known by their titles alone, or by what was learnt of them."""

    def __init__(self, titles: Sequence[str], learnt: Learnt = Learnt()) -> None:
        self._learnt = learnt
        names = {title: title.replace("_", " ") for title in titles}
        spellings: dict[str, list[str]] = {title: spellings_of(name) for title, name in names.items()}
        for initials, title in acronyms(
            {each: name for each, name in names.items() if "(" not in name}
        ).items():
            spellings[title].append(initials)
        for said, meant in learnt.meant.items():
            best = max(sorted(meant), key=lambda title: meant[title])
            if meant[best] >= LIKELY and best in spellings:
                spellings[best].append(said)
        skip = (FUNCTION_WORDS | most_common_words(STOPPED)) - {
            said for said, meant in learnt.meant.items() if max(meant.values()) >= LIKELY
        }
        self._nodes = {title: _node(title, names[title], spellings[title]) for title in names}
        self._known = Gazetteer(spellings, skip=skip)

    def found(self, text: str) -> list[tuple[Mention, str]]:
        """The mentions in a text with the entities that they mean."""
        linked = []
        for span in self._known.find(text):
            said = text[span.start : span.end]
            mention = Mention(span.start, span.end, said, key_of(said), ENTITY)
            usual = self._learnt.meant.get(said.lower(), {})
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
    return list(dict.fromkeys(each.lower() for each in (title, bare, placed[1] if placed else bare)))


def learnt_from(turns: Sequence[ChatTurn], titles: Sequence[str]) -> Learnt:
    """What spellings meant in these turns, as shares of all the times that they were said."""
    meant: dict[str, Counter[str]] = defaultdict(Counter)
    for turn in turns:
        for (start, end), title in turn.links.items():
            meant[turn.text[start:end].lower()][title] += 1
    everything = Gazetteer({said: [said] for said in meant}, skip=frozenset())
    said_at_all: Counter[str] = Counter()
    linker, said, kept = TitleLinker(titles), Counter[str](), Counter[str]()
    for turn in turns:
        said_at_all.update(turn.text[each.start : each.end].lower() for each in everything.find(turn.text))
        for mention, _ in linker.found(turn.text):
            said[mention.key] += 1
            kept[mention.key] += (mention.start, mention.end) in turn.links
    shares = {
        text: {title: count / max(said_at_all[text], sum(of.values())) for title, count in of.items()}
        for text, of in meant.items()
    }
    likely = {key_of(text) for text, of in shares.items() if max(of.values()) >= LIKELY}
    unlikely = {key for key, count in said.items() if count > 1 and kept[key] / count < LIKELY}
    return Learnt(shares, unlikely - likely)


class StringMatch:
    """The plain way: whole words that are a title, the longest first, whatever their case."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._titles = {title.replace("_", " ").lower(): title for title in titles}
        ordered = sorted(self._titles, key=lambda each: (-len(each), each))
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
    agreeing = found = true = 0
    for told in by_conversation(turns).values():
        earlier: list[tuple[Mention, str]] = []
        for turn in told:
            said = linker.found(turn.text)
            meant = _own_meant(turn.text, said, earlier)
            expected = {title for _, title in turn.own}
            agreeing += len(meant & expected)
            found, true = found + len(meant), true + len(expected)
            earlier += said
    return agreeing, found, true


def _own_meant(
    text: str, said: Sequence[tuple[Mention, str]], earlier: Sequence[tuple[Mention, str]]
) -> set[str]:
    titles = {id(found): title for found, title in (*earlier, *said)}
    names = [found for found, _ in said]
    before = [found for found, _ in earlier]
    meant = (meant_by(text, reference, names, before) for reference in own(text))
    return {titles[id(each)] for each in meant if each is not None}


def _node(title: str, name: str, spellings: Sequence[str]) -> Node:
    return Node(title, _GRAPH, ENTITY, name, tuple(spellings), {}, _NOW, _NOW)
