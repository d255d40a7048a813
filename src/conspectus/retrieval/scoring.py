"""Scores: fusion of keywords and vectors, bounded boosts, and profiles with weights.

The base of a score is the fused keyword and vector score. A `Sum` adds bounded parts to it, so no part can
lower a text by more than its weight. A `Product` multiplies it. In both, the minimum similarity applies to
raw similarity only. Every boost returns one share for each candidate, in the order given.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.ids import SourceId
from conspectus.model.records import Document, EmbeddingSpace, Period
from conspectus.retrieval.dates import DATE
from conspectus.text.analyzer import STOP_WORDS

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

IDENTIFIER = 2.0
THREAD = 0.3
SPEAKER = 0.08
QUESTION = 0.08
REPLY = 0.3
ROLE = 0.1
BEST_OF_THREAD = 3

_WORD = re.compile(r"\w+")
_ROLES = (["user"], ["assistant"], ["system"], ["tool"], ["agent"], ["bot"], ["human"], ["ai"])
_NO_NAMES = frozenset().union(*STOP_WORDS.values(), *_ROLES)
_QUESTION_MARKS = frozenset("?\uff1f\u061f\u037e")


def from_identifiers(ids: Ids, exact: Ids, *, weight: float = IDENTIFIER) -> Floats:
    """Return `weight` for chunks that contain a rare identifier of the query.

    Fused scores range from -1 to 1, so every such chunk outranks all others.
    """
    return weight * np.isin(ids, exact).astype(np.float64)


def from_thread(scores: Floats, threads: Sequence[str | None], *, weight: float = THREAD) -> Floats:
    """Return, for each text of a thread, how far its best three scores exceed the median candidate.

    If a thread has fewer than three candidates, the median fills the missing places, so a single good text
    raises a thread less than three do. Texts without a thread get 0. Bounded by the weight times the range of
    scores.
    """
    shares = np.zeros(len(scores))
    numbers: dict[str, int] = {}
    own = np.array([-1 if each is None else numbers.setdefault(each, len(numbers)) for each in threads])
    if not numbers:
        return shares
    above = scores - np.median(scores)
    order = np.lexsort((-above, own))
    grouped = own[order]
    best = (np.arange(len(own)) - np.searchsorted(grouped, grouped) < BEST_OF_THREAD) & (grouped >= 0)
    sums = np.bincount(grouped[best], weights=above[order][best])
    shares[own >= 0] = weight * sums[own[own >= 0]] / BEST_OF_THREAD
    return shares


def from_speaker(question: str, authors: Sequence[str | None], *, weight: float = SPEAKER) -> Floats:
    """Return `weight` for texts by the author that the query names, if it names exactly one.

    An author is named by full name or first word, in any case. Roles such as "user" and "assistant" are not
    names, nor is "The" of "The Editor".
    """
    words = _words(question)
    named = {author for author in set(authors) if author is not None and _is_named(author, words)}
    if len(named) != 1:
        return np.zeros(len(authors))
    return weight * np.array([float(author in named) for author in authors])


def question_penalty(texts: Sequence[str], *, weight: float = QUESTION) -> Floats:
    """Return minus `weight` for texts that end with a question: they rarely contain an answer."""
    return 0.0 - weight * np.array([float(asks(text)) for text in texts], dtype=np.float64)


def from_question_before(
    scores: Floats,
    ids: Ids,
    links: Ids,
    *,
    authors: Sequence[str | None],
    texts: Sequence[str],
    weight: float = REPLY,
) -> Floats:
    """Return, for each answer, how far the preceding question by another author exceeds the median.

    A short answer contains few terms of its subject; the question before it has them. Questions below the
    median have no effect. `links` are pairs in the order of the thread. Bounded by the weight times the range
    of scores.
    """
    shares = np.zeros(len(scores))
    if not len(scores) or not len(links):
        return shares
    first, second = _distinct(_places(ids, links), len(ids))
    above = np.maximum(scores - np.median(scores), 0.0)
    for asking, answering in zip(first.tolist(), second.tolist(), strict=True):
        if authors[asking] != authors[answering] and asks(texts[asking]):
            shares[answering] = weight * above[asking]
    return shares


def from_role(roles: Sequence[str | None], *, role: str = "user", weight: float = ROLE) -> Floats:
    """Return `weight` for texts with the given role."""
    return weight * np.array([float(each == role) for each in roles], dtype=np.float64)


def asks(text: str) -> bool:
    """Return whether a text ends with a question."""
    for each in reversed(text):
        if each in _QUESTION_MARKS or each.isalnum():
            return not each.isalnum()
    return False


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _is_named(author: str, words: Sequence[str]) -> bool:
    name = _words(author)
    if not name or name in _ROLES:
        return False
    first = name[0] in words and name[0] not in _NO_NAMES
    return first or any(words[start : start + len(name)] == name for start in range(len(words)))


NEIGHBORS = 0.3
CLOSE_HOURS = 1.0
"""Maximum time in hours between two messages of an exchange."""


def from_neighbors(scores: Floats, ids: Ids, links: Ids, *, weight: float = NEIGHBORS) -> Floats:
    """Return, for each candidate, how far its neighbors in the thread score above the median candidate.

    `ids` are the distinct ids of the candidates in ascending order. `links` are pairs of ids (shape (n, 2)),
    of which one directly follows the other. Duplicate pairs count once. Pairs with an unknown id or with
    equal ids are ignored. Because scores are compared with the median, a text without neighbors keeps its
    rank among texts with typical neighbors. With two neighbors, a share is at most twice the weight times the
    range of scores, positive or negative.
    """
    if not len(scores) or not len(links):
        return np.zeros(len(scores))
    first, second = _distinct(np.sort(_places(ids, links), axis=1), len(ids))
    one, other = np.concatenate((first, second)), np.concatenate((second, first))
    shares = np.bincount(one, weight * (scores - np.median(scores))[other], len(scores))
    return np.asarray(shares, np.float64)


def from_exchange(
    scores: Floats, ids: Ids, links: Ids, *, authors: Sequence[str | None], hours: Floats, weight: float
) -> Floats:
    """Return, for each message, how far the adjacent messages by other authors score above the median.

    Messages count only within an hour, if both times are known (`hours`, NaN if unknown). Scores below the
    median have no effect. `links` are pairs in the order of the thread. At most twice the weight times the
    range of scores.
    """
    shares = np.zeros(len(scores))
    if not len(scores) or not len(links):
        return shares
    above = np.append(np.maximum(scores - np.median(scores), 0.0), 0.0)
    wrote = np.array([each or "" for each in authors] + [""])
    when = np.append(hours, np.nan)
    for beside in _steps(ids, links):
        other = beside[:-1]
        close = (wrote[other] != wrote[:-1]) & ~(np.abs(when[other] - when[:-1]) > CLOSE_HOURS)
        shares += weight * above[other] * close
    return shares


def from_chain(scores: Floats, ids: Ids, links: Ids, *, weight: float) -> Floats:
    """Return, for each message, how far the messages two steps before and after score above the median.

    If the rest of a reply chain is about the subject of the query, the message is part of a conversation
    about it. `links` are pairs in the order of the thread. At most twice the weight times the range of
    scores, positive or negative.
    """
    shares = np.zeros(len(scores))
    if not len(scores) or not len(links):
        return shares
    above = np.append(scores - np.median(scores), 0.0)
    for beside in _steps(ids, links):
        shares += weight * above[beside[beside[:-1]]]
    return shares


def _steps(ids: Ids, links: Ids) -> tuple[Ids, Ids]:
    """Return the positions of the texts before and after each candidate; the number of candidates if none."""
    nowhere = len(ids)
    before, after = np.full(nowhere + 1, nowhere), np.full(nowhere + 1, nowhere)
    first, second = _places(ids, links).T
    after[first], before[second] = second, first
    return before, after


def _places(ids: Ids, pairs: Ids) -> Ids:
    """Return the positions of both candidates of each pair, without pairs of others or of equal ids."""
    places = np.minimum(np.searchsorted(ids, pairs), len(ids) - 1)
    found = (ids[places] == pairs).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
    known: Ids = places[found]
    return known


def _distinct(places: Ids, number: int) -> tuple[Ids, Ids]:
    """Return both columns of the distinct pairs of positions below a number, in order."""
    return np.divmod(np.unique(places[:, 0] * number + places[:, 1]), number)


BEST = 10


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals of the raw scores of a query that decide how much to trust each retriever.

    `words_lead` is the lead of the best BM25 score over the tenth, as a share of the best (0 to 1).
    `cosine_lead` is the same difference of cosines. `best_cosine` is the highest cosine. `cosine_apart` is
    the mean cosine of the ten nearest minus that of the ten best by keywords. `words_apart` is the share of
    the best BM25 score that the nearest text lacks (0 to 1). `terms` is the number of distinct query terms.
    """

    words_lead: float
    cosine_lead: float
    best_cosine: float
    cosine_apart: float
    words_apart: float
    terms: int


