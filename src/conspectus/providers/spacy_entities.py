"""Names found by a spaCy pipeline that lies in a folder; nothing is ever downloaded."""

import asyncio
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from conspectus.errors import InvalidInput, MissingExtra
from conspectus.model.graph import Mention
from conspectus.providers.entity_spans import KeyOf, Labelled, found_in, pieces

SPACY: Final = "spacy:"
LONGEST: Final = 100_000
"""A pipeline takes memory by the length of a text; longer ones are read in pieces."""


class SpacyNames:
    """The entities of a pipeline's named-entity components.

    Raises MissingExtra without spaCy, InvalidInput where the folder holds no pipeline.
    """

    def __init__(self, folder: Path, key_of: KeyOf) -> None:
        self._pipeline = _load(folder)
        self._name = f"{SPACY}{folder}"
        self._key_of = key_of
        self._turn = asyncio.Lock()

    @property
    def name(self) -> str:
        """What it is called in settings and reports."""
        return self._name

    async def extract(self, texts: Sequence[str]) -> Sequence[Sequence[Mention]]:
        """For each text its names, in order and without overlaps."""
        async with self._turn:
            return await asyncio.to_thread(self._extract, texts)

    async def close(self) -> None:
        """Nothing is held open."""

    def _extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        cut = [
            (number, at, piece) for number, text in enumerate(texts) for at, piece in pieces(text, LONGEST)
        ]
        spans: list[list[Labelled]] = [[] for _ in texts]
        read = self._pipeline.pipe(piece for _, _, piece in cut)
        for (number, at, _), document in zip(cut, read, strict=True):
            spans[number] += [
                Labelled(at + each.start_char, at + each.end_char, each.label_) for each in document.ents
            ]
        return [found_in(text, of, self._key_of) for text, of in zip(texts, spans, strict=True)]


def _load(folder: Path) -> Any:
    try:
        spacy = importlib.import_module("spacy")
    except ImportError as fault:
        raise MissingExtra("spacy", "spacy") from fault
    if not (folder / "config.cfg").is_file():
        raise InvalidInput("names", f"{folder} holds no spaCy pipeline")
    try:
        return spacy.load(folder)
    except (OSError, ValueError) as fault:
        raise InvalidInput("names", f"{folder} cannot be read as a spaCy pipeline: {fault}") from fault
