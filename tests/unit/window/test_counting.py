"""Renderings are counted in parts; that is exact only where the encodings begin a token anyway."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.model.records import Chunk
from conspectus.providers.tokenizers import counter
from conspectus.window.counting import BORDER, Part, RenderingCounter
from conspectus.window.render import renderer_by_name

PIECES = (
    *(
        "\n",
        "\r",
        "\r\n",
        "\t",
        " ",
        "  ",
        "/",
        "//",
        "\\",
        "'",
        "'s",
        "'LL",
        "don't",
        "\x0b",
        "\x1c",
        "\x85",
    ),
    *("S", "a", "Ab", "aB", "1", "12345", "٣", "²", ".", "!!", "[", "<", "(", '"', "-", "_", "{", ":", "~"),
    *(
        "\u2028",
        "\u00a0",
        "日本",
        "\u0627",
        "é",
        "e\u0301",
        "\u0301",
        "👍🏽",
        "\u200b",
        "ǅ",
        "ʰ",
        "\ufe0f",
        "\x00",
    ),
)
TEXTS = st.lists(st.sampled_from(PIECES), min_size=2, max_size=200).map("".join)


def make_part(number: int, text: str, tokens: int) -> Part:
    chunk = Chunk(number, "d", 0, text, 0, len(text), tokens, "")
    return Part(f"[{number}] Title\n{text.rstrip()}", (chunk,))


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_a_token_begins_at_each_border_whatever_stands_around(encoding: str) -> None:
    count, chance, borders = counter(encoding), random.Random(encoding), 0
    for _ in range(20_000):
        text = "".join(chance.choices(PIECES, k=chance.randint(2, 15)))
        for border in BORDER.finditer(text):
            borders += 1
            before, after = text[: border.start()], text[border.start() :]
            assert count(before) + count(after) == count(text), (before, after)
    assert borders > 10_000


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=5), form=st.sampled_from(("text", "xml", "json", "messages"))
)
def test_parts_cost_together_what_the_whole_costs(encoding: str, texts: list[str], form: str) -> None:
    count, renderer = counter(encoding), renderer_by_name(form)
    exact = RenderingCounter(renderer, count, encoding)
    groups = [make_part(number, text, counter("o200k_base")(text)) for number, text in enumerate(texts, 1)]
    for some in (groups, groups[:1], groups[1:], groups):
        rendered = renderer.render_window([group.text for group in some])
        assert exact.tokens(rendered, some) == rendered.tokens(count)


def test_a_long_chunk_is_not_counted_again() -> None:
    counted: list[int] = []
    count, text = counter("o200k_base"), "The quick brown fox jumps over the lazy dog. " * 100
    exact = RenderingCounter(
        renderer_by_name("text"), lambda text: counted.append(len(text)) or count(text), "o200k_base"
    )
    groups = [make_part(1, text, count(text)), make_part(2, f"And {text}", count(f"And {text}"))]
    rendered = renderer_by_name("text").render_window([group.text for group in groups])
    assert exact.tokens(rendered, groups) == count(rendered.text)
    assert sum(counted) < 300
