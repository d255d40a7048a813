"""Parts of the scores of memories: later statements before earlier ones, and content before fillers.

Without a model nobody knows whether two statements are about the same thing. Statements count as such if they
are nearly as similar to the question as the best one, and clearly more similar than all others of the person.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final

import numpy as np

from conspectus.model.records import Document, EmbeddingSpace, StoredChunk
from conspectus.model.trust import TRUST
from conspectus.retrieval.arrays import Floats
from conspectus.retrieval.boosts import ends_with_question
from conspectus.retrieval.dates import find_dates
from conspectus.retrieval.ranked_candidates import RankedCandidates
from conspectus.text.cue_words import asks_for_the_past

LATER_PART: Final = "later_statement"
EARLIER_PART: Final = "earlier_statement"
FILLER_PART: Final = "filler"
MAX_STATEMENTS: Final = 4
"""Most statements about one thing that are ordered by time."""
MAX_COMPARED: Final = 8
"""Number of most similar statements whose words are compared."""
MIN_LEAD: Final = 0.05
"""How much more similar to the query they are than the next statement (cosine)."""
MIN_DEVIATIONS: Final = 3.0
MIN_DEVIATION: Final = 0.06
"""How far they are above the mean of all others in standard deviations, and the least one that counts."""
MIN_SHARE_OF_BEST: Final = 0.5
"""How similar to the query they are at least, as a share of the similarity of the best one."""
MAX_FEW_OTHERS: Final = 2
"""Number of other statements up to which their mean and deviation say little."""
MIN_SHARE_AMONG_FEW: Final = 0.75
MIN_LEAD_AMONG_FEW: Final = 0.1
"""The share of the best similarity, and the lead over the next, that count among few statements."""
MODELS_WITHOUT_OFFSET: Final = frozenset({"all-MiniLM-L6-v2", "multilingual-e5-small"})
"""Embedding models whose similarities of unrelated texts are far below those of related ones."""
SCORE_STEP: Final = 1e-6
"""How far the score of a later statement is above that of an earlier one."""
FILLER_WEIGHT: Final = 1.0
"""More than a match is worth: a filler never comes before content."""
MAX_FILLER_LETTERS: Final = 24
LETTERS_OF_DENSE: Final = 3
"""A character of a script without spaces says as much as three letters."""
MIN_COMMON_PREFIX: Final = 3
MIN_PREFIX_SHARE: Final = 0.6
_WORD: Final = re.compile(r"\w+")
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_DENSE: Final = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_INNER_NAME: Final = re.compile(r"\W\w")


def with_statement_parts(
    query: str, ranked: RankedCandidates, space: EmbeddingSpace | None = None
) -> RankedCandidates:
    """Return the candidates with parts for statements and fillers, if any is a memory.

    `space` is the embedding model of the similarities.
    """
    rows = ranked.rows_in_order
    memories = [position for position, row in enumerate(rows) if row.document.kind == "memory"]
    if not memories:
        return ranked
    parts: dict[str, Floats] = {}
    fillers = [position for position in memories if _is_filler(rows[position], ranked)]
    if fillers:
        parts[FILLER_PART] = np.zeros(len(rows))
        parts[FILLER_PART][fillers] = -FILLER_WEIGHT
    judges_few = space is not None and space.model in MODELS_WITHOUT_OFFSET
    statements = _statements_about_one_thing(query, ranked, rows, memories, judges_few=judges_few)
    if len(statements) > 1:
        parts |= _time_order_parts(ranked, rows, statements)
    return ranked.with_parts(parts)


def _is_filler(row: StoredChunk, ranked: RankedCandidates) -> bool:
    """Return whether a short reply of an assistant has no name or number, and answers no question."""
    if row.document.role != "assistant":
        return False
    text = row.chunk.text.strip()
    if len(text) > 2 * MAX_FILLER_LETTERS:
        return False
    letters = sum(map(str.isalpha, text)) + (LETTERS_OF_DENSE - 1) * len(_DENSE.findall(text))
    if letters > MAX_FILLER_LETTERS or any(map(str.isdigit, text)):
        return False
    if any(match[0][1].isupper() for match in _INNER_NAME.finditer(text)):
        return False
    if row.previous is None:
        return True
    before = ranked.rows.get(row.previous)
    return before is not None and not ends_with_question(before.chunk.text)


def _statements_about_one_thing(
    query: str,
    ranked: RankedCandidates,
    rows: Sequence[StoredChunk],
    memories: Iterable[int],
    *,
    judges_few: bool,
) -> list[int]:
    """Return the positions of the statements that the query is about, if they stand out, by time."""
    own = [position for position in memories if _is_statement(rows[position].document)]
    own = [position for position in own if not np.isnan(ranked.cosine[position])]
    own.sort(key=lambda position: -ranked.cosine[position])
    if len(own) < 2 or asks_for_the_past(query) or _YEAR.search(query) or find_dates(query):
        return []
    best = rows[own[0]]
    similar = [
        position
        for rank, position in enumerate(own)
        if rows[position].document.author == best.document.author
        and not ends_with_question(rows[position].chunk.text)
        and (rank >= MAX_COMPARED or not _is_about_another(query, best, rows[position]))
    ]
    cosines = ranked.cosine[similar]
    for count in range(min(MAX_STATEMENTS, len(similar)), 1, -1):
        lowest, highest = float(cosines[count - 1]), float(cosines[0])
        stand_out = lowest >= MIN_SHARE_OF_BEST * highest and _stand_out(lowest, cosines[count:])
        if stand_out or (judges_few and _stand_out_among_few(lowest, highest, cosines[count:])):
            return sorted(similar[:count], key=lambda position: _time_key(rows[position].document))
    return []


def _is_statement(document: Document) -> bool:
    return document.role in {None, "user"} and document.parent is None


def _stand_out(lowest: float, others: Floats) -> bool:
    """Return whether a similarity is clearly above those of others."""
    if not len(others):
        return False
    distance = MIN_DEVIATIONS * max(float(others.std()), MIN_DEVIATION)
    return lowest - float(others.max()) >= MIN_LEAD and lowest - float(others.mean()) >= distance


def _stand_out_among_few(lowest: float, highest: float, others: Floats) -> bool:
    """Return whether a similarity is near the highest one, and above those of few others."""
    if len(others) > MAX_FEW_OTHERS or lowest < MIN_SHARE_AMONG_FEW * highest:
        return False
    return lowest - float(others.max(initial=0.0)) >= MIN_LEAD_AMONG_FEW


def _is_about_another(query: str, best: StoredChunk, statement: StoredChunk) -> bool:
    """Return whether a statement has a word of query and best statement in another form only.

    "I live in Porto" and "Where do I live?" share "I" and "live"; "My sister lives in Lyon" has neither, and
    another form of "live", so it is about somebody else.
    """
    shared = _words(query) & _words(best.chunk.text)
    words = _words(statement.chunk.text)
    return not shared & words and any(_are_forms(one, other) for one in shared for other in words)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _are_forms(one: str, other: str) -> bool:
    """Return whether two words begin alike."""
    pairs = zip(one, other, strict=False)
    prefix = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return prefix >= MIN_COMMON_PREFIX and prefix >= MIN_PREFIX_SHARE * max(len(one), len(other))


def _time_key(document: Document) -> tuple[float, int]:
    return document.time.timestamp(), document.number


def _time_order_parts(
    ranked: RankedCandidates, rows: Sequence[StoredChunk], statements: Sequence[int]
) -> dict[str, Floats]:
    """Return parts that put each statement above the earlier ones that it may update."""
    later, earlier = np.zeros(len(rows)), np.zeros(len(rows))
    totals: Floats = np.sum([*ranked.parts.values()], axis=0)
    scores: dict[int, float] = {}
    for position in statements:
        scores[position] = float(totals[position])
        updated = [other for other in scores if _may_update(rows[position].document, rows[other].document)]
        if updated:
            earlier[updated] = -SCORE_STEP
            highest = max(scores[other] for other in updated)
            scores[position] = max(scores[position], highest) + SCORE_STEP
            later[position] = scores[position] - totals[position]
    return {LATER_PART: later, EARLIER_PART: earlier} if later.any() else {}


def _may_update(newer: Document, older: Document) -> bool:
    """Return whether a statement may come before an older one: no one else's may, and no less trusted one."""
    is_same_origin = newer.origin == older.origin or newer.origin == "user"
    is_trusted = TRUST.index(newer.trust) <= TRUST.index(older.trust)
    return newer.id != older.id and is_same_origin and is_trusted
