"""Scoring profiles: the weights of the parts of a score, and what channel, thread and time add.

A score begins with keywords and vectors (its base). A `Sum` adds bounded parts to it, so that no part can
hide a text by more than its weight; a `Product` multiplies it. Minimum similarities look at raw similarity
only, in both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conspectus.errors import InvalidInput
from conspectus.model.ids import SourceId
from conspectus.model.records import Document, Period
from conspectus.retrieval.boosts import NEIGHBOURS, QUESTION, ROLE, SPEAKER, THREAD
from conspectus.retrieval.fusion import FusionProfile

WITHOUT = " without "
_VECTORS_ONLY = FusionProfile(intercept=-50.0)


@dataclass(frozen=True, slots=True)
class Weights:
    """The most that each part adds to a score, or takes from it, for bases that run from about 0 to 1.

    Neighbours, flow and completeness are sums over two texts each, so they are bounded by twice their weight.
    """

    neighbours: float = NEIGHBOURS
    thread: float = THREAD
    speaker: float = SPEAKER
    role: float = ROLE
    asking: float = QUESTION
    flow: float = 0.0
    completeness: float = 0.0
    recency: float = 0.0
    same_channel: float = 0.0
    same_thread: float = 0.0


@dataclass(frozen=True, slots=True)
class Sum:
    """The base, and parts added to it: other ones among people than with an assistant.

    `hours` is the time after which recency has fallen to 37 %. `floor` is the least raw similarity where a
    question names none (None: no floor); with `keeps_threads` a message below it stays if one of its thread
    is above.
    """

    people: Weights
    assistant: Weights
    hours: float
    floor: float | None = None
    keeps_threads: bool = True
    fusion: FusionProfile | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """The base times a factor for the same channel, one for the same thread, and exp(-decay x hours).

    The rest as in a sum; the base is the raw similarity where `fusion` says so.
    """

    same_channel: float
    same_thread: float
    decay: float
    floor: float | None = None
    keeps_threads: bool = True
    fusion: FusionProfile | None = None


Profile: TypeAlias = Sum | Product

PLAIN = Sum(people=Weights(), assistant=Weights(neighbours=0.15, role=0.2, asking=0.0), hours=24.0)
"""For questions of which nobody says where and when they are asked."""

DEFAULT = Sum(
    people=Weights(flow=0.1, completeness=0.1, recency=0.15, same_channel=0.1, same_thread=0.2),
    assistant=Weights(neighbours=0.15, role=0.2, asking=0.0, recency=0.02, same_channel=0.1, same_thread=0.2),
    hours=24.0,
)
"""Weights chosen on public sets: docs/adr/0012."""

MULTIPLICATIVE = Product(
    same_channel=1.5, same_thread=1.3, decay=0.1, floor=0.7, keeps_threads=True, fusion=_VECTORS_ONLY
)
"""A formula in use elsewhere, to compare with: it forgets even a perfect match after hours."""

PROFILES: Mapping[str, Profile] = {"default": DEFAULT, "multiplicative": MULTIPLICATIVE}


def profile_named(name: str) -> Profile:
    """The profile of that name, or one with parts switched off: `default without flow, same channel`.

    A floor that belongs to the profile is switched off as the part `floor`. Raises InvalidInput.
    """
    whole, some, parts = name.partition(WITHOUT)
    if whole not in PROFILES:
        raise InvalidInput("profile", f"{whole!r} is none; there are {' and '.join(PROFILES)}")
    profile = PROFILES[whole]
    for part in parts.split(",") if some else ():
        profile = _without(profile, part.strip())
    return profile


def part_names(name: str) -> tuple[str, ...]:
    """What can be switched off in the profile of that name."""
    match PROFILES[name]:
        case Sum():
            return tuple(_spoken(each.name) for each in fields(Weights))
        case Product():
            return ("recency", "same channel", "same thread", "floor")


def _without(profile: Profile, part: str) -> Profile:
    if isinstance(profile, Sum):
        known = {_spoken(each.name): each.name for each in fields(Weights)}
        if part in known:
            off = {known[part]: 0.0}
            return replace(
                profile, people=replace(profile.people, **off), assistant=replace(profile.assistant, **off)
            )
        raise InvalidInput("profile", f"{part!r} is no part of it; there are {', '.join(known)}")
    neutral: dict[str, Profile] = {
        "recency": replace(profile, decay=0.0),
        "same channel": replace(profile, same_channel=1.0),
        "same thread": replace(profile, same_thread=1.0),
        "floor": replace(profile, floor=None),
    }
    if part not in neutral:
        raise InvalidInput("profile", f"{part!r} is no part of it; there are {', '.join(neutral)}")
    return neutral[part]


def _spoken(field: str) -> str:
    return field.replace("_", " ")


Floats = NDArray[np.float64]

IN_CHANNEL = "same channel"
IN_THREAD = "same thread"

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
    most = {IN_CHANNEL: weights.same_channel, IN_THREAD: weights.same_thread}
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
    factors = {IN_CHANNEL: profile.same_channel, IN_THREAD: profile.same_thread}
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
    inside = {IN_CHANNEL: np.array(here, dtype=np.float64)}
    if thread is not None:
        same = [each.thread == thread for each in documents]
        inside[IN_THREAD] = inside[IN_CHANNEL] * np.array(same, dtype=np.float64)
    return inside
