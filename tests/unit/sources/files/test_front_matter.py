"""Front matter of any form is read or is text, and expands to nothing enormous."""

import pytest

from conspectus.sources.connectors.markdown_pages import page_id, read_page
from conspectus.sources.files.front_matter import split_front_matter

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "block",
    [
        BOMB,
        "a: &a {k: v}\nb:\n  <<: [*a, *a]\n",
        "a: " + "[" * 5_000,
        "a: " + "{a: " * 5_000,
        "? [a, b]\n: c\n",
        "a: 'unclosed\n",
        "\tid: tabs\n",
        'a: "\\UFFFFFFFF"\n',
        "- a list\n- and no mapping\n",
        "just text",
        "a: b\nc",
        "a: b\x00\n",
        "%YAML 9.9\n",
    ],
    ids=range(13),
)
def test_hostile_front_matter_is_text(block: str) -> None:
    text = f"---\n{block}\n---\nBody."
    assert split_front_matter(text) == ({}, text)
    assert (page_id(text), read_page(text, "s/page.md").text) == (None, text)


def test_tags_of_other_languages_are_strings() -> None:
    text = "---\nx: !!python/object/apply:os.system ['false']\ny: !!int '1'\nid: !!binary aGk=\n---\nBody."
    fields, body = split_front_matter(text)
    assert (fields, body) == ({"x": ["false"], "y": "1", "id": "aGk="}, "Body.")


@pytest.mark.parametrize("text", ["---\n---\nBody.", "---\n# a comment\n---\nBody.", "---   \n\n...\nBody."])
def test_empty_front_matter_is_left_out(text: str) -> None:
    assert split_front_matter(text) == ({}, "Body.")


@pytest.mark.parametrize(
    "text", ["", "---", "---\n", "---\na: b\n", "a: b\n---\n", " ---\na: b\n---\n", "----\na: b\n----\n"]
)
def test_what_is_no_front_matter_is_text(text: str) -> None:
    assert split_front_matter(text) == ({}, text)
