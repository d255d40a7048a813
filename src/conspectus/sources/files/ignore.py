"""What Git ignores below a folder: `.gitignore` files and `.git/info/exclude`.

As in Git, the last pattern that matches decides, and a file in a deeper folder goes before one above it.
`.gitignore` counts outside a repository too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

REPOSITORY = ".git"
SOURCES = (".git/info/exclude", ".gitignore")


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of one folder, and of the folders above it."""

    folder: Path
    patterns: GitIgnoreSpec
    above: "IgnoreRules | None"

    def ignore(self, path: Path, *, is_folder: bool) -> bool:
        """Whether a path below the folder is ignored."""
        rules: IgnoreRules | None = self
        while rules is not None:
            name = path.relative_to(rules.folder).as_posix()
            decided = rules.patterns.check_file(f"{name}/" if is_folder else name).include
            if decided is not None:
                return decided
            rules = rules.above
        return False


def rules_in(folder: Path, above: IgnoreRules | None) -> IgnoreRules | None:
    """The rules for what is in a folder, under those for the folder itself."""
    lines = [line for source in SOURCES for line in _lines(folder / source)]
    return IgnoreRules(folder, GitIgnoreSpec.from_lines(lines), above) if lines else above


def rules_above(folder: Path) -> IgnoreRules | None:
    """The rules of the repository that a folder is in; none if they ignore the folder itself."""
    parents = [each for each in (folder, *folder.parents) if (each / REPOSITORY).exists()][:1]
    rules: IgnoreRules | None = None
    for root in parents:
        for part in reversed([each for each in folder.parents if each.is_relative_to(root)]):
            rules = rules_in(part, rules)
            inside = part / folder.relative_to(part).parts[0]
            if rules is not None and rules.ignore(inside, is_folder=True):
                return None
    return rules


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file that are patterns; of one that cannot be read, none."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError:
        return
    for line in text.splitlines():
        try:
            GitIgnoreSpec.from_lines([line])
        except GitIgnorePatternError:
            continue
        yield line
