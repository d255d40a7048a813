"""Summaries of the sentences that best represent captions, without a model."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import regex
from numpy.typing import NDArray

from conspectus.model.captions import Caption
from conspectus.text.late_patterns import regex_pattern

Rows: TypeAlias = NDArray[np.float32]
Terms: TypeAlias = Callable[[str], list[str]]

MIN_SIMILARITY: Final = 0.9
"""Minimum similarity at which a caption counts as a repetition."""
WEIGHT_OF_NEWS: Final = 0.5
MAX_TERMS: Final = 256
MAX_LENGTH: Final = 400
"""Longest caption, in characters, that is shown whole. Of longer captions, the best sentence is shown."""
_SENTENCE: Final = regex_pattern(
    r".+?(?:[.!?\u2026\u3002\uff01\uff1f]+[\"'\u201d\u2019)\]]*(?=\s|$)|$)", regex.DOTALL
)


def select_captions(
    captions: Sequence[Caption],
    maximum: int,
    *,
    terms: Terms,
    vectors: Rows | None = None,
    checkpoint: Callable[[], None] = lambda: None,
) -> list[tuple[Caption, str]]:
    """Select at most `most` captions in their order, each with the text to show.

    The stream is divided into `most` ranges of equal length. From each range with captions, the caption most
    similar to all others is selected. Similarity uses vectors, or terms if some captions have no vector. The
    remaining places go to the best of the other captions. Repetitions of selected captions are skipped. The
    checkpoint is called again and again, and may raise an error to end the work.
    """
    visible = [caption for caption in captions if caption.text.strip()]
    if not visible or maximum < 1:
        return []

    def checked_terms(text: str) -> list[str]:
        checkpoint()
        return terms(text)

    words = [checked_terms(caption.text) for caption in visible]
    usable = vectors is not None and len(vectors) == len(captions)
    places = [at for at, caption in enumerate(captions) if caption.text.strip()]
    rows = vectors[places] if vectors is not None and usable else _build_term_matrix(words)
    central = rows @ rows.sum(axis=0)
    central = central / max(float(np.abs(central).max()), 1e-9)
    selection: list[int] = []
    for stretch in _stretches(visible, maximum):
        checkpoint()
        _take(stretch, central, rows, selection)
    while len(selection) < maximum and _take(range(len(visible)), central, rows, selection):
        checkpoint()
    weight = Counter(term for caption_terms in words for term in set(caption_terms))
    return [(visible[at], _write_one_line(visible[at].text, weight, terms)) for at in sorted(selection)]


def _take(
    places: Sequence[int] | range, central: NDArray[np.float32], rows: Rows, selection: list[int]
) -> bool:
    """Add the best caption that is not a repetition. Returns whether there was one."""
    at = np.asarray(places, np.intp)
    if selection:
        at = at[~np.isin(at, selection)]
        similarity = (rows[at] @ rows[selection].T).max(axis=1) if len(at) else np.zeros(0, np.float32)
        at, similarity = at[similarity < MIN_SIMILARITY], similarity[similarity < MIN_SIMILARITY]
    else:
        similarity = np.zeros(len(at), np.float32)
    if not len(at):
        return False
    selection.append(int(at[int(np.argmax(central[at] - WEIGHT_OF_NEWS * similarity))]))
    return True


def _stretches(captions: Sequence[Caption], count: int) -> list[list[int]]:
    """Group the positions of captions by time range, or by order if some have no time."""
    starts = [caption.start for caption in captions]
    start_times = [start for start in starts if start is not None]
    timed = len(start_times) == len(starts) and max(start_times) > min(start_times)
    line = np.asarray(start_times if timed else range(len(starts)), np.float64)
    length = float(line.max() - line.min()) or 1.0
    slots = np.minimum(((line - line.min()) / length * count).astype(np.int64), count - 1)
    return [list(np.flatnonzero(slots == slot)) for slot in np.unique(slots)]


def _build_term_matrix(words: Sequence[Sequence[str]]) -> Rows:
    """Return a matrix of the terms that captions share, scaled by the norm over all their terms."""
    counts = Counter(term for caption_terms in words for term in set(caption_terms))
    shared = [term for term, count in counts.most_common(MAX_TERMS) if count > 1]
    columns = {term: at for at, term in enumerate(shared)}
    rows = np.zeros((len(words), max(len(shared), 1)), np.float32)
    for row, caption_terms in enumerate(words):
        length = math.sqrt(sum(1.0 / counts[term] for term in set(caption_terms)))
        for term in set(caption_terms) & columns.keys():
            rows[row, columns[term]] = 1.0 / (math.sqrt(counts[term]) * length)
    return rows


def _write_one_line(text: str, weight: Counter[str], terms: Terms) -> str:
    """Return a caption on one line. Of a long caption, return the sentence with the most frequent terms."""
    line = " ".join(text.split())
    if len(line) <= MAX_LENGTH:
        return line
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(line) if sentence.strip()]
    return max(
        sentences, key=lambda sentence: sum(weight[term] for term in set(terms(sentence))), default=line
    )
