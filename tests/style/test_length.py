"""The pages that a user reads are few words: what is added there is cut elsewhere."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("get-started", "guides", "concepts", "operate")
MAX_WORDS = 35_636
"""Of all pages together, as `wc -w` counts; 41,800 before this rule."""
LONGEST_PAGES_SHOWN = 12


def test_the_pages_for_users_are_short() -> None:
    pages = [page for folder in FOLDERS for page in (ROOT / "docs" / folder).glob("*.md")]
    words = {
        page.relative_to(ROOT).as_posix(): len(page.read_text(encoding="utf-8").split()) for page in pages
    }
    longest_pages = sorted(words, key=words.__getitem__, reverse=True)[:LONGEST_PAGES_SHOWN]
    assert sum(words.values()) <= MAX_WORDS, (
        "cut as many words as you added: what two pages say, what the generated reference has, history,"
        f" and reasons that belong to an ADR. The longest pages: {longest_pages}"
    )
