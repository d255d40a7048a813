"""Mentions of nodes in a text, with their sentences."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from conspectus.deferred import dataclass
from conspectus.model.graph import EntityLink

MAX_LINKED_CHARACTERS: Final = 5_000
"""Maximum number of characters in one call of the entity linker."""
_SENTENCE_BREAK: Final = re.compile(r"[.!?]+\s+|\n+")


@dataclass(frozen=True, slots=True)
class NodeMention:
    """Characters [start, end) of a text that mention a node, and the number of their sentence.

    `exists` is whether the graph has the node; if not, `node` is the id that it would get.
    """

    node: str
    name: str
    type: str
    sentence: int
    start: int
    end: int
    exists: bool


def split_for_linking(text: str) -> Iterator[str]:
    """Split a text at sentence ends, or else between words, into pieces for the entity linker."""
    while len(text) > MAX_LINKED_CHARACTERS:
        breaks = [match.end() for match in _SENTENCE_BREAK.finditer(text, 0, MAX_LINKED_CHARACTERS)]
        last_space = text.rfind(" ", 0, MAX_LINKED_CHARACTERS) + 1
        end = breaks[-1] if breaks else last_space or MAX_LINKED_CHARACTERS
        yield text[:end]
        text = text[end:]
    yield text


def node_mentions(pieces: Sequence[tuple[str, Sequence[EntityLink]]]) -> list[NodeMention]:
    """Return the mentions of a text from the pieces that were linked one by one, in order."""
    mentions: list[NodeMention] = []
    sentences = offset = 0
    for piece, links in pieces:
        breaks = [match.start() for match in _SENTENCE_BREAK.finditer(piece)]
        for link in links:
            mention, node = link.mention, link.node
            mentions.append(
                NodeMention(
                    node=mention.key if node is None else node.id,
                    name=mention.text,
                    type=mention.type,
                    sentence=sentences + sum(position <= mention.start for position in breaks),
                    start=offset + mention.start,
                    end=offset + mention.end,
                    exists=node is not None,
                )
            )
        sentences += len(breaks) + 1
        offset += len(piece)
    return [mention for mention in mentions if mention.node]
