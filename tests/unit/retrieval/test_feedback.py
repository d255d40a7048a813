"""The part of a score that follows from feedback on earlier queries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.model.ids import ChunkId, UserId
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Judgment
from conspectus.retrieval.feedback import FEEDBACK_WEIGHT, PastFeedback

SPACE = EmbeddingSpace("model", 2)
QUERY = "when does the backup run"


def make_judgment(
    chunk: int = 1,
    query: str = QUERY,
    *,
    user: str = "ann",
    used: bool = True,
    vector: tuple[float, float] | None = None,
    space: str = SPACE.name,
) -> Judgment:
    stored = None if vector is None else np.array(vector, dtype="<f2").tobytes()
    return Judgment(ChunkId(chunk), UserId(user), query, used, space if vector else None, stored)


def feedback_parts(
    *judgments: Judgment, words: str = QUERY, vector: tuple[float, float] | None = None
) -> dict[int, float]:
    past = PastFeedback(judgments, "english", SPACE)
    return dict(past.parts(words, None if vector is None else np.array(vector, dtype=np.float32)))


def test_one_person_moves_a_chunk_by_half_of_the_bound() -> None:
    assert feedback_parts(make_judgment(1), make_judgment(2, used=False)) == {
        1: FEEDBACK_WEIGHT / 2,
        2: -FEEDBACK_WEIGHT / 2,
    }


def test_many_people_move_it_further_and_never_beyond_the_bound() -> None:
    moved = [
        feedback_parts(*(make_judgment(user=f"user {n}") for n in range(count)))[1] for count in (1, 2, 9)
    ]
    assert moved == pytest.approx([FEEDBACK_WEIGHT / 2, FEEDBACK_WEIGHT * 2 / 3, FEEDBACK_WEIGHT * 0.9])


def test_people_who_disagree_cancel_each_other() -> None:
    assert feedback_parts(make_judgment(user="ann"), make_judgment(user="ben", used=False)) == {1: 0.0}


def test_a_person_counts_once_with_the_most_similar_query() -> None:
    other = make_judgment(query="when does the nightly backup run", used=False)
    assert feedback_parts(other, make_judgment()) == {1: FEEDBACK_WEIGHT / 2}
    assert feedback_parts(other, *[make_judgment()] * 5) == {1: FEEDBACK_WEIGHT / 2}


def test_the_terms_of_a_query_count_and_not_their_order() -> None:
    assert feedback_parts(make_judgment(), words="The backups: when do they run?") == {1: FEEDBACK_WEIGHT / 2}
    partly = feedback_parts(make_judgment(query="backup run night tape"), words="backup run night tape two")
    assert 0.0 < partly[1] < FEEDBACK_WEIGHT / 2
    assert feedback_parts(make_judgment(), words="when does the train run") == {}


def test_a_query_with_other_words_and_a_near_vector_is_similar() -> None:
    past = make_judgment(vector=(1.0, 0.0))
    near, far = (0.96, 0.28), (0.8, 0.6)
    boosts = feedback_parts(past, words="nightly dump schedule", vector=near)
    assert boosts[1] == pytest.approx(FEEDBACK_WEIGHT / 2 * (0.96 - 0.85) / 0.15, abs=1e-3)
    assert feedback_parts(past, words="nightly dump schedule", vector=far) == {}


def test_a_vector_of_another_model_is_ignored() -> None:
    past = make_judgment(vector=(1.0, 0.0), space="another")
    assert feedback_parts(past, words="nightly dump", vector=(1.0, 0.0)) == {}
    assert feedback_parts(past, vector=(1.0, 0.0)) == {1: FEEDBACK_WEIGHT / 2}


def test_a_query_of_stop_words_is_like_no_other() -> None:
    assert feedback_parts(make_judgment(query="what is it"), words="who are you") == {}


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["a b", "a b c", QUERY]), st.sampled_from("xyz"))),
    st.sampled_from(["a b", QUERY]),
)
def test_the_part_is_bounded(rows: list[tuple[int, str, str]], words: str) -> None:
    judgments = [make_judgment(chunk, query, user=user, used=chunk != 2) for chunk, query, user in rows]
    assert all(abs(part) < FEEDBACK_WEIGHT for part in feedback_parts(*judgments, words=words).values())