SOME_UNKNOWN = 0.5
"""The share of unknown terms that few queries in the language of the texts exceed."""
FEW_TERMS = 4
"""Queries with fewer terms say too little for a vector."""


@dataclass(frozen=True, slots=True)
class FusionProfile:
    """Weights of the signals in the log odds of keywords against vectors.

    `scripts/train_fusion.py` learned the defaults on public sets; docs/adr/0002 has the figures. `unknown` is
    for the share of query terms beyond `SOME_UNKNOWN` that no text has, `short` for each term that a query
    lacks to `FEW_TERMS`; with `unknown`, only if texts have all of its terms.
    """

    intercept: float = -1.82
    words_lead: float = 3.47
    cosine_lead: float = -1.79
    best_cosine: float = -1.55
    cosine_apart: float = -5.47
    words_apart: float = 0.14
    terms: float = 0.63
    unknown: float = 0.0
    short: float = 0.0

    def with_unknown(self, share: float) -> "FusionProfile":
        """Return the weights for a query of whose terms no text has this share."""
        beyond = max(share - SOME_UNKNOWN, 0.0)
        return replace(self, intercept=self.intercept + self.unknown * beyond, short=0.0) if share else self

    def log_odds(self, signals: Signals) -> float:
        """Return log odds: above 0 keywords weigh more than vectors, below 0 less."""
        return (
            self.intercept
            + self.words_lead * signals.words_lead
            + self.cosine_lead * signals.cosine_lead
            + self.best_cosine * signals.best_cosine
            + self.cosine_apart * signals.cosine_apart
            + self.words_apart * signals.words_apart
            + self.terms * math.log(max(signals.terms, 1))
            + self.short * max(FEW_TERMS - signals.terms, 0)
        )


