"""The parts of a score from the place and time of a query."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from conspectus.deferred import dataclass
from conspectus.model.ids import SourceId
from conspectus.model.records import Document
from conspectus.retrieval.arrays import Floats
from conspectus.retrieval.profiles import AdditiveProfile, MultiplicativeProfile, Profile, Weights

IN_CHANNEL = "same_channel"
IN_THREAD = "same_thread"


@dataclass(frozen=True, slots=True)
class RankingContext:
    """A resolved query context: its profile, instant, and the sources of its channel.

    `channel` is None if no channel is given. Only in a search over all collections can several sources share
    its name.
    """

    profile: Profile
    at: datetime
    channel: frozenset[SourceId] | None = None
    thread: str | None = None

    def names(self, document: Document) -> bool:
        """Return whether a document is in the thread that the query names."""
        in_channel = self.channel is not None and document.source in self.channel
        return in_channel and self.thread is not None and document.thread == self.thread


def weights_for(profile: AdditiveProfile, documents: Sequence[Document]) -> Weights:
    """Return the weights for conversations with an assistant if most candidates are such, else for people."""
    assisted = sum(document.assisted for document in documents)
    return profile.assistant if 2 * assisted > len(documents) else profile.people


def additive_parts(
    context: RankingContext, documents: Sequence[Document], weights: Weights
) -> dict[str, Floats]:
    """Return the parts that a sum adds for the channel, thread and time of the query.

    There is no part for a channel or thread that the query context does not have.
    """
    profile = context.profile
    if not isinstance(profile, AdditiveProfile):
        return {}
    hours = _ages_in_hours(context.at, documents)
    decay = np.where(np.isnan(hours), 0.0, np.exp(-hours / profile.hours))
    maximum = {IN_CHANNEL: weights.same_channel, IN_THREAD: weights.same_thread}
    parts = {"recency": weights.recency * decay}
    for name, inside in _channel_and_thread_shares(context, documents).items():
        parts[name] = maximum[name] * inside
    return parts


def multiplicative_parts(
    context: RankingContext, documents: Sequence[Document], base: Floats
) -> dict[str, Floats]:
    """Return the factors of a product as parts: channel, then thread, then time, each of the score so far.

    The base plus all parts is the product.
    """
    profile = context.profile
    if not isinstance(profile, MultiplicativeProfile):
        return {}
    hours = _ages_in_hours(context.at, documents)
    factors = {IN_CHANNEL: profile.same_channel, IN_THREAD: profile.same_thread}
    parts: dict[str, Floats] = {}
    for name, inside in _channel_and_thread_shares(context, documents).items():
        parts[name] = base * (factors[name] - 1.0) * inside
        base = base + parts[name]
    parts["recency"] = base * np.where(np.isnan(hours), 0.0, np.expm1(-profile.decay * hours))
    return parts


def mark_kept_by_thread(
    context: RankingContext, documents: Sequence[Document], above: Sequence[bool]
) -> list[bool]:
    """Return which candidates below the minimum similarity their thread keeps.

    The thread that the query names keeps all of its messages. Another one keeps them if one is above the
    minimum, and the profile keeps threads.
    """
    pairs = list(zip(documents, above, strict=True))
    threads: set[tuple[SourceId, str | None]] = set()
    if context.profile.keeps_threads:
        threads = {(document.source, document.thread) for document, is_above in pairs if is_above}
    return [
        not is_above
        and document.thread is not None
        and ((document.source, document.thread) in threads or context.names(document))
        for document, is_above in pairs
    ]


def _ages_in_hours(at: datetime, documents: Sequence[Document]) -> Floats:
    """Return the age of each text in hours; 0 for times in the future, NaN if unknown."""
    ages = np.full(len(documents), np.nan)
    for position, document in enumerate(documents):
        if document.occurred is not None:
            ages[position] = max((at - document.occurred.start).total_seconds(), 0.0) / 3_600
    return ages


def _channel_and_thread_shares(context: RankingContext, documents: Sequence[Document]) -> dict[str, Floats]:
    """Return 1 for texts in the channel of the query, and 1 for texts in its thread."""
    channel, thread = context.channel, context.thread
    if channel is None:
        return {}
    in_channel = np.array([document.source in channel for document in documents], dtype=np.float64)
    if thread is None:
        return {IN_CHANNEL: in_channel}
    in_thread = np.array([document.thread == thread for document in documents], dtype=np.float64)
    return {IN_CHANNEL: in_channel, IN_THREAD: in_channel * in_thread}
