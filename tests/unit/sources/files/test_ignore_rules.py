"""Patterns of `.gitignore`: the library's answers, and none that takes for ever."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

from conspectus.sources.files.ignore_rules import rules_in, spec_of

TOKENS = ["a", "b", "/", "*", "**", "?", "[ab]", "[a-c]", "[]a]", "!", "\\*", ".", "-", ".*"]
PATTERNS = st.lists(st.sampled_from(TOKENS), max_size=9).map("".join)
NAMES = ["a", "b", "ab", "ba", "aab", "a.b", "*", "]a", "-"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=6).map("/".join)
HOSTILE = ["*a" * 20 + "b", "*" * 60 + "b", "[a-z]*" * 20 + "0", "**/a*/" * 12 + "b", "a/**/" * 12 + "b"]


@given(st.lists(PATTERNS, min_size=1, max_size=3), PATHS, st.sampled_from(["", "/"]))
def test_the_answers_are_those_of_the_library(lines: list[str], path: str, end: str) -> None:
    try:
        usual = GitIgnoreSpec.from_lines(lines, backend="simple")
    except GitIgnorePatternError:
        with pytest.raises(GitIgnorePatternError):
            spec_of(lines)
        return
    assert spec_of(lines).check_file(path + end).include == usual.check_file(path + end).include


def test_a_class_is_no_slash() -> None:
    """As in Git; the library lets `[!a]` be one."""
    assert spec_of(["*[!a]*b"]).check_file("b/b").include is None
    assert spec_of(["*[!a]*b"]).check_file("c/xbb").include is True


def test_a_pattern_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("[z-a]\n!\n*.log\n")
    rules = rules_in(tmp_path, None)
    assert rules is not None and rules.ignore(tmp_path / "x.log", is_folder=False)


@pytest.mark.parametrize("pattern", HOSTILE)
@pytest.mark.parametrize("path", ["a" * 250, "a/" * 60 + "c", "a/aa/" * 30 + "a" * 200])
def test_no_pattern_takes_for_ever(pattern: str, path: str) -> None:
    rules = spec_of([pattern])
    begun = time.process_time()
    rules.check_file(path)
    assert time.process_time() - begun < 1