LEARNT = FusionProfile(short=0.5)
MULTILINGUAL = FusionProfile(
    intercept=-1.32,
    words_lead=0.54,
    cosine_lead=-2.13,
    best_cosine=-0.74,
    cosine_apart=-2.94,
    words_apart=-1.57,
    terms=0.33,
    unknown=-10.0,
    short=0.5,
)
"""Learned with multilingual-e5-small, also on queries in another language than the texts: docs/adr/0033.

Most terms of a query in another language are unknown. Then names and numbers must not decide.
"""
_LEARNT_FOR: Mapping[str, FusionProfile] = {"multilingual-e5-small": MULTILINGUAL}


def learnt_for(space: EmbeddingSpace | None) -> FusionProfile:
    """Return the weights that were learned with an embedding model, or those of all-MiniLM-L6-v2."""
    return LEARNT if space is None else _LEARNT_FOR.get(space.model, LEARNT)


CONVERSATION = FusionProfile(
    intercept=-0.22,
    words_lead=0.0,
    cosine_lead=0.0,
    best_cosine=0.0,
    cosine_apart=0.0,
    words_apart=0.0,
    terms=0.0,
)
"""For conversations between people in threads: keywords weigh 0.45, whatever the signals are."""


@dataclass(frozen=True, slots=True)
class Fused:
    """Both parts of each candidate's score, and the weight of keywords for this query (0 to 1)."""

    words: Floats
    vectors: Floats
    words_weight: float

    @property
    def score(self) -> Floats:
        """The sum of both parts, from -1 to 1."""
        return self.words + self.vectors


