"""Where and when a question is asked, and what that adds to the scores of messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from conspectus.model.ids import SourceId
from conspectus.model.records import Document, Period
from conspectus.retrieval.scoring_profiles import Product, Profile, Sum, Weights

Floats = NDArray[np.float64]

CHANNEL = "same channel"
THREAD = "same thread"

_ASSISTED = frozenset({"user", "assistant"})


@dataclass(frozen=True, slots=True)
class RankingContext:
    """A situation with its names looked up: the sources that are the channel, and the profile.

    `channel` is None where no channel was named; several sources share its name only over all collections.
    """

    profile: Profile
    at: datetime
    channel: frozenset[SourceId] | None = None
    thread: str | None = None


def weights_for(profile: Sum, documents: Sequence[Document]) -> Weights:
    """Those for talk with an assistant where most of the candidates are such, else those for people."""
    assisted = sum(each.role in _ASSISTED for each in documents)
    return profile.assistant if 2 * assisted > len(documents) else profile.people


def added(standing: RankingContext, documents: Sequence[Document], weights: Weights) -> dict[str, Floats]:
    """What a sum adds to the scores of candidates for where and when the question is asked.

    Without a channel or a thread in the situation there is no part for it.
    """
    profile = standing.profile
    if not isinstance(profile, Sum):
        return {}
    hours = _hours(standing.at, documents)
    decay = np.where(np.isnan(hours), 0.0, np.exp(-hours / profile.hours))
    most = {CHANNEL: weights.same_channel, THREAD: weights.same_thread}
    known = _inside(standing, documents)
    return {"recency": weights.recency * decay} | {name: most[name] * each for name, each in known.items()}


def multiplied(standing: RankingContext, documents: Sequence[Document], base: Floats) -> dict[str, Floats]:
    """The share of each factor of a product: channel first, then thread, then time, each on what was before.

    Added to the base they give the product.
    """
    profile = standing.profile
    if not isinstance(profile, Product):
        return {}
    hours = _hours(standing.at, documents)
    factors = {CHANNEL: profile.same_channel, THREAD: profile.same_thread}
    parts: dict[str, Floats] = {}
    for name, inside in _inside(standing, documents).items():
        parts[name] = base * (factors[name] - 1.0) * inside
        base = base + parts[name]
    parts["recency"] = base * np.where(np.isnan(hours), 0.0, np.expm1(-profile.decay * hours))
    return parts


def kept_by_threads(documents: Sequence[Document], above: Sequence[bool]) -> list[bool]:
    """Which of the candidates below a floor stand in a thread of which another one is above it."""
    pairs = list(zip(documents, above, strict=True))
    threads = {(each.source, each.thread) for each, is_above in pairs if is_above}
    return [
        not is_above and each.thread is not None and (each.source, each.thread) in threads
        for each, is_above in pairs
    ]


def _hours(at: datetime, documents: Sequence[Document]) -> Floats:
    """How long ago each was said; 0 for what clocks that are ahead say is still to come, NaN if unknown."""
    return np.array([_hours_since(at, each.occurred) for each in documents], dtype=np.float64)


def _hours_since(at: datetime, occurred: Period | None) -> float:
    return np.nan if occurred is None else max((at - occurred.start).total_seconds(), 0.0) / 3_600


def _inside(standing: RankingContext, documents: Sequence[Document]) -> dict[str, Floats]:
    """1 for what is in the channel, and in the thread, that the question is asked in."""
    channel, thread = standing.channel, standing.thread
    if channel is None:
        return {}
    here = [each.source in channel for each in documents]
    inside = {CHANNEL: np.array(here, dtype=np.float64)}
    if thread is not None:
        same = [each.thread == thread for each in documents]
        inside[THREAD] = inside[CHANNEL] * np.array(same, dtype=np.float64)
    return inside
