"""The search of the site knows what people type."""

from pathlib import Path

from scripts.docs.search_words import SEARCH_WORDS, insert_search_words

ROOT = Path(__file__).resolve().parents[2]


def test_the_words_of_a_page_stand_below_its_title() -> None:
    assert insert_search_words("# Title\n\nText.\n", ["sso", "log in"]) == (
        "# Title\n\n```{index} ! sso, ! log in\n```\n\nText.\n"
    )


def test_a_page_without_a_title_is_unchanged() -> None:
    assert insert_search_words("Text.\n", ["sso"]) == "Text.\n"


def test_every_page_with_words_has_a_title() -> None:
    pages = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in SEARCH_WORDS}
    assert [name for name, text in pages.items() if insert_search_words(text, ["sso"]) == text] == []


def test_a_word_leads_to_one_page() -> None:
    words = [word for words in SEARCH_WORDS.values() for word in words]
    assert sorted(set(words)) == sorted(words)
    assert [word for word in words if word != word.lower().strip() or "," in word] == []
