"""Parts of a score from the channel, the thread and the time of a query, and their bounds."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.samples import NOON, prepared

from conspectus.model.ids import SourceId
from conspectus.model.records import Document, Period
from conspectus.retrieval.profiles import DEFAULT, MULTIPLICATIVE, AdditiveProfile, Profile, Weights
from conspectus.retrieval.ranking_context import (
    RankingContext,
    additive_parts,
    mark_kept_by_thread,
    multiplicative_parts,
    weights_for,
)

HERE, ELSEWHERE = SourceId("here"), SourceId("elsewhere")
ADDITIVE = AdditiveProfile(
    people=Weights(recency=0.1 / 0.8, same_channel=0.01 / 0.8), assistant=Weights(), hours=10.0
)
"""A weighted sum in use elsewhere: .8 similarity, .1 exp(-.1 x hours), .05 x 1.2 in the same channel."""


def message_at(
    *, hours: float | None = 0.0, source: SourceId = HERE, thread: str | None = None, role: str | None = None
) -> Document:
    occurred = None
    if hours is not None:
        at = NOON - timedelta(hours=hours)
        occurred = Period(at, at)
    plain = prepared("k", kind="message", occurred=occurred, thread=thread, role=role).document
    return replace(plain, source=source)


def ranking_context(
    profile: Profile = DEFAULT, *, thread: str | None = None, at: datetime = NOON
) -> RankingContext:
    return RankingContext(profile, at, frozenset({HERE}), thread)


def additive_scores(
    documents: Sequence[Document], cosines: Sequence[float], context: RankingContext
) -> list[float]:
    assert isinstance(context.profile, AdditiveProfile)
    parts = additive_parts(context, documents, context.profile.people)
    return list(np.array(cosines) + sum(parts.values()))


def multiplicative_scores(
    documents: Sequence[Document], cosines: Sequence[float], context: RankingContext
) -> list[float]:
    base = np.array(cosines)
    return list(base + sum(multiplicative_parts(context, documents, base).values()))


def test_the_weighted_sum_in_use_elsewhere_gives_its_own_numbers() -> None:
    documents = [message_at(hours=1 / 6), message_at(hours=1 / 12), message_at(source=ELSEWHERE)]
    scores = additive_scores(documents, [0.85, 0.75, 0.95], ranking_context(ADDITIVE))
    everyone_has = 0.1
    assert np.round(0.8 * np.array(scores) + everyone_has, 3).tolist() == [0.888, 0.809, 0.960]


@pytest.mark.parametrize("profile", [DEFAULT, MULTIPLICATIVE])
def test_a_new_message_of_the_same_channel_beats_a_closer_one_of_another(profile: Profile) -> None:
    documents = [message_at(), message_at(hours=1, source=ELSEWHERE)]
    count = additive_scores if isinstance(profile, AdditiveProfile) else multiplicative_scores
    first, second = count(documents, [0.95, 0.98], ranking_context(profile))
    assert first > second


def test_both_messages_of_a_thread_are_boosted_and_each_once() -> None:
    documents = [message_at(thread="t"), message_at(thread="t"), message_at(thread="u")]
    scores = multiplicative_scores(documents, [0.8, 0.7, 0.6], ranking_context(MULTIPLICATIVE, thread="t"))
    assert scores == pytest.approx([0.8 * 1.5 * 1.3, 0.7 * 1.5 * 1.3, 0.6 * 1.5])
    in_sum = additive_parts(ranking_context(thread="t"), documents, DEFAULT.people)["same_thread"]
    assert in_sum.tolist() == [DEFAULT.people.same_thread] * 2 + [0.0]


def test_a_product_is_the_sum_of_what_its_factors_change() -> None:
    documents = [message_at(hours=2, thread="t")]
    parts = multiplicative_parts(ranking_context(MULTIPLICATIVE, thread="t"), documents, np.array([0.9]))
    assert list(parts) == ["same_channel", "same_thread", "recency"]
    assert parts["same_channel"][0] == pytest.approx(0.9 * 0.5)
    assert parts["same_thread"][0] == pytest.approx(0.9 * 1.5 * 0.3)
    expected = 0.9 * 1.5 * 1.3 * np.exp(-0.2)
    assert 0.9 + sum(float(part[0]) for part in parts.values()) == pytest.approx(expected)


def test_a_thread_of_another_channel_with_the_same_name_is_another_thread() -> None:
    parts = additive_parts(
        ranking_context(thread="t"), [message_at(source=ELSEWHERE, thread="t")], DEFAULT.people
    )
    assert parts["same_thread"].tolist() == [0.0]


def test_without_a_channel_there_is_only_time() -> None:
    nowhere = RankingContext(DEFAULT, NOON)
    assert list(additive_parts(nowhere, [message_at()], DEFAULT.people)) == ["recency"]


@given(st.lists(st.none() | st.floats(-1e5, 1e5), max_size=20))
def test_time_adds_no_less_than_nothing_and_no_more_than_its_weight(ages: list[float | None]) -> None:
    shares = additive_parts(ranking_context(), [message_at(hours=age) for age in ages], DEFAULT.people)[
        "recency"
    ]
    assert ((shares >= 0.0) & (shares <= DEFAULT.people.recency)).all()
    unknown = [share for share, age in zip(shares, ages, strict=True) if age is None]
    assert unknown == [0.0] * len(unknown)


@pytest.mark.parametrize("ahead", [0.001, 1.0, 10 * 365 * 24])
def test_what_clocks_put_into_the_future_counts_as_now(ahead: float) -> None:
    now, future = [message_at(hours=0)], [message_at(hours=-ahead)]
    assert additive_scores(future, [0.5], ranking_context()) == additive_scores(now, [0.5], ranking_context())
    assert multiplicative_scores(future, [0.5], ranking_context(MULTIPLICATIVE)) == pytest.approx(
        multiplicative_scores(now, [0.5], ranking_context(MULTIPLICATIVE))
    )


@pytest.mark.parametrize("days", [30, 3_650])
def test_a_perfect_match_loses_no_more_than_the_weight_of_time(days: int) -> None:
    old, new = additive_scores([message_at(hours=24 * days), message_at()], [1.0, 0.8], ranking_context())
    assert new - 0.8 - (old - 1.0) <= DEFAULT.people.recency
    assert old > new


def test_what_is_older_never_has_more() -> None:
    ages = [0.0, 0.5, 1.0, 24.0, 24.0 * 30, 24.0 * 3_650]
    shares = additive_parts(ranking_context(), [message_at(hours=age) for age in ages], DEFAULT.people)[
        "recency"
    ]
    assert list(shares) == sorted(shares, reverse=True)


def test_nothing_to_rank() -> None:
    assert all(
        not len(part) for part in additive_parts(ranking_context(thread="t"), [], DEFAULT.people).values()
    )
    empty = np.zeros(0)
    assert all(
        not len(part)
        for part in multiplicative_parts(ranking_context(MULTIPLICATIVE, thread="t"), [], empty).values()
    )


def test_talk_is_with_an_assistant_where_most_of_it_is() -> None:
    people, user, assistant, bot = (message_at(role=role) for role in (None, "user", "assistant", "bot"))
    assert weights_for(DEFAULT, [user, assistant]) is DEFAULT.assistant
    assert weights_for(DEFAULT, [people, people, assistant]) is DEFAULT.people
    assert weights_for(DEFAULT, [bot, bot]) is DEFAULT.people
    assert weights_for(DEFAULT, []) is DEFAULT.people


def test_a_thread_keeps_what_is_below_the_floor_only_in_its_own_channel() -> None:
    documents = [
        message_at(thread="t"),
        message_at(thread="t"),
        message_at(thread="u"),
        message_at(thread="t", source=ELSEWHERE),
        message_at(),
        message_at(),
    ]
    above = [True, False, False, False, True, False]
    assert mark_kept_by_thread(ranking_context(), documents, above) == [
        False,
        True,
        False,
        False,
        False,
        False,
    ]


def test_the_thread_that_the_query_names_keeps_its_messages() -> None:
    documents = [message_at(thread="t"), message_at(thread="u"), message_at(source=ELSEWHERE, thread="t")]
    context = ranking_context(thread="t")
    assert mark_kept_by_thread(context, documents, [False] * 3) == [True, False, False]
    no_threads = replace(context, profile=replace(DEFAULT, keeps_threads=False))
    assert mark_kept_by_thread(no_threads, documents, [False, True, False]) == [True, False, False]
