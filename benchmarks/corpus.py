"""Real text that every machine with Python has, cut into paragraphs: for measuring, not for judging answers.

Paragraphs come from the source code and documents below the given folders, each about 250 characters,
no two alike, in an order that depends only on the files.
"""

import hashlib
import os
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

SUFFIXES = {".py", ".pyi", ".rst", ".md", ".txt", ".h", ".c", ".html", ".js", ".json", ".xml", ".pod"}
SHORTEST, LONGEST = 120, 400
SEPARATOR = re.compile(r"\n\s*\n")


def default_folders() -> list[Path]:
    """The standard library, installed packages and the system's documents."""
    names = [sys.base_prefix, sys.prefix, "/usr/share", "/usr/lib", "/usr/include", str(Path.home())]
    return [Path(name) for name in dict.fromkeys(names) if Path(name).is_dir()]


def paragraphs(number: int, folders: Sequence[Path] | None = None) -> list[str]:
    """`number` different paragraphs, shuffled so that neighbors come from different files."""
    by_digest: dict[bytes, str] = {}
    for folder in folders or default_folders():
        for text in _texts(folder):
            for paragraph in _cut(text):
                by_digest.setdefault(hashlib.blake2b(paragraph.encode(), digest_size=12).digest(), paragraph)
            if len(by_digest) >= number * 1.2:
                return _shuffled(by_digest, number)
    if len(by_digest) < number:
        raise SystemExit(f"only {len(by_digest)} paragraphs below the folders, {number} are needed")
    return _shuffled(by_digest, number)


def questions(texts: Sequence[str], number: int, seed: int = 7) -> list[str]:
    """Runs of 5 to 9 words out of random paragraphs."""
    chance = random.Random(seed)
    result: list[str] = []
    while len(result) < number:
        words = re.findall(r"\w{2,}", chance.choice(texts))
        if len(words) > 12:
            start = chance.randrange(len(words) - 9)
            result.append(" ".join(words[start : start + chance.randint(5, 9)]))
    return result


def _texts(folder: Path) -> Iterator[str]:
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(root) / name
            if path.suffix in SUFFIXES and path.is_file() and path.stat().st_size < 2_000_000:
                yield path.read_text(encoding="utf-8", errors="ignore")


def _cut(text: str) -> Iterator[str]:
    buffer = ""
    for block in SEPARATOR.split(text):
        block = block.strip()
        buffer = f"{buffer}\n{block}" if buffer else block
        if len(buffer) >= SHORTEST:
            yield from (buffer[at : at + LONGEST] for at in range(0, min(len(buffer), 8 * LONGEST), LONGEST))
            buffer = ""


def _shuffled(by_digest: dict[bytes, str], number: int) -> list[str]:
    texts = [by_digest[key] for key in sorted(by_digest)][:number]
    random.Random(11).shuffle(texts)
    return texts
