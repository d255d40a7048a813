"""docs/guides/frameworks.md has a program for each library; tests/docs/test_pages.py runs them."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "frameworks.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_page_has_a_program_for_each_library() -> None:
    assert [re.findall(r"conspectus\.integrations\.(\w+)", program)[-1] for program in PROGRAMS] == [
        "langchain",
        "langgraph",
        "llama_index",
        "haystack",
        "pydantic_ai",
        "openai_agents",
    ]
