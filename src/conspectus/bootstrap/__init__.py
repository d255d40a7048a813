"""Composition root: opens a store and chooses the adapters. No other package names an adapter.

Imports access, engine, graph, index, ingest, operations, ports, providers, records, sources and text.

Adapters are imported when they are first needed, so that a program pays only for what it uses.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from conspectus.bootstrap.components import (
    components_at,
    foreign_reader,
    local_archives,
    local_counter,
    local_files,
    memory_files,
    now,
    prepare,
)
from conspectus.bootstrap.indexes import index_folder, milvus_captions
from conspectus.bootstrap.models import (
    CALLER_EMBEDDER,
    Embedders,
    Models,
    Rerankers,
    embedding_model,
    extractor_of,
    validate_extractor_setting,
)
from conspectus.bootstrap.store_address import absolute, address_of, require_store
from conspectus.engine import Engine
from conspectus.model.validation import checked_arguments
from conspectus.ports import Embedder
from conspectus.ports.chat import ChatModel
from conspectus.ports.web import Reranker
from conspectus.providers.hosted_embedder import GeminiEmbeddings
from conspectus.settings import Settings

__all__ = [
    "Embedders",
    "GeminiEmbeddings",
    "Models",
    "Rerankers",
    "absolute",
    "embedding_model",
    "foreign_reader",
    "index_folder",
    "local_archives",
    "local_counter",
    "local_files",
    "memory_files",
    "milvus_captions",
    "now",
    "open",
    "prepare",
    "require_store",
    "start_telemetry",
]


def start_telemetry(settings: Settings) -> Callable[[], dict[str, str]] | None:
    """Export traces and metrics, if the settings say so; the result names the current trace, as headers."""
    if settings.opentelemetry != "on":
        return None
    from conspectus.bootstrap import telemetry

    return telemetry.start(content=settings.opentelemetry_content == "on").carrier


@asynccontextmanager
@checked_arguments
async def open(
    path: str | Path | None = None,
    *,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    reranker: Reranker | None = None,
    chat_model: ChatModel | None = None,
) -> AsyncIterator[Engine]:
    """Open the store at `path`, which is created if it is missing, and close it at the end of the block.

    `path` is a folder, or the `postgresql://` URL of a database that many processes and machines share.
    Defaults come from the settings, and theirs from the environment. `embedder` is any object of that
    protocol, used for its own embedding model and for new collections; `reranker` and `chat_model` likewise.
    Raises StorageTooNew, StorageError, or MissingExtra for a model whose library is not installed.
    """
    options = Settings.from_environment() if settings is None else settings
    if embedder is not None:
        options = replace(options, embedder=CALLER_EMBEDDER)
    start_telemetry(options)
    address = address_of(path or options.path, options)
    models = Models(options, embedder)
    judge = reranker or models.rerankers.by_name(options.reranker)
    speaker = chat_model or models.speaker()
    validate_extractor_setting(options)
    parts = replace(await components_at(address, options, models), reranker=judge, chat_model=speaker)
    parts = replace(parts, names=replace(parts.names, make_extractor=partial(extractor_of, options, speaker)))
    models.notes.write_to(parts.request_log)
    engine, process = Engine(parts), os.getpid()
    try:
        await engine.maintenance.resume()
        await engine.maintenance.finish_purges()
        yield engine
    finally:
        # A forked child must not close anything: the connections belong to its parent.
        if os.getpid() == process:
            await engine.close()
