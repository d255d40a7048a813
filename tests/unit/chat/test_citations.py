"""Citations of an answer, told from code and links, and held against what was given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.chat.citations import answer_metadata, find_citations
from conspectus.model.chat import ChatSource, Citations

GIVEN = tuple(
    ChatSource(number, f"d{number}", "s", f"k{number}", "t", number, number + 9, "…")
    for number in range(1, 7)
)


def list_numbers(answer: str) -> tuple[list[int], list[str]]:
    citations = find_citations(answer, GIVEN)
    return [source.number for source in citations.cited], list(citations.unknown)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The sky is blue [1].", [1]),
        ("The sky is blue [1, 3], and [2;4].", [1, 2, 3, 4]),
        ("Blue [2][1].", [1, 2]),
        ("Blue [2] [1]", [1, 2]),
        ("blue[2][1]. More", [1, 2]),
        ("blue【3】", [3]),
        ("blue 【3\u2020source】.", [3]),
        ("blue \uff3b\uff13\uff3d and [\u0663]", [3]),
        ("blue [2-4]", [2, 3, 4]),
        ("blue [2\u20134, 6]", [2, 3, 4, 6]),
        ("blue[1] and green[2].", [1, 2]),
        ("天空是蓝的[1]。草是绿的[2]而且", [1, 2]),
        ("It is so ([1]; see also [2]).", [1, 2]),
        ("[1] says so: [2]", [1, 2]),
        ('**[1]** and *[2]*, "so"[3].', [1, 2, 3]),
        ("Use `a[5]`[1].", [1]),
        ("Sources: [1], [2]", [1, 2]),
        ("```python\nx[5]\n```\nSo [1]", [1]),
    ],
)
def test_what_is_a_citation(answer: str, expected: list[int]) -> None:
    assert list_numbers(answer) == (expected, [])


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "a[1] and b_c[2] and x1[3]",
        "x = [1, 2]",
        "x[0][1]",
        "rows[1].name and rows[1] = 5 and f(x[1]) and print([1])",
        '{"ids": [1, 2]}',
        "[1](https://example.org) and ![1](x.png)",
        "[1]: https://example.org\n  [2]: https://example.org",
        "[^1] and [^1]: a footnote",
        "\\[1] and \\\\[1\\]",
        "the interval [0, 1], the year [2023], the range [3-1], the empty []",
        "[one] [1a] [1.5] [-1] [+1] [ ]",
        "`[1]` and ``a [1] ` b``",
        "```\n[1]\n```",
        "~~~ text\n[1]\n~~~~",
        "```python\nprint('never closed') # [1]",
        "[see][1] as Markdown refers",
        "[[1]]",
    ],
)
def test_what_is_none(answer: str) -> None:
    assert list_numbers(answer) == ([], [])


@pytest.mark.parametrize(
    ("answer", "valid", "invented"),
    [
        ("[7]", [], ["7"]),
        ("[1, 7] and [9] and [7]", [1], ["7", "9"]),
        ("[5-8]", [5, 6], ["8"]),
        ("[1-999]", [1, 2, 3, 4, 5, 6], ["999"]),
        ("[404] not found", [], ["404"]),
    ],
)
def test_a_number_that_was_not_given_is_invented(answer: str, valid: list[int], invented: list[str]) -> None:
    assert list_numbers(answer) == (valid, invented)


def test_without_sources_every_citation_is_invented() -> None:
    assert find_citations("so [1]", ()) == Citations((), ("1",))


def test_only_what_is_cited_is_kept_with_an_answer() -> None:
    assert answer_metadata("so [2], and [9]", GIVEN) == {
        "citations": [{"number": 2, "document": "d2", "key": "k2", "start": 2, "end": 11}]
    }
    assert answer_metadata("so", GIVEN) == {"citations": []}


@given(
    st.lists(
        st.sampled_from(["[1]", "[2, 9]", "`", "```\n", "~~~\n", "a", "[", "]", " ", "-", "\n", "["]),
        max_size=40,
    )
)
def test_any_answer_cites_only_what_was_given(pieces: list[str]) -> None:
    citations = find_citations("".join(pieces), GIVEN)
    assert set(citations.cited) <= set(GIVEN)
    assert all(int(number) not in range(1, 7) for number in citations.unknown)


def test_an_answer_made_to_be_slow_is_not() -> None:
    for piece in ("`", "``a", "[", "[1", "[1,", "[1]", "~~~\n", "```\n", "1-", "【"):
        assert len(find_citations(piece * 20_000, GIVEN).unknown) == 0
