"""The engine that a command works with, and names of sources as people write them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from conspectus.cli.options import Common, Selection
from conspectus.cli.output import note
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.filter import And, Eq, Filter, In, Not, Or, Scalar, parse_filters
from conspectus.model.query import EVERYWHERE
from conspectus.settings import Settings

if TYPE_CHECKING:
    from conspectus.sync import BlockingEngine


@dataclass(frozen=True, slots=True)
class Session:
    """An open engine and the collection that was asked for."""

    engine: "BlockingEngine"
    collection: str

    def where(self, chosen: Selection) -> Filter:
        """The filter of a selection, with the names of sources replaced by their ids.

        Where all collections are asked, a name may be that of many sources, and stands for none.
        """
        known = (
            ()
            if self.collection == EVERYWHERE
            else self.engine.collections.sources(collection=self.collection)
        )
        ids = {each.name: str(each.id) for each in known}
        condition = _by_id(parse_filters(chosen.filter), ids)
        if chosen.source is None:
            return condition
        source = _id(chosen.source, ids)
        if source not in ids.values():
            raise NotFound("source", chosen.source)
        return And((condition, Eq("source", source)))


@contextmanager
def opened(common: Common, *, new: bool = False) -> Iterator[Session]:
    """Open the data or ask the server that is named; a store is made only by a command that writes.

    Raises NotFound for a folder or database that holds no data.
    """
    settings = Settings.from_environment()
    with _engine(common, settings, new=new) as engine:
        session = Session(engine, common.collection or settings.default_collection)
        try:
            yield session
        except NotFound as missing:
            if missing.kind == "collection":
                there = ", ".join(each.name for each in engine.collections.list())
                note(f"existing collections: {there or 'none'}")
            raise


def require_here(common: Common) -> None:
    """Raise InvalidInput if a server was named for a command that works on this machine."""
    if common.url is not None:
        raise InvalidInput("url", "this command works on this machine and asks no server")


def _engine(common: Common, settings: Settings, *, new: bool) -> AbstractContextManager["BlockingEngine"]:
    from conspectus import bootstrap, sync

    if common.url is not None and common.data_dir is not None:
        raise InvalidInput("url", "give either --url or --data-dir")
    url = common.url or (settings.url if common.data_dir is None else "")
    if url:
        return sync.connect(url, settings=settings)
    place = bootstrap.absolute(common.data_dir or settings.path)
    if not new:
        bootstrap.require_store(place, settings=settings)
    return sync.open(place, settings=settings)


def _by_id(condition: Filter, ids: dict[str, str]) -> Filter:
    match condition:
        case Not():
            return Not(_by_id(condition.inner, ids))
        case And():
            return And(tuple(_by_id(part, ids) for part in condition.inner))
        case Or():
            return Or(tuple(_by_id(part, ids) for part in condition.inner))
        case Eq(field="source"):
            return replace(condition, value=_id(condition.value, ids))
        case In(field="source"):
            return replace(condition, values=tuple(_id(value, ids) for value in condition.values))
        case _:
            return condition


def _id(name: Scalar, ids: dict[str, str]) -> Scalar:
    whole = str(Path(str(name)).absolute())
    return ids.get(str(name)) or ids.get(whole) or name
