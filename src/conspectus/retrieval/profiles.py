"""Profiles: named weights of all parts of a score.

The base of a score is the fused keyword and vector score. An `AdditiveProfile` adds bounded parts to it, so
no part can lower a text by more than its weight. A `MultiplicativeProfile` multiplies it. In both, the
minimum similarity applies to raw similarity only.
"""

from collections.abc import Mapping
from dataclasses import fields, replace

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.retrieval.boosts import QUESTION_WEIGHT, ROLE_WEIGHT, SPEAKER_WEIGHT
from conspectus.retrieval.dates import DATE_WEIGHT
from conspectus.retrieval.fusion import VECTORS_ONLY_FUSION, FusionProfile
from conspectus.retrieval.thread_boosts import NEIGHBOR_WEIGHT, PRECEDING_QUESTION_WEIGHT, THREAD_WEIGHT

WITHOUT = " without "
"""Separates the name of a profile from the parts that are disabled."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The maximum that each part adds to a score or subtracts, for bases from about 0 to 1.

    `neighbors`, `conversation_flow` and `thread_completeness` are sums over two texts, so their bound is
    twice their weight.
    """

    neighbors: float = NEIGHBOR_WEIGHT
    thread: float = THREAD_WEIGHT
    speaker: float = SPEAKER_WEIGHT
    role: float = ROLE_WEIGHT
    question: float = QUESTION_WEIGHT
    reply: float = PRECEDING_QUESTION_WEIGHT
    date: float = DATE_WEIGHT
    conversation_flow: float = 0.0
    thread_completeness: float = 0.0
    recency: float = 0.0
    same_channel: float = 0.0
    same_thread: float = 0.0


@dataclass(frozen=True, slots=True)
class AdditiveProfile:
    """Adds parts to the base, with separate weights for people and for conversations with an assistant.

    `hours` is the time after which recency has fallen to 37 %. `min_similarity` is the lowest raw similarity
    if a query has none (None: no limit). With `keeps_threads`, a message below it stays if another message of
    its thread is above it.
    """

    people: Weights
    assistant: Weights
    hours: float
    min_similarity: float | None = None
    keeps_threads: bool = True
    fusion: FusionProfile | None = None


@dataclass(frozen=True, slots=True)
class MultiplicativeProfile:
    """Multiplies the base by factors for the same channel, the same thread, and exp(-decay x hours).

    Other fields are as in `AdditiveProfile`. The base is the raw similarity if `fusion` says so.
    """

    same_channel: float
    same_thread: float
    decay: float
    min_similarity: float | None = None
    keeps_threads: bool = True
    fusion: FusionProfile | None = None


Profile = AdditiveProfile | MultiplicativeProfile
PLAIN = AdditiveProfile(
    people=Weights(), assistant=Weights(neighbors=0.15, role=0.2, question=0.0, reply=0.0), hours=24.0
)
"""For queries without a place and time."""
DEFAULT = AdditiveProfile(
    people=Weights(
        conversation_flow=0.1, thread_completeness=0.1, recency=0.15, same_channel=0.1, same_thread=0.2
    ),
    assistant=Weights(
        neighbors=0.15, role=0.2, question=0.0, reply=0.0, recency=0.02, same_channel=0.1, same_thread=0.2
    ),
    hours=24.0,
)
"""Weights selected on public sets: docs/adr/0012."""
MULTIPLICATIVE = MultiplicativeProfile(
    same_channel=1.5,
    same_thread=1.3,
    decay=0.1,
    min_similarity=0.7,
    keeps_threads=True,
    fusion=VECTORS_ONLY_FUSION,
)
"""A common formula for comparison: it drops even perfect matches after hours."""
PROFILES: Mapping[str, Profile] = {"default": DEFAULT, "multiplicative": MULTIPLICATIVE}


def profile_by_name(name: str) -> Profile:
    """Return a profile by name, optionally without some parts: `default without recency, same_channel`.

    `min_similarity` removes the minimum similarity of the profile. Raises InvalidInput.
    """
    base, _, parts = name.partition(WITHOUT)
    if base not in PROFILES:
        raise InvalidInput("profile", f"{base!r} is unknown; expected one of {', '.join(PROFILES)}")
    profile = PROFILES[base]
    for part in parts.split(",") if WITHOUT in name else ():
        profile = _drop_part(profile, part.strip())
    return profile


def part_names(name: str) -> tuple[str, ...]:
    """Return the parts of a profile that can be disabled."""
    match PROFILES[name]:
        case AdditiveProfile():
            return tuple(field.name for field in fields(Weights))
        case MultiplicativeProfile():
            return ("recency", "same_channel", "same_thread", "min_similarity")


def _drop_part(profile: Profile, part: str) -> Profile:
    if isinstance(profile, AdditiveProfile):
        names = [field.name for field in fields(Weights)]
        if part not in names:
            raise InvalidInput("profile", f"{part!r} is unknown; expected one of {', '.join(names)}")
        off = {part: 0.0}
        return replace(
            profile, people=replace(profile.people, **off), assistant=replace(profile.assistant, **off)
        )
    neutral: dict[str, Profile] = {
        "recency": replace(profile, decay=0.0),
        "same_channel": replace(profile, same_channel=1.0),
        "same_thread": replace(profile, same_thread=1.0),
        "min_similarity": replace(profile, min_similarity=None),
    }
    if part not in neutral:
        raise InvalidInput("profile", f"{part!r} is unknown; expected one of {', '.join(neutral)}")
    return neutral[part]
