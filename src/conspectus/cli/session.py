"""The engine that a command works with, and names of sources as people write them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from conspectus import sync
from conspectus.cli.options import Common, Selection
from conspectus.errors import NotFound
from conspectus.model.filter import And, Eq, Filter, In, Not, Or, Scalar
from conspectus.model.filter_json import parse_filters
from conspectus.settings import Settings
from conspectus.sync import BlockingEngine


@dataclass(frozen=True, slots=True)
class Session:
    """An open engine and the collection that was asked for."""

    engine: BlockingEngine
    collection: str

    def where(self, chosen: Selection) -> Filter:
        """The filter of a selection, with the names of sources replaced by their ids."""
        ids = {each.name: str(each.id) for each in self.engine.sources(collection=self.collection)}
        condition = _by_id(parse_filters(chosen.where), ids)
        if chosen.source is None:
            return condition
        source = _id(chosen.source, ids)
        if source not in ids.values():
            raise NotFound("source", chosen.source)
        return And((condition, Eq("source", source)))


@contextmanager
def opened(common: Common, *, new: bool = False) -> Iterator[Session]:
    """Open the data; only a command that writes makes a folder for them. Raises NotFound."""
    settings = Settings.from_environment()
    path = Path(common.data or settings.path).expanduser()
    if not new and not path.exists():
        raise NotFound("data folder", str(path))
    with sync.open(path, settings=settings) as engine:
        yield Session(engine, common.collection or settings.collection)


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
