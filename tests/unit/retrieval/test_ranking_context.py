"""Where and when a question is asked: what that adds, by how much at most, and what stays as it is."""

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
    in_thread_of_similar,
    multiplicative_parts,
    weights_for,
)

HERE, ELSEWHERE = SourceId("here"), SourceId("elsewhere")
ADDITIVE = AdditiveProfile(
    people=Weights(recency=0.1 / 0.8, same_channel=0.01 / 0.8), assistant=Weights(), hours=10.0
)
"""A weighted sum in use elsewhere: .8 similarity, .1 exp(-.1 x hours), .05 x 1.2 in the same channel."""


def said(
    *, hours: float | None = 0.0, source: SourceId = HERE, thread: str | None = None, role: str | None = None
) -> Document:
    occurred = None
    if hours is not None:
        at = NOON - timedelta(hours=hours)
        occurred = Period(at, at)
    plain = prepared("k", kind="message", occurred=occurred, thread=thread, role=role).document
    return replace(plain, source=source)


def standing(profile: Profile = DEFAULT, *, thread: str | None = None, at: datetime = NOON) -> RankingContext:
    return RankingContext(profile, at, frozenset({HERE}), thread)


def sums(documents: Sequence[Document], cosines: Sequence[float], asked: RankingContext) -> list[float]:
    assert isinstance(asked.profile, AdditiveProfile)
    parts = additive_parts(asked, documents, asked.profile.people)
    return list(np.array(cosines) + sum(parts.values()))


def products(documents: Sequence[Document], cosines: Sequence[float], asked: RankingContext) -> list[float]:
    base = np.array(cosines)
    return list(base + sum(multiplicative_parts(asked, documents, base).values()))


def test_the_weighted_sum_in_use_elsewhere_gives_its_own_numbers() -> None:
    documents = [said(hours=1 / 6), said(hours=1 / 12), said(source=ELSEWHERE)]
    scores = sums(documents, [0.85, 0.75, 0.95], standing(ADDITIVE))
    everyone_has = 0.1
    assert np.round(0.8 * np.array(scores) + everyone_has, 3).tolist() == [0.888, 0.809, 0.960]


@pytest.mark.parametrize("profile", [DEFAULT, MULTIPLICATIVE])
def test_a_new_message_of_the_same_channel_beats_a_closer_one_of_another(profile: Profile) -> None:
    documents = [said(), said(hours=1, source=ELSEWHERE)]
    count = sums if isinstance(profile, AdditiveProfile) else products
    first, second = count(documents, [0.95, 0.98], standing(profile))
    assert first > second


def test_both_messages_of_a_thread_are_boosted_and_each_once() -> None:
    documents = [said(thread="t"), said(thread="t"), said(thread="u")]
    scores = products(documents, [0.8, 0.7, 0.6], standing(MULTIPLICATIVE, thread="t"))
    assert scores == pytest.approx([0.8 * 1.5 * 1.3, 0.7 * 1.5 * 1.3, 0.6 * 1.5])
    in_sum = additive_parts(standing(thread="t"), documents, DEFAULT.people)["same_thread"]
    assert in_sum.tolist() == [DEFAULT.people.same_thread] * 2 + [0.0]


def test_a_product_is_the_sum_of_what_its_factors_change() -> None:
    documents = [said(hours=2, thread="t")]
    parts = multiplicative_parts(standing(MULTIPLICATIVE, thread="t"), documents, np.array([0.9]))
    assert list(parts) == ["same_channel", "same_thread", "recency"]
    assert parts["same_channel"][0] == pytest.approx(0.9 * 0.5)
    assert parts["same_thread"][0] == pytest.approx(0.9 * 1.5 * 0.3)
    whole = 0.9 * 1.5 * 1.3 * np.exp(-0.2)
    assert 0.9 + sum(float(each[0]) for each in parts.values()) == pytest.approx(whole)


def test_a_thread_of_another_channel_with_the_same_name_is_another_thread() -> None:
    parts = additive_parts(standing(thread="t"), [said(source=ELSEWHERE, thread="t")], DEFAULT.people)
    assert parts["same_thread"].tolist() == [0.0]


def test_without_a_channel_there_is_only_time() -> None:
    nowhere = RankingContext(DEFAULT, NOON)
    assert list(additive_parts(nowhere, [said()], DEFAULT.people)) == ["recency"]


@given(st.lists(st.none() | st.floats(-1e5, 1e5), max_size=20))
def test_time_adds_no_less_than_nothing_and_no_more_than_its_weight(ages: list[float | None]) -> None:
    shares = additive_parts(standing(), [said(hours=age) for age in ages], DEFAULT.people)["recency"]
    assert ((shares >= 0.0) & (shares <= DEFAULT.people.recency)).all()
    unknown = [share for share, age in zip(shares, ages, strict=True) if age is None]
    assert unknown == [0.0] * len(unknown)


@pytest.mark.parametrize("ahead", [0.001, 1.0, 10 * 365 * 24])
def test_what_clocks_put_into_the_future_counts_as_now(ahead: float) -> None:
    now, future = [said(hours=0)], [said(hours=-ahead)]
    assert sums(future, [0.5], standing()) == sums(now, [0.5], standing())
    assert products(future, [0.5], standing(MULTIPLICATIVE)) == pytest.approx(
        products(now, [0.5], standing(MULTIPLICATIVE))
    )


@pytest.mark.parametrize("days", [30, 3_650])
def test_a_perfect_match_loses_no_more_than_the_weight_of_time(days: int) -> None:
    old, new = sums([said(hours=24 * days), said()], [1.0, 0.8], standing())
    assert new - 0.8 - (old - 1.0) <= DEFAULT.people.recency
    assert old > new


def test_what_is_older_never_has_more() -> None:
    ages = [0.0, 0.5, 1.0, 24.0, 24.0 * 30, 24.0 * 3_650]
    shares = additive_parts(standing(), [said(hours=age) for age in ages], DEFAULT.people)["recency"]
    assert list(shares) == sorted(shares, reverse=True)


def test_nothing_to_rank() -> None:
    assert all(not len(each) for each in additive_parts(standing(thread="t"), [], DEFAULT.people).values())
    empty = np.zeros(0)
    assert all(
        not len(each)
        for each in multiplicative_parts(standing(MULTIPLICATIVE, thread="t"), [], empty).values()
    )


def test_talk_is_with_an_assistant_where_most_of_it_is() -> None:
    people, user, assistant, bot = (said(role=each) for each in (None, "user", "assistant", "bot"))
    assert weights_for(DEFAULT, [user, assistant]) is DEFAULT.assistant
    assert weights_for(DEFAULT, [people, people, assistant]) is DEFAULT.people
    assert weights_for(DEFAULT, [bot, bot]) is DEFAULT.people
    assert weights_for(DEFAULT, []) is DEFAULT.people


def test_a_thread_keeps_what_is_below_the_floor_only_in_its_own_channel() -> None:
    documents = [
        said(thread="t"),
        said(thread="t"),
        said(thread="u"),
        said(thread="t", source=ELSEWHERE),
        said(),
        said(),
    ]
    above = [True, False, False, False, True, False]
    assert in_thread_of_similar(documents, above) == [False, True, False, False, False, False]
