"""Moments made from scored captions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.retrieval.moments import MAX_OVERLAP, TYPICAL_SECONDS, ScoredCaption, find_moments

UNSCORED = math.nan
TIMES = st.floats(-1e6, 1e6)
SEEN = st.builds(
    lambda stream, start, length, *scores: ScoredCaption(stream, start, start + length, *scores),
    st.sampled_from("ab"),
    TIMES,
    st.floats(0.0, 200.0),
    st.floats(-1.0, 1.0) | st.just(UNSCORED),
    st.floats(-1.0, 1.0) | st.just(UNSCORED),
    st.frozensets(st.sampled_from(["car", "red", "stop"])),
)


def every_six_seconds(*scores: float, stream: str = "talk") -> list[ScoredCaption]:
    return [
        ScoredCaption(stream, 6.0 * index, 6.0 * index + 6.0, score) for index, score in enumerate(scores)
    ]


def minutes(*scored: tuple[float, float, str]) -> list[ScoredCaption]:
    """Captions of a score, a similarity and words, each as long as an answer."""
    return [
        ScoredCaption(
            "camera", 60.0 * index, 60.0 * index + 60.0, score, similarity, frozenset(words.split())
        )
        for index, (score, similarity, words) in enumerate(scored)
    ]


def test_a_stretch_begins_before_its_best_caption_and_goes_on_after_it():
    best, *_ = find_moments(every_six_seconds(*[0.1] * 10, 0.9, *[0.1] * 10), limit=1)
    assert best.members == (8, 9, 10, 11, 12, 13)
    assert (best.start, best.end) == (48.0, 84.0)


def test_a_score_is_the_sum_of_its_parts():
    beside = [(0.2, 0.1, "")] * 9
    best, *_ = find_moments(minutes(*beside, (0.4, 0.3, "red"), (0.9, 0.5, "car"), *beside), limit=1)
    assert best.parts == {
        "best caption": 0.9,
        "like it around": pytest.approx(0.65 * (0.5 + 0.3 + 5 * 0.1) / 7),
        "words around": pytest.approx(0.25),
        "good beside": pytest.approx(0.4 * 0.2),
    }
    assert best.score == sum(best.parts.values())


def test_words_count_once_however_often_they_are_said_around_and_rare_ones_weigh_more():
    others = [(0.1, 0.1, "")] * 4
    captions = minutes((0.5, 0.1, "red"), (0.5, 0.1, "red"), *others, (0.5, 0.1, "car"), *others)
    shares = {moment.start: moment.parts["words around"] for moment in find_moments(captions, limit=20)}
    red, car = math.log(9.5 / 2.5 + 1), math.log(10.5 / 1.5 + 1)
    assert shares[0.0] == shares[60.0] == pytest.approx(0.25 * red / (red + car))
    assert shares[360.0] == pytest.approx(0.25 * car / (red + car))
    assert shares[240.0] == pytest.approx(0.25)
    assert shares[600.0] == 0.0


def test_what_was_not_found_is_as_unlike_as_the_worst_and_what_has_no_vector_as_the_typical():
    far = minutes((0.5, 0.9, ""), (0.5, 0.5, ""), (0.5, 0.1, ""), (0.4, UNSCORED, ""))
    around = 0.65 * (0.9 + 0.5 + 0.1 + 0.5) / 4
    assert find_moments(far, limit=1)[0].parts["like it around"] == pytest.approx(around)
    far = minutes((0.5, 0.9, ""), (0.5, 0.5, ""), (0.5, 0.1, ""), (UNSCORED, UNSCORED, ""))
    around = 0.65 * (0.9 + 0.5 + 0.1 + 0.1) / 4
    assert find_moments(far, limit=1)[0].parts["like it around"] == pytest.approx(around)


def test_of_equal_captions_the_one_among_those_about_the_same_wins():
    nothing = [(0.2, 0.2, "")] * 8
    for good, beside in (((0.7, 0.5, ""), (0.2, 0.4, "")), ((0.7, 0.5, "car"), (0.2, 0.2, "red"))):
        best = find_moments(minutes(*nothing, good, *nothing, beside, good, *nothing), limit=2)
        assert [moment.members for moment in best] == [(18,), (8,)]


def test_only_the_best_captions_speak_for_those_beside_them():
    many = every_six_seconds(*[0.9] * 11, 0.2, 0.9, 0.2)
    assert {moment.parts["good beside"] for moment in find_moments(many, limit=9)} == {0.0}


def test_a_caption_gains_no_more_than_it_is_good_itself():
    scores = [*[0.0] * 10, 0.05, 0.9, 0.8]
    minutes = [
        ScoredCaption("camera", 60.0 * minute, 60.0 * minute + 60.0, score)
        for minute, score in enumerate(scores)
    ]
    gains = {
        moment.parts["best caption"]: moment.parts["good beside"]
        for moment in find_moments(minutes, limit=20)
    }
    assert gains == {0.9: pytest.approx(0.4 * 0.85), 0.8: pytest.approx(0.4 * 0.95), 0.05: 0.05, 0.0: 0.0}


def test_of_equal_captions_the_one_in_good_company_wins():
    best, *_ = find_moments(every_six_seconds(0.7, *[0.1] * 20, 0.3, 0.3, 0.7, 0.3, 0.3), limit=1)
    assert 23 in best.members
    assert 0 not in best.members


def test_captions_as_long_as_an_answer_stand_alone():
    minutes = [
        ScoredCaption("camera", 60.0 * minute, 60.0 * minute + 62.0, 0.1 * minute) for minute in range(5)
    ]
    ranked = find_moments(minutes, limit=10)
    assert [moment.members for moment in ranked] == [(4,), (3,), (2,), (1,), (0,)]
    assert (ranked[0].start, ranked[0].end) == (240.0, 302.0)


def test_captions_over_one_another_are_answers_of_their_own():
    day, minute = ScoredCaption("day", 0.0, 300.0, 0.4), ScoredCaption("day", 20.0, 60.0, 0.6)
    assert [moment.members for moment in find_moments([day, minute], limit=5)] == [(1,), (1, 0)]


def test_streams_do_not_speak_for_each_other():
    alone = find_moments(every_six_seconds(0.5, 0.1, stream="b"), limit=1)
    both = find_moments(
        [*every_six_seconds(0.4, 0.4, stream="a"), *every_six_seconds(0.5, 0.1, stream="b")], limit=2
    )
    assert {moment.stream for moment in both} == {"a", "b"}
    assert next(moment for moment in both if moment.stream == "b").score == alone[0].score


def test_what_has_no_score_is_in_stretches_but_never_makes_one():
    ranked = find_moments(every_six_seconds(UNSCORED, 0.8, UNSCORED, UNSCORED, *[UNSCORED] * 20), limit=10)
    assert [moment.members for moment in ranked] == [(0, 1, 2, 3, 4)]
    assert find_moments(every_six_seconds(UNSCORED, UNSCORED), limit=10) == []


def test_instants_at_one_time_are_one_answer():
    (moment,) = find_moments([ScoredCaption("a", 5.0, 5.0, 0.3), ScoredCaption("a", 5.0, 5.0, 0.4)], limit=10)
    assert moment.members == (0, 1)
    assert (moment.start, moment.end) == (5.0, 5.0)


def test_nothing_seen_and_nothing_wanted():
    assert find_moments([], limit=10) == []
    assert find_moments(every_six_seconds(0.5), limit=0) == []


def test_far_captions_of_one_stream_are_not_of_one_stretch():
    (first, second) = find_moments(
        [ScoredCaption("a", 0.0, 2.0, 0.5), ScoredCaption("a", 9_000.0, 9_002.0, 0.5)], limit=10
    )
    assert (first.members, second.members) == ((0,), (1,))


@given(st.lists(SEEN, max_size=30), st.integers(0, 12))
def test_stretches_are_sound_whatever_is_seen(captions, limit):
    ranked = find_moments(captions, limit=limit)
    assert len(ranked) <= limit
    assert [moment.score for moment in ranked] == sorted((moment.score for moment in ranked), reverse=True)
    for moment in ranked:
        members = [captions[member] for member in moment.members]
        assert {caption.stream for caption in members} == {moment.stream}
        assert moment.start == min(caption.start for caption in members)
        assert moment.end == max(caption.end for caption in members)
        assert any(not math.isnan(caption.score) for caption in members)
    for rank, moment in enumerate(ranked):
        for other in ranked[:rank]:
            shared = min(moment.end, other.end) - max(moment.start, other.start)
            together = max(moment.end, other.end) - min(moment.start, other.start)
            assert moment.stream != other.stream or shared < MAX_OVERLAP * together


@given(st.lists(SEEN, max_size=20, unique_by=lambda caption: (caption.start, caption.end)), st.randoms())
def test_the_order_in_which_captions_are_seen_does_not_matter(captions, chance):
    order = list(range(len(captions)))
    chance.shuffle(order)
    ranked = find_moments([captions[position] for position in order], limit=50)
    assert [{order[member] for member in moment.members} for moment in ranked] == [
        set(moment.members) for moment in find_moments(captions, limit=50)
    ]


def test_a_day_of_captions_is_looked_at_at_once():
    day = [
        ScoredCaption("camera", 4.0 * index, 4.0 * index + 4.0, (index * 7_919 % 997) / 997)
        for index in range(21_600)
    ]
    ranked = find_moments(day, limit=100)
    assert len(ranked) == 100
    assert all(moment.end - moment.start <= TYPICAL_SECONDS + 8.0 for moment in ranked)
