"""The engine for programs without an event loop: the same methods, blocking.

with conspectus.sync.open("notes") as engine:
    engine.add("The meeting moved to Thursday.", wait=True)
    print(engine.window("When is the meeting?", 200).text)
"""

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from conspectus import bootstrap
from conspectus.engine import Engine
from conspectus.ports import Embedder
from conspectus.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")


class BlockingEngine:
    """An Engine whose methods return when they are done; it may be used from many threads."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's own loop and wait for it; an interrupt cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @staticmethod
    def _blocking(
        method: Callable[Concatenate[Engine, P], Coroutine[Any, Any, T]],
    ) -> "Callable[Concatenate[BlockingEngine, P], T]":
        @functools.wraps(method)
        def call(self: "BlockingEngine", /, *args: P.args, **kwargs: P.kwargs) -> T:
            return self.run(method(self._engine, *args, **kwargs))

        return call

    collection = _blocking(Engine.collection)
    source = _blocking(Engine.source)
    sources = _blocking(Engine.sources)
    add = _blocking(Engine.add)
    add_files = _blocking(Engine.add_files)
    settle = _blocking(Engine.settle)
    get = _blocking(Engine.get)
    text = _blocking(Engine.text)
    list = _blocking(Engine.list)
    count = _blocking(Engine.count)
    update = _blocking(Engine.update)
    delete = _blocking(Engine.delete)
    delete_where = _blocking(Engine.delete_where)
    retrieve = _blocking(Engine.retrieve)
    window = _blocking(Engine.window)
    explain = _blocking(Engine.explain)
    status = _blocking(Engine.status)
    check = _blocking(Engine.check)
    reindex = _blocking(Engine.reindex)
    reembed = _blocking(Engine.reembed)
    whoami = _blocking(Engine.whoami)
    create_user = _blocking(Engine.create_user)
    users = _blocking(Engine.users)
    find_user = _blocking(Engine.find_user)
    disable_user = _blocking(Engine.disable_user)
    delete_user = _blocking(Engine.delete_user)
    create_group = _blocking(Engine.create_group)
    groups = _blocking(Engine.groups)
    delete_group = _blocking(Engine.delete_group)
    members = _blocking(Engine.members)
    join = _blocking(Engine.join)
    leave = _blocking(Engine.leave)
    create_key = _blocking(Engine.create_key)
    keys = _blocking(Engine.keys)
    revoke_key = _blocking(Engine.revoke_key)
    rotate_key = _blocking(Engine.rotate_key)
    grant = _blocking(Engine.grant)
    revoke = _blocking(Engine.revoke)
    grants = _blocking(Engine.grants)
    authenticate = _blocking(Engine.authenticate)
    found_owner = _blocking(Engine.found_owner)


@contextmanager
def open(
    path: str | Path | None = None, *, settings: Settings | None = None, embedder: Embedder | None = None
) -> Iterator[BlockingEngine]:
    """Open the store at `path` (made if it does not exist); all is released at the end of the block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="conspectus", daemon=True)
    thread.start()
    opened = bootstrap.open(path, settings=settings, embedder=embedder)
    try:
        engine = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result()
        try:
            yield BlockingEngine(engine, loop)
        finally:
            asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
