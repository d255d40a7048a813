"""The feedback of collections, cached."""

from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.ports import FeedbackStore
from conspectus.retrieval.feedback import MAX_JUDGMENTS, PastFeedback


class FeedbackCache:
    """The feedback of collections, cached per state of a collection and embedding model."""

    def __init__(self, store: FeedbackStore) -> None:
        self._store = store
        self._cache: dict[str, tuple[int, PastFeedback | None]] = {}

    async def on(self, collection: Collection, space: EmbeddingSpace | None) -> PastFeedback | None:
        """Return the feedback on a collection as of its newest change; None if there is none."""
        sequence, past = self._cache.get(collection.id, (None, None))
        if sequence != collection.sequence or (past is not None and past.space != space):
            judgments = await self._store.judgments(collection.id, limit=MAX_JUDGMENTS)
            if past is None or (past.judgments, past.space) != (judgments, space):
                past = PastFeedback(judgments, collection.language, space) if judgments else None
            self._cache[collection.id] = (collection.sequence, past)
        return past
