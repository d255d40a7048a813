"""Entity extraction by a GLiNER model or a spaCy pipeline in a local folder."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from conspectus.errors import InvalidInput, optional
from conspectus.model.records import Mention
from conspectus.providers.entity_spans import KeyOf, Labelled, found_in, pieces

Label: TypeAlias = Callable[[Sequence[str]], Sequence[Sequence[Labelled]]]
"""Finds entities in each of several texts."""


class LocalNames:
    """The mentions that a local model finds. Calls are serialized."""

    def __init__(self, name: str, label: Label, key_of: KeyOf) -> None:
        self.name = name
        self._label = label
        self._key_of = key_of
        self._turn = asyncio.Lock()

    async def extract(self, texts: Sequence[str]) -> Sequence[Sequence[Mention]]:
        """Return the mentions in each text, in order and without overlaps."""
        async with self._turn:
            return await asyncio.to_thread(self._extract, texts)

    async def close(self) -> None:
        """Do nothing: there are no open resources."""

    def _extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        labelled = self._label(texts)
        return [found_in(text, of, self._key_of) for text, of in zip(texts, labelled, strict=True)]


GLINER: Final = "gliner:"
LABELS: Final = ("person", "organization", "location", "date", "event", "product", "work of art", "concept")
GLINER_MAX_LENGTH: Final = 1_000
"""Such models read some hundred words at once; longer texts are read in pieces."""
SURE: Final = 0.5


def gliner_names(folder: Path, key_of: KeyOf) -> LocalNames:
    """Return the extractor of a GLiNER model in a folder, with labels of common entity types.

    Raises MissingExtra without gliner, InvalidInput if there is no model.
    """
    gliner = optional("gliner", "gliner", "gliner")
    if not folder.is_dir():
        raise InvalidInput("names", f"{folder} holds no GLiNER model")
    try:
        model = gliner.GLiNER.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError) as fault:
        raise InvalidInput("names", f"{folder} cannot be read as a GLiNER model: {fault}") from fault
    return LocalNames(f"{GLINER}{folder}", partial(by_gliner, model), key_of)


def by_gliner(model: Any, texts: Sequence[str]) -> list[list[Labelled]]:
    """Return the labels of a GLiNER model in each of several texts."""
    return [list(_find_labels(model, text)) for text in texts]


def _find_labels(model: Any, text: str) -> Iterator[Labelled]:
    for at, piece in pieces(text, GLINER_MAX_LENGTH):
        for entity in model.predict_entities(piece, list(LABELS), threshold=SURE):
            start, end = at + int(entity["start"]), at + int(entity["end"])
            yield Labelled(start, end, str(entity["label"]), float(entity["score"]))


SPACY: Final = "spacy:"
SPACY_MAX_LENGTH: Final = 100_000
"""A pipeline needs memory proportional to the text; longer texts are read in pieces."""


def spacy_names(folder: Path, key_of: KeyOf) -> LocalNames:
    """Return the extractor of a spaCy pipeline in a folder.

    Raises MissingExtra without spaCy, InvalidInput if there is no pipeline.
    """
    spacy = optional("spacy", "spacy", "spacy")
    if not (folder / "config.cfg").is_file():
        raise InvalidInput("names", f"{folder} holds no spaCy pipeline")
    try:
        pipeline = spacy.load(folder)
    except (OSError, ValueError) as fault:
        raise InvalidInput("names", f"{folder} cannot be read as a spaCy pipeline: {fault}") from fault
    return LocalNames(f"{SPACY}{folder}", partial(_by_spacy, pipeline), key_of)


def _by_spacy(pipeline: Any, texts: Sequence[str]) -> list[list[Labelled]]:
    spans_by_text: list[list[Labelled]] = [[] for _ in texts]
    cut = (
        (piece, (spans, at))
        for spans, text in zip(spans_by_text, texts, strict=True)
        for at, piece in pieces(text, SPACY_MAX_LENGTH)
    )
    for document, (spans, at) in pipeline.pipe(cut, as_tuples=True):
        spans.extend(
            Labelled(at + entity.start_char, at + entity.end_char, entity.label_) for entity in document.ents
        )
    return spans_by_text
