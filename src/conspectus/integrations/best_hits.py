"""The best hit of each document."""

from collections.abc import Awaitable, Callable

from conspectus.model.results import Hit, Retrieval

MAX_HITS = 1_000
LIMIT_FACTOR = 4
"""Factor by which more hits are requested if they are chunks of too few texts."""


async def best_of_each(ask: Callable[..., Awaitable[Retrieval]], number: int) -> list[Hit]:
    """Return the best hit of each document, requesting more hits until there are enough documents."""
    limit = number
    while True:
        hits = (await ask(limit=limit)).hits
        best: dict[str, Hit] = {}
        for hit in hits:
            best.setdefault(hit.document.id, hit)
        if len(best) >= number or len(hits) < limit or limit >= MAX_HITS:
            return list(best.values())[:number]
        limit = min(limit * LIMIT_FACTOR, MAX_HITS)
