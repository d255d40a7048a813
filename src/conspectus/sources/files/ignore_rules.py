"""The patterns of `.gitignore` and `.git/info/exclude`, and which paths they ignore."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from conspectus.deferred import dataclass

GIT_FOLDER = ".git"
IGNORE_FILES = (".git/info/exclude", ".gitignore")
NEGATED_CLASS: Final = re.compile(r"(?<!\[)\[\^")


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of one folder, and of its parent folders."""

    folder: Path
    patterns: GitIgnoreSpec
    above: "IgnoreRules | None"

    def ignore(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether a path below the folder is ignored."""
        rules: IgnoreRules | None = self
        while rules is not None:
            name = os.fsencode(path.relative_to(rules.folder)).decode("utf-8", "replace")
            is_ignored = rules.patterns.check_file(f"{name}/" if is_folder else name).include
            if is_ignored is not None:
                return is_ignored
            rules = rules.above
        return False


def spec_of(lines: Sequence[str]) -> GitIgnoreSpec:
    """Compile patterns for RE2, in which no pattern takes long. Raises GitIgnorePatternError."""
    patterns = GitIgnoreSpec.from_lines(lines, backend="simple").patterns
    # The library lets a class such as `[!a]` match a slash, other than Git.
    compiled = [
        GitIgnoreSpecPattern(re.compile(NEGATED_CLASS.sub("[^/", pattern.regex.pattern)), pattern.include)
        for pattern in patterns
        if pattern.regex is not None
    ]
    return GitIgnoreSpec(compiled, backend="re2")


def rules_in(folder: Path, above: IgnoreRules | None) -> IgnoreRules | None:
    """Return the rules for the content of a folder, given those of its parent."""
    lines = [line for source in IGNORE_FILES for line in _valid_patterns(folder / source)]
    return IgnoreRules(folder, spec_of(lines), above) if lines else above


def rules_above(folder: Path) -> IgnoreRules | None:
    """Return the rules of the repository that contains a folder; None if they ignore the folder itself."""
    parents = [parent for parent in (folder, *folder.parents) if (parent / GIT_FOLDER).exists()][:1]
    rules: IgnoreRules | None = None
    for root in parents:
        for part in reversed([parent for parent in folder.parents if parent.is_relative_to(root)]):
            rules = rules_in(part, rules)
            inside = part / folder.relative_to(part).parts[0]
            if rules is not None and rules.ignore(inside, is_folder=True):
                return None
    return rules


def _valid_patterns(path: Path) -> Iterator[str]:
    """Return the patterns in a file; empty if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            spec_of([line])
        except (GitIgnorePatternError, re.error):
            continue
        yield line
