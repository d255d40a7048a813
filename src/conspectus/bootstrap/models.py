"""The models that the settings name: embedders, rerankers, chat models and entity extractors."""

import asyncio
from abc import abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from conspectus.errors import ChatNotConfigured, InvalidInput, MissingExtra, ProviderError
from conspectus.model.files import expand_home
from conspectus.model.records import EmbeddingSpace
from conspectus.model.retries import RetryPolicy
from conspectus.ports import Embedder
from conspectus.ports.chat import ChatModel
from conspectus.ports.graphs import EntityExtractor
from conspectus.ports.web import Reranker
from conspectus.providers.request_log import Note, RequestNotes, drop
from conspectus.settings import Settings
from conspectus.text.name_keys import key_of

PACKAGED = {"all-MiniLM-L6-v2": "minilm", "multilingual-e5-small": "multilingual"}
"""The settings of the packaged models, by the names in their embedding spaces."""
STATIC = "static:"
M = TypeVar("M", Embedder, Reranker)
CALLER_EMBEDDER = "given"


class Models:
    """All models in use, and the log of requests to model providers."""

    def __init__(self, settings: Settings, embedder: Embedder | None = None) -> None:
        self.notes = RequestNotes()
        self._settings = settings
        self._speakers: list[ChatModel] = []
        self.embedders = Embedders(settings, embedder, note=self.notes)
        self.rerankers = Rerankers(settings, note=self.notes)

    def speaker(self) -> ChatModel | None:
        """Return the chat model of the settings; None for `none`. Raises InvalidInput or MissingExtra."""
        if self._settings.chat_model == "none":
            return None
        from conspectus.providers.registry import chat_model_of

        chat_model = chat_model_of(self._settings, note=self.notes)
        self._speakers.append(chat_model)
        return chat_model

    async def close(self) -> None:
        """Close the models, then write the remaining log."""
        for speaker in self._speakers:
            await speaker.close()
        await self.embedders.close()
        await self.rerankers.close()
        await self.notes.close()


class _ModelsByName(Generic[M]):
    """Models of one kind, created on first use."""

    def __init__(self, settings: Settings, *, note: Note = drop) -> None:
        self._settings = settings
        self._note = note
        self._models: dict[str, M] = {}

    def by_name(self, name: str) -> M | None:
        """Return the model of a setting; None for `none`. Raises InvalidInput for an unknown form."""
        if name == "none":
            return None
        if name not in self._models:
            self._models[name] = self._make(name)
        return self._models[name]

    async def close(self) -> None:
        """Close the models that were created here."""
        for embedder in self._models.values():
            await embedder.close()

    @abstractmethod
    def _make(self, name: str) -> M: ...


def _check_vectors_of(embedder: Embedder) -> Embedder:
    """Return the embedder of a caller behind the gate, which a queue has already."""
    from conspectus.ingest.embedding_queue import EmbedQueue
    from conspectus.providers.checked_embedder import CheckedEmbedder

    if isinstance(embedder, EmbedQueue):
        return embedder
    return CheckedEmbedder(embedder)


