"""Names found by a GLiNER model that lies in a folder; nothing is ever downloaded."""

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from conspectus.errors import InvalidInput, MissingExtra
from conspectus.model.graph import Mention
from conspectus.providers.entity_spans import KeyOf, Labelled, found_in, pieces

GLINER: Final = "gliner:"
LABELS: Final = ("person", "organization", "location", "date", "event", "product", "work of art", "concept")
LONGEST: Final = 1_000
"""Such models read some hundreds of words at once; longer texts are read in pieces."""
SURE: Final = 0.5


class Labeller(Protocol):
    """What is used of a GLiNER model."""

    def predict_entities(
        self, text: str, labels: list[str], *, threshold: float
    ) -> Sequence[Mapping[str, Any]]:
        """The entities of these labels: `start`, `end`, `label` and `score` of each."""
        ...


class GlinerNames:
    """The entities that a model finds for labels of everyday kinds."""

    def __init__(self, name: str, model: Labeller, key_of: KeyOf) -> None:
        self._name = name
        self._model = model
        self._key_of = key_of
        self._turn = asyncio.Lock()

    @classmethod
    def load(cls, folder: Path, key_of: KeyOf) -> "GlinerNames":
        """The model of a folder. Raises MissingExtra without gliner, InvalidInput for no such folder."""
        try:
            gliner = importlib.import_module("gliner")
        except ImportError as fault:
            raise MissingExtra("gliner", "gliner") from fault
        if not folder.is_dir():
            raise InvalidInput("names", f"{folder} holds no GLiNER model")
        try:
            model = gliner.GLiNER.from_pretrained(str(folder), local_files_only=True)
        except (OSError, ValueError) as fault:
            raise InvalidInput("names", f"{folder} cannot be read as a GLiNER model: {fault}") from fault
        return cls(f"{GLINER}{folder}", model, key_of)

    @property
    def name(self) -> str:
        """What it is called in settings and reports."""
        return self._name

    async def extract(self, texts: Sequence[str]) -> Sequence[Sequence[Mention]]:
        """For each text its names, in order and without overlaps."""
        async with self._turn:
            return await asyncio.to_thread(lambda: [self._of(text) for text in texts])

    async def close(self) -> None:
        """Nothing is held open."""

    def _of(self, text: str) -> list[Mention]:
        spans = [
            Labelled(at + int(each["start"]), at + int(each["end"]), str(each["label"]), float(each["score"]))
            for at, piece in pieces(text, LONGEST)
            for each in self._model.predict_entities(piece, list(LABELS), threshold=SURE)
        ]
        return found_in(text, spans, self._key_of)
