"""From what a caller asks to what will be looked for, decided before any store is touched."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from conspectus.errors import InvalidInput, ProviderError, TooLarge
from conspectus.model.query import ARMS, Query
from conspectus.settings import Settings
from conspectus.text.clean import clean

DEPTH = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """What one search will do: the arms it uses, how deep each looks, how many rows are read whole."""

    words: bool
    vectors: bool
    depth: int
    floor: float | None = None
    notices: tuple[str, ...] = ()

    def described(self) -> dict[str, str]:
        """The plan in words, for the trace."""
        arms = [name for name, used in (("words", self.words), ("vectors", self.vectors)) if used]
        floor = {} if self.floor is None else {"floor": f"{self.floor:.2f}"}
        return {"arms": " and ".join(arms) or "none", "depth": str(self.depth), **floor}


def asked(query: str | Query, fields: Mapping[str, Any], settings: Settings) -> Query:
    """The query with the given fields, checked. Raises InvalidInput or TooLarge."""
    known = Query.__dataclass_fields__.keys()
    for name in fields:
        if name not in known:
            raise InvalidInput(name, f"is not a part of a query; there are {', '.join(known)}")
    whole = replace(query, **fields) if isinstance(query, Query) else Query(text=query, **fields)
    if unknown := set(whole.arms) - set(ARMS):
        raise InvalidInput("arms", f"{min(unknown)!r} is none; there are {' and '.join(ARMS)}")
    if not 0 <= whole.limit <= settings.max_limit:
        raise InvalidInput("limit", f"must be from 0 to {settings.max_limit}")
    if not 0 <= whole.chain <= settings.max_chain:
        raise InvalidInput("chain", f"must be from 0 to {settings.max_chain}")
    if whole.floor is not None and not -1.0 <= whole.floor <= 1.0:
        raise InvalidInput("floor", "is a cosine similarity, from -1 to 1")
    if len(whole.text) > settings.max_query_characters:
        size, limit = len(whole.text), settings.max_query_characters
        raise TooLarge("question", size=size, limit=limit, unit="characters")
    return replace(whole, text=clean(whole.text))


def plan(query: Query, *, blind: str | None) -> Plan:
    """Which arms look, and how deep. `blind` says why questions cannot be embedded, None if they can.

    What cannot be used is said in a notice; raises ProviderError where nothing else was asked for.
    """
    vectors = "vectors" in query.arms and (blind is None or query.vector is not None)
    if blind is not None and query.arms == ("vectors",) and not vectors:
        raise ProviderError("embedder", blind)
    notices = () if vectors or blind is None or "vectors" not in query.arms else (f"words only: {blind}",)
    return Plan(
        words="words" in query.arms and bool(query.text.strip()),
        vectors=vectors and (query.vector is not None or bool(query.text.strip())),
        depth=max(DEPTH, 2 * query.limit),
        floor=query.floor,
        notices=notices,
    )