class Embedders(_ModelsByName[Embedder]):
    """The embedders in use, created on first use."""

    def __init__(self, settings: Settings, embedder: Embedder | None = None, *, note: Note = drop) -> None:
        super().__init__(settings, note=note)
        self._caller_embedder = None if embedder is None else _check_vectors_of(embedder)
        self._loading = asyncio.Lock()

    def by_name(self, name: str) -> Embedder | None:
        """Return the embedder of a setting; None for `none`. Raises InvalidInput for an unknown form.

        `given` returns the object that the caller passed, checked; `vectors:N` has no embedder.
        """
        if name.startswith("vectors:"):
            from conspectus.ingest.embedding_queue import GivenVectors

            return GivenVectors(name)
        if name == CALLER_EMBEDDER:
            return self._caller_embedder
        return super().by_name(name)

    async def load(self, name: str) -> Embedder | None:
        """Return the embedder of a setting as `by_name` does. A model in files is loaded in a thread.

        Loading takes a fifth of a second, for which other requests need not wait.
        """
        is_in_files = name in PACKAGED.values() or name.startswith(STATIC)
        if name in self._models or not is_in_files:
            return self.by_name(name)
        async with self._loading:
            return await asyncio.to_thread(self.by_name, name)

    async def of(self, space: EmbeddingSpace) -> Embedder | None:
        """Return the embedder for an embedding model; None if none is available here."""
        for embedder in [self._caller_embedder, *self._models.values()]:
            if embedder is not None and embedder.space == space:
                return embedder
        full_name = space.model if space.model.startswith(STATIC) else f"{space.model}@{space.dimensions}"
        try:
            named = await self.load(PACKAGED.get(space.model, full_name))
        except (InvalidInput, MissingExtra, ProviderError):
            return None
        return named if named is not None and named.space == space else None

    def _make(self, name: str) -> Embedder:
        if name in PACKAGED.values():
            from conspectus.providers.onnx_embedder import OnnxEmbedder

            threads, cached = self._settings.embedder_threads or None, self._settings.cached_queries
            return OnnxEmbedder(name, threads=threads, cached_queries=cached)
        if name.startswith(STATIC):
            from conspectus.providers.static_embedder import StaticEmbedder

            return StaticEmbedder(Path(name.removeprefix(STATIC)))
        if ":" not in name:
            raise InvalidInput(
                "embedder",
                f"{name!r} is not minilm, multilingual, none, static:PATH, vendor:model or vectors:N",
            )
        from conspectus.ingest.embedding_queue import BatchSharing, EmbedQueue
        from conspectus.providers.registry import embedder_of

        settings = self._settings
        inner = embedder_of(name, timeout=float(settings.provider_timeout_seconds), note=self._note)
        sharing = BatchSharing(max(1, settings.embed_batch_size), settings.embed_batch_delay_ms / 1000)
        return EmbedQueue(inner, sharing=sharing, retry_policy=_retry_policy(settings))


class Rerankers(_ModelsByName[Reranker]):
    """The rerankers in use, created on first use."""

    def _make(self, name: str) -> Reranker:
        from conspectus.providers.registry import reranker_of

        timeout = float(self._settings.provider_timeout_seconds)
        return reranker_of(name, retry_policy=_retry_policy(self._settings), timeout=timeout, note=self._note)


def _retry_policy(settings: Settings) -> RetryPolicy:
    return RetryPolicy(settings.embed_max_attempts, max_wait=float(settings.embed_max_backoff_seconds))


def embedding_model(setting: str) -> str:
    """Return the name in the embedding space that a setting of an embedder has; it loads no model."""
    named = {setting: model for model, setting in PACKAGED.items()}
    vendor, _, _ = setting.partition(":")
    if vendor == "vectors":
        return vendor
    return named.get(setting) or (
        setting if setting.startswith(STATIC) else setting.rpartition("@")[0] or setting
    )


_RULES = "rules"
_CHAT = "chat"
_SPACY = "spacy:"
_GLINER = "gliner:"


def validate_extractor_setting(settings: Settings) -> None:
    """Validate the setting of the entity extractor. Raises InvalidInput."""
    extractor = settings.entity_extractor
    folder = extractor.removeprefix(_SPACY).removeprefix(_GLINER)
    if extractor not in (_RULES, _CHAT) and (folder in (extractor, "")):
        raise InvalidInput("names", f"{extractor!r} is not rules, spacy:PATH, gliner:PATH or chat")


def extractor_of(settings: Settings, chat_model: ChatModel | None) -> EntityExtractor:
    """Return the extractor of the settings. Raises InvalidInput, MissingExtra, or ChatNotConfigured."""
    validate_extractor_setting(settings)
    extractor = settings.entity_extractor
    if extractor == _RULES:
        from conspectus.graph.entity_rules import RuleExtractor

        return RuleExtractor()
    if extractor.startswith(_SPACY):
        from conspectus.providers.local_entities import spacy_names

        return spacy_names(expand_home(extractor.removeprefix(_SPACY)), key_of)
    if extractor.startswith(_GLINER):
        from conspectus.providers.local_entities import gliner_names

        return gliner_names(expand_home(extractor.removeprefix(_GLINER)), key_of)
    if chat_model is None:
        raise ChatNotConfigured
    from conspectus.providers.chat_entities import ChatNames

    return ChatNames(chat_model, key_of)
