"""Thinking is removed from an answer, wherever its tags are split."""

import pytest

from conspectus.providers.thinking import ThinkingFilter


def answer(*pieces: str) -> str:
    thinking = ThinkingFilter()
    return "".join([*map(thinking.answer_in, pieces), thinking.rest()])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>hm</think>Paris", "Paris"),
        ("\n<think>\nhm < 3\n</think>\n\nParis", "Paris"),
        ("<think></think>Paris <think>x</think>", "Paris <think>x</think>"),
        ("The tag <think> begins it", "The tag <think> begins it"),
        ("<thinking aloud", "<thinking aloud"),
        ("<thi", "<thi"),
        ("  Paris ", "  Paris "),
        ("<think>never ends", ""),
        ("<think>a</think>", ""),
        ("<think>a</think> \n", ""),
        ("", ""),
    ],
)
def test_however_it_is_cut(text: str, expected: str) -> None:
    assert answer(text) == answer(*text) == expected
    for cut in range(len(text)):
        assert answer(text[:cut], text[cut:]) == expected
