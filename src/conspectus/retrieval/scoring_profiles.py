"""How the parts of a score are weighed, as data with names.

A score begins with what the words and the vectors of a question say (its base). A `Sum` adds bounded parts to
it, so that no part can hide a text by more than its weight; a `Product` multiplies it. Floors look at raw
similarity only, in both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from conspectus.errors import InvalidInput
from conspectus.retrieval.boosts import QUESTION, ROLE, SPEAKER, THREAD
from conspectus.retrieval.fusion import FusionProfile
from conspectus.retrieval.neighbors import NEIGHBOURS

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
