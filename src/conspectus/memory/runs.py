"""Memories that are stored at once, in runs of which none names a memory twice."""

from collections.abc import Iterator, Sequence

from conspectus.model.memory import NewMemory
from conspectus.text.clean import clean


def runs(batch: Sequence[NewMemory]) -> Iterator[list[NewMemory]]:
    """A batch in its order, cut before a key that came already, so that a later version meets the earlier."""
    run: list[NewMemory] = []
    seen: set[str] = set()
    for new in batch:
        key = None if new.key is None else clean(new.key)
        if key in seen:
            yield run
            run, seen = [], set()
        run.append(new)
        if key is not None:
            seen.add(key)
    if run:
        yield run
