"""A summary without a model: captions that say most of what the others say, from every part of a stream."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import regex
from numpy.typing import NDArray

from conspectus.model.streams import Caption

Rows: TypeAlias = NDArray[np.float32]
Terms: TypeAlias = Callable[[str], list[str]]

ALIKE: Final = 0.9
"""Similarity from which a caption says nothing new."""
WEIGHT_OF_NEWS: Final = 0.5
MOST_TERMS: Final = 256
LONGEST: Final = 400
"""Characters up to which a chosen caption is shown whole; of a longer one, the sentence that says most."""
_SENTENCE: Final = regex.compile(
    r".+?(?:[.!?\u2026\u3002\uff01\uff1f]+[\"'\u201d\u2019)\]]*(?=\s|$)|$)", regex.DOTALL
)


def extracted(
    captions: Sequence[Caption], most: int, *, terms: Terms, vectors: Rows | None = None
) -> list[tuple[Caption, str]]:
    """At most `most` captions in the order given, each with what is shown of it.

    The stream is cut into `most` stretches of equal length, and each that has captions gives the one that is
    most like all others by its vector, or by its words where not all have one; what is left goes to the best
    of the rest. Nothing is taken that says again what was taken.
    """
    shown = [each for each in captions if each.text.strip()]
    if not shown or most < 1:
        return []
    words = [terms(each.text) for each in shown]
    usable = vectors is not None and len(vectors) == len(captions)
    rows = _chosen_rows(captions, vectors) if vectors is not None and usable else _of_words(words)
    central = rows @ rows.sum(axis=0)
    central = central / max(float(np.abs(central).max()), 1e-9)
    chosen: list[int] = []
    for stretch in _stretches(shown, most):
        _take(stretch, central, rows, chosen)
    while len(chosen) < most and _take(range(len(shown)), central, rows, chosen):
        pass
    weight = Counter(term for each in words for term in set(each))
    return [(shown[at], _said(shown[at].text, weight, terms)) for at in sorted(chosen)]


def _chosen_rows(captions: Sequence[Caption], vectors: Rows) -> Rows:
    kept = [at for at, each in enumerate(captions) if each.text.strip()]
    return vectors[kept]


def _take(places: Sequence[int] | range, central: NDArray[np.float32], rows: Rows, chosen: list[int]) -> bool:
    """Add the best of the places that says something new; whether there was one."""
    at = np.asarray(places, np.intp)
    if chosen:
        at = at[~np.isin(at, chosen)]
        said = (rows[at] @ rows[chosen].T).max(axis=1) if len(at) else np.zeros(0, np.float32)
        at, said = at[said < ALIKE], said[said < ALIKE]
    else:
        said = np.zeros(len(at), np.float32)
    if not len(at):
        return False
    chosen.append(int(at[int(np.argmax(central[at] - WEIGHT_OF_NEWS * said))]))
    return True


def _stretches(captions: Sequence[Caption], count: int) -> list[list[int]]:
    """The places of captions by stretches of time, or of their order where some have no time."""
    starts = [each.start for each in captions]
    known = [start for start in starts if start is not None]
    timed = len(known) == len(starts) and max(known) > min(known)
    line = np.asarray(known if timed else range(len(starts)), np.float64)
    length = float(line.max() - line.min()) or 1.0
    slots = np.minimum(((line - line.min()) / length * count).astype(np.int64), count - 1)
    return [list(np.flatnonzero(slots == slot)) for slot in np.unique(slots)]


def _of_words(words: Sequence[Sequence[str]]) -> Rows:
    """Rows of the terms that captions share, as parts of unit rows of all their terms."""
    counts = Counter(term for each in words for term in set(each))
    shared = [term for term, count in counts.most_common(MOST_TERMS) if count > 1]
    place = {term: at for at, term in enumerate(shared)}
    rows = np.zeros((len(words), max(len(shared), 1)), np.float32)
    for row, each in enumerate(words):
        length = math.sqrt(sum(1.0 / counts[term] for term in set(each)))
        for term in set(each) & place.keys():
            rows[row, place[term]] = 1.0 / (math.sqrt(counts[term]) * length)
    return rows


def _said(text: str, weight: Counter[str], terms: Terms) -> str:
    """A caption on one line; of a long one the sentence whose words are said most often."""
    whole = " ".join(text.split())
    if len(whole) <= LONGEST:
        return whole
    sentences = [each.strip() for each in _SENTENCE.findall(whole) if each.strip()]
    return max(sentences, key=lambda each: sum(weight[term] for term in set(terms(each))), default=whole)
