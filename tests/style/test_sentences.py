"""Pages are written in short sentences: one idea each, at most 25 words, with few exceptions."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(
        page
        for folder in ("get-started", "guides", "concepts", "operate")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
]
MAX_WORDS = 25
MAX_LONG_SHARE = 0.01
"""Of all sentences; they were 1.6 % before this rule."""
NOTES = ROOT / "benchmarks" / "NOTES.md"
MAX_LONG_SHARE_OF_NOTES = 0.05
"""Of the notes for developers, which are lists of figures; they were 12.9 % before this rule."""
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^(?: {4}.*\n)+", re.MULTILINE)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"`[^`]*`")
LIST_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.|:) ", re.MULTILINE)
NOT_PROSE = ("#", "|", "<!--", ":maxdepth")
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z0-9\"“(])")


def sentences_of(text: str) -> list[str]:
    """Sentences of prose and lists; code counts as one word, and code blocks and tables not at all."""
    text = INDENTED.sub("\n", FENCED.sub("\n\n", text))
    text = CODE.sub("Code", LINK.sub(r"\1", text)).replace("**", "")
    prose = "\n".join("" if line.startswith(NOT_PROSE) else line for line in text.splitlines())
    paragraphs = re.split(r"\n\s*\n", LIST_ITEM.sub("\n\n", prose))
    return [
        sentence
        for paragraph in paragraphs
        for sentence in SENTENCE_END.split(" ".join(paragraph.split()))
        if sentence
    ]


def word_count(sentence: str) -> int:
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One `a. b` here. Two.", ["One Code here.", "Two."]),
        ("- One\n  line.\n- Two\n\n| a. | B. |\n", ["One line.", "Two"]),
        ("See [A. B](c.md).\n\n```sh\nNo. Yes.\n```\n\n    No. Yes.\n", ["See A.", "B."]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    assert sentences_of(text) == sentences


def test_few_sentences_of_pages_are_long() -> None:
    sentences = [
        (page.relative_to(ROOT).as_posix(), sentence)
        for page in PAGES
        for sentence in sentences_of(page.read_text(encoding="utf-8"))
    ]
    long_sentences = [(page, text) for page, text in sentences if word_count(text) > MAX_WORDS]
    assert len(sentences) > 1_000
    assert len(long_sentences) <= MAX_LONG_SHARE * len(sentences), long_sentences


def test_few_sentences_of_the_notes_are_long() -> None:
    sentences = sentences_of(NOTES.read_text(encoding="utf-8"))
    long_sentences = [text for text in sentences if word_count(text) > MAX_WORDS]
    assert len(sentences) > 1_000
    assert len(long_sentences) <= MAX_LONG_SHARE_OF_NOTES * len(sentences), long_sentences
