"""Profiles by name, and profiles without some of their parts."""

from dataclasses import fields

import pytest

from conspectus.errors import InvalidInput
from conspectus.retrieval.profiles import (
    DEFAULT,
    MULTIPLICATIVE,
    PROFILES,
    AdditiveProfile,
    MultiplicativeProfile,
    Weights,
    part_names,
    profile_by_name,
)

WEIGHTS = [weight.name for weight in fields(Weights)]


def test_profiles_are_found_by_name() -> None:
    assert profile_by_name("default") is DEFAULT
    assert profile_by_name("multiplicative") is MULTIPLICATIVE


@pytest.mark.parametrize("name", ["", "Default", "best", "without flow", "default  without flow"])
def test_an_unknown_profile_is_named(name: str) -> None:
    with pytest.raises(InvalidInput, match="expected one of default, multiplicative"):
        profile_by_name(name)


def test_the_formula_in_use_elsewhere_has_its_own_numbers() -> None:
    assert (MULTIPLICATIVE.same_channel, MULTIPLICATIVE.same_thread) == (1.5, 1.3)
    assert (MULTIPLICATIVE.decay, MULTIPLICATIVE.min_similarity, MULTIPLICATIVE.keeps_threads) == (
        0.1,
        0.7,
        True,
    )


@pytest.mark.parametrize("part", part_names("default"))
def test_a_part_that_is_switched_off_weighs_nothing_and_the_others_as_before(part: str) -> None:
    profile = profile_by_name(f"default without {part}")
    assert isinstance(profile, AdditiveProfile)
    off = part.replace(" ", "_")
    for without_part, usual in ((profile.people, DEFAULT.people), (profile.assistant, DEFAULT.assistant)):
        assert getattr(without_part, off) == 0.0
        assert all(
            getattr(without_part, weight) == getattr(usual, weight) for weight in WEIGHTS if weight != off
        )


def test_several_parts_can_be_switched_off() -> None:
    profile = profile_by_name("default without conversation_flow, same_channel,recency")
    assert isinstance(profile, AdditiveProfile)
    assert (profile.people.conversation_flow, profile.people.same_channel, profile.people.recency) == (
        0.0,
        0.0,
        0.0,
    )
    assert profile.people.thread_completeness == DEFAULT.people.thread_completeness


def test_factors_that_are_switched_off_change_nothing() -> None:
    profile = profile_by_name(f"multiplicative without {', '.join(part_names('multiplicative'))}")
    assert isinstance(profile, MultiplicativeProfile)
    assert (profile.same_channel, profile.same_thread, profile.decay, profile.min_similarity) == (
        1.0,
        1.0,
        0.0,
        None,
    )


@pytest.mark.parametrize("name", ["default without", "default without ", "default without sleep, flow"])
def test_an_unknown_part_is_named(name: str) -> None:
    with pytest.raises(InvalidInput):
        profile_by_name(name)


def test_a_floor_is_no_part_of_a_profile_without_one() -> None:
    with pytest.raises(InvalidInput, match="'floor' is unknown"):
        profile_by_name("default without floor")


@pytest.mark.parametrize("name", PROFILES)
def test_what_can_be_switched_off_can_be(name: str) -> None:
    for part in part_names(name):
        assert profile_by_name(f"{name} without {part}") != PROFILES[name]


def test_no_part_for_where_and_when_outweighs_a_perfect_match() -> None:
    for weights in (DEFAULT.people, DEFAULT.assistant):
        assert weights.recency + weights.same_channel + weights.same_thread < 0.5
        assert all(getattr(weights, weight) >= 0.0 for weight in WEIGHTS)