def fuse(words: Floats, cosine: Floats, *, terms: int, profile: FusionProfile = LEARNT) -> Fused:
    """Fuse the raw scores of a query's candidates, in any order.

    `words` is raw BM25 (at least 0), `cosine` is NaN for a candidate without a vector, and `terms` is the
    number of distinct query terms. BM25 scores are divided by the best one, so the best is 1. A candidate
    without a vector gets the median cosine of the others. If one retriever has no scores, the other decides
    alone.
    """
    best = float(words.max(initial=0.0))
    shares = words / best if best > 0.0 else np.zeros(len(words))
    known = ~np.isnan(cosine)
    if known.all():
        weight = _words_weight(words, cosine, best, terms, profile)
    else:
        weight = _words_weight(words[known], cosine[known], best, terms, profile)
        typical = float(np.median(cosine[known])) if known.any() else 0.0
        cosine = np.where(known, cosine, typical)
    return Fused(weight * shares, (1.0 - weight) * cosine, weight)


def signals(words: Floats, cosine: Floats, *, terms: int) -> Signals:
    """Return the signals of at least one candidate with a vector. The order of equal scores has no effect."""
    count = min(BEST, len(words))
    fewest, farthest = -words, -cosine
    by_words = np.lexsort((farthest, fewest))[:count]
    by_cosine = np.lexsort((fewest, farthest))[:count]
    best = max(float(words[by_words[0]]), np.finfo(np.float64).tiny)
    nearest = cosine[by_cosine]
    return Signals(
        words_lead=float(words[by_words[0]] - words[by_words[-1]]) / best,
        cosine_lead=float(nearest[0] - nearest[-1]),
        best_cosine=float(nearest[0]),
        cosine_apart=float(nearest.sum() / count - cosine[by_words].sum() / count),
        words_apart=1.0 - float(words[by_cosine[0]]) / best,
        terms=terms,
    )


def _words_weight(words: Floats, cosine: Floats, best: float, terms: int, profile: FusionProfile) -> float:
    """Signals of candidates that all have a vector. `best` is the highest BM25 score of all candidates."""
    if not len(words):
        return 1.0
    if not words.any():
        return 0.5 if best > 0.0 else 0.0
    log_odds = profile.log_odds(signals(words, cosine, terms=terms))
    return 1.0 / (1.0 + math.exp(min(max(-log_odds, -50.0), 50.0)))


WITHOUT = " without "
_VECTORS_ONLY = FusionProfile(intercept=-50.0)
WORDS_ONLY = FusionProfile(intercept=50.0)
"""Use keywords alone if any match: for a query in a language that the embedding model does not support."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The maximum that each part adds to a score or subtracts, for bases from about 0 to 1.

    `neighbors`, `conversation_flow` and `thread_completeness` are sums over two texts, so their bound is
    twice their weight.
    """

    neighbors: float = NEIGHBORS
    thread: float = THREAD
    speaker: float = SPEAKER
    role: float = ROLE
    question: float = QUESTION
    reply: float = REPLY
    date: float = DATE
    conversation_flow: float = 0.0
    thread_completeness: float = 0.0
    recency: float = 0.0
    same_channel: float = 0.0
    same_thread: float = 0.0


@dataclass(frozen=True, slots=True)
class Sum:
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
class Product:
    """Multiplies the base by factors for the same channel, the same thread, and exp(-decay x hours).

    Other fields are as in `Sum`. The base is the raw similarity if `fusion` says so.
    """

    same_channel: float
    same_thread: float
    decay: float
    min_similarity: float | None = None
    keeps_threads: bool = True
    fusion: FusionProfile | None = None


Profile = Sum | Product

PLAIN = Sum(
    people=Weights(), assistant=Weights(neighbors=0.15, role=0.2, question=0.0, reply=0.0), hours=24.0
)
"""For queries without a place and time."""

DEFAULT = Sum(
    people=Weights(
        conversation_flow=0.1, thread_completeness=0.1, recency=0.15, same_channel=0.1, same_thread=0.2
    ),
    assistant=Weights(
        neighbors=0.15, role=0.2, question=0.0, reply=0.0, recency=0.02, same_channel=0.1, same_thread=0.2
    ),
    hours=24.0,
)
"""Weights selected on public sets: docs/adr/0012."""

MULTIPLICATIVE = Product(
    same_channel=1.5, same_thread=1.3, decay=0.1, min_similarity=0.7, keeps_threads=True, fusion=_VECTORS_ONLY
)
"""A common formula for comparison: it drops even perfect matches after hours."""

PROFILES: Mapping[str, Profile] = {"default": DEFAULT, "multiplicative": MULTIPLICATIVE}


