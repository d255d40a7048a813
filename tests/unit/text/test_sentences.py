"""Where sentences begin and end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.text.sentences import sentences

WRAPPED = "A sentence that goes on for more than forty\ncharacters ends here. Another one that is long"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t", []),
        ("One. Two!  Three?\nFour", ["One.", "Two!", "Three?", "Four"]),
        ('He said "yes." (Then left.) v1.2 stays', ['He said "yes."', "(Then left.)", "v1.2 stays"]),
        ("# Heading\ntext\n\nmore", ["# Heading", "text", "more"]),
        ("一。二「三。」", ["一。", "二「三。」"]),
        (WRAPPED, [WRAPPED[:65], WRAPPED[66:]]),
        (f"{'x' * 50}\n- item\n{'y' * 50}\n2. item", ["x" * 50, "- item", "y" * 50, "2. item"]),
    ],
)
def test_sentences_and_lines(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == expected


@given(st.text(alphabet=st.sampled_from('aB .!?\n"。\u00a0é9-')))
def test_sentences_hold_everything_that_is_visible_in_order(text: str) -> None:
    spans = list(sentences(text))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
    assert spans == sorted(spans)


@pytest.mark.parametrize("unit", ["x", ". ", "\n", "。", "x" * 50 + "\n", '."'])
def test_sentences_of_a_large_monotonous_text_are_found(unit: str) -> None:
    assert sum(1 for _ in sentences(unit * 100_000)) <= 100_001
