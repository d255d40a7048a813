"""Texts that a window holds already."""

from conspectus.model.results import Hit
from conspectus.window.caption_passages import is_streamed, stretch

_MOST_COMPARED = 32


class SeenTexts:
    """Finds the shown text that makes another one superfluous.

    A text is superfluous if it is equal to a shown one, or if its words stand in one in the same order
    without interruption. What somebody said repeats only what the same person said, and what is seen or
    said in a stream only that of the same time.
    """

    def __init__(self) -> None:
        self._hashes: dict[tuple[str, str], int] = {}
        self._texts: dict[int, tuple[str, str]] = {}
        self._words: dict[str, list[int]] = {}

    def rank_of(self, hit: Hit) -> int | None:
        """The rank under which the hit's text was added already."""
        voice = _voice(hit)
        same = self._hashes.get((hit.chunk.content_hash, voice))
        if same is not None:
            return same
        words = hit.chunk.text.split()
        if not words or not all(map(self._words.__contains__, words)):
            return None
        rarest = min((self._words[word] for word in set(words)), key=len)
        needle = f" {' '.join(words)} "
        containing = (rank for rank in rarest[:_MOST_COMPARED] if self._texts[rank][0] == voice)
        return next((rank for rank in containing if needle in self._texts[rank][1]), None)

    def add(self, rank: int, hit: Hit, *, whole: bool = True) -> None:
        """Remember a text; of one that is not shown whole only that it is there."""
        voice = _voice(hit)
        self._hashes.setdefault((hit.chunk.content_hash, voice), rank)
        if not whole:
            return
        words = hit.chunk.text.split()
        self._texts[rank] = (voice, f" {' '.join(words)} ")
        for word in set(words):
            self._words.setdefault(word, []).append(rank)


def _voice(hit: Hit) -> str:
    document = hit.document
    if is_streamed(document):
        return " ".join((document.source, stretch(document), document.author or ""))
    return "" if document.kind in {"page", "task"} else document.author or document.role or ""