def profile_by_name(name: str) -> Profile:
    """Return a profile by name, optionally without some parts: `default without recency, same_channel`.

    `min_similarity` removes the minimum similarity of the profile. Raises InvalidInput.
    """
    whole, some, parts = name.partition(WITHOUT)
    if whole not in PROFILES:
        raise InvalidInput("profile", f"{whole!r} is unknown; expected one of {', '.join(PROFILES)}")
    profile = PROFILES[whole]
    for part in parts.split(",") if some else ():
        profile = _without(profile, part.strip())
    return profile


def part_names(name: str) -> tuple[str, ...]:
    """Return the parts of a profile that can be disabled."""
    match PROFILES[name]:
        case Sum():
            return tuple(each.name for each in fields(Weights))
        case Product():
            return ("recency", "same_channel", "same_thread", "min_similarity")


def _without(profile: Profile, part: str) -> Profile:
    if isinstance(profile, Sum):
        known = [each.name for each in fields(Weights)]
        if part in known:
            off = {part: 0.0}
            return replace(
                profile, people=replace(profile.people, **off), assistant=replace(profile.assistant, **off)
            )
        raise InvalidInput("profile", f"{part!r} is unknown; expected one of {', '.join(known)}")
    neutral: dict[str, Profile] = {
        "recency": replace(profile, decay=0.0),
        "same_channel": replace(profile, same_channel=1.0),
        "same_thread": replace(profile, same_thread=1.0),
        "min_similarity": replace(profile, min_similarity=None),
    }
    if part not in neutral:
        raise InvalidInput("profile", f"{part!r} is unknown; expected one of {', '.join(neutral)}")
    return neutral[part]


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


def weights_for(profile: Sum, documents: Sequence[Document]) -> Weights:
    """Return the weights for conversations with an assistant if most candidates are such, else for people."""
    assisted = sum(each.assisted for each in documents)
    return profile.assistant if 2 * assisted > len(documents) else profile.people


def added(standing: RankingContext, documents: Sequence[Document], weights: Weights) -> dict[str, Floats]:
    """Return the parts that a sum adds for the channel, thread and time of the query.

    There is no part for a channel or thread that the query context does not have.
    """
    profile = standing.profile
    if not isinstance(profile, Sum):
        return {}
    hours = _hours(standing.at, documents)
    decay = np.where(np.isnan(hours), 0.0, np.exp(-hours / profile.hours))
    maximum = {IN_CHANNEL: weights.same_channel, IN_THREAD: weights.same_thread}
    known = _inside(standing, documents)
    return {"recency": weights.recency * decay} | {name: maximum[name] * each for name, each in known.items()}


def multiplied(standing: RankingContext, documents: Sequence[Document], base: Floats) -> dict[str, Floats]:
    """Return the factors of a product as parts: channel, then thread, then time, each of the score so far.

    The base plus all parts is the product.
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


def kept_by_thread(documents: Sequence[Document], above: Sequence[bool]) -> list[bool]:
    """Return which candidates below the minimum similarity share a thread with one above it."""
    pairs = list(zip(documents, above, strict=True))
    threads = {(each.source, each.thread) for each, is_above in pairs if is_above}
    return [
        not is_above and each.thread is not None and (each.source, each.thread) in threads
        for each, is_above in pairs
    ]


def _hours(at: datetime, documents: Sequence[Document]) -> Floats:
    """Return the age of each text in hours; 0 for times in the future, NaN if unknown."""
    return np.array([_hours_since(at, each.occurred) for each in documents], dtype=np.float64)


def _hours_since(at: datetime, occurred: Period | None) -> float:
    return np.nan if occurred is None else max((at - occurred.start).total_seconds(), 0.0) / 3_600


def _inside(standing: RankingContext, documents: Sequence[Document]) -> dict[str, Floats]:
    """Return 1 for texts in the channel of the query, and 1 for texts in its thread."""
    channel, thread = standing.channel, standing.thread
    if channel is None:
        return {}
    here = [each.source in channel for each in documents]
    inside = {IN_CHANNEL: np.array(here, dtype=np.float64)}
    if thread is not None:
        same = [each.thread == thread for each in documents]
        inside[IN_THREAD] = inside[IN_CHANNEL] * np.array(same, dtype=np.float64)
    return inside
