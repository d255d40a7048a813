"""What happens to chunks, vectors and names while a store is moved is brought over, whatever it is."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, select
from tests.filled_databases import contents, database

from conspectus import NewDocument, sync
from conspectus.bootstrap.store_address import RECORDS
from conspectus.bootstrap.transfer import move
from conspectus.model.ids import CollectionId
from conspectus.model.records import EmbeddingSpace
from conspectus.records.core import embeddings
from conspectus.records.core.database import transact
from conspectus.records.tables.core import collections
from conspectus.settings import Settings
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = Settings(lock_timeout_seconds=20)
Change = Callable[[BlockingEngine], object]


def replace_some(engine: BlockingEngine) -> None:
    engine.add([NewDocument("Ada Lovelace wrote. " * 300, key=f"k{n}") for n in (3, 4, 90)], wait=True)


def delete_some(engine: BlockingEngine) -> None:
    engine.documents.delete([document.id for document in engine.documents.list(limit=20).documents])


def delete_all(engine: BlockingEngine) -> None:
    engine.collections.delete("default")


def delete_and_begin_anew(engine: BlockingEngine) -> None:
    engine.collections.delete("default")
    engine.add(NewDocument("Grace Hopper wrote anew", key="k1"), wait=True)


def forget_names(engine: BlockingEngine) -> None:
    engine.graph.set_entity_extraction(False)


def find_more_names(engine: BlockingEngine) -> None:
    engine.add(NewDocument("Grace Hopper met Ada Lovelace.", key="new"), wait=True)
    engine.graph.wait_until_extracted()


def begin_with_names(engine: BlockingEngine) -> None:
    engine.graph.set_entity_extraction(False)
    engine.graph.set_entity_extraction()
    engine.graph.wait_until_extracted()


def switch_space(engine: BlockingEngine) -> None:
    space = EmbeddingSpace("other", 8, "1")
    with database(str(Path(engine.maintenance.status().path) / RECORDS)) as records_database:
        collection_ids = select(collections.c.id)

        def switch(connection: Connection) -> None:
            collection = CollectionId(connection.execute(collection_ids).scalar_one())
            embeddings.switch_space(connection, collection, space=space)

        transact(records_database, records_database.writing, switch)


CHANGES: list[Change] = [
    replace_some, delete_some, delete_all, delete_and_begin_anew, forget_names, find_more_names,
    begin_with_names, switch_space,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_happens_after_the_first_round_began(tmp_path: Path, change: Change) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    with sync.open(source, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        texts = [f"Ada Lovelace and Person{n} Smith talk. " * 40 for n in range(60)]
        engine.add([NewDocument(text, key=f"k{n}") for n, text in enumerate(texts)], wait=True)
        engine.graph.set_entity_extraction()
        engine.graph.wait_until_extracted()
        left = [change]

        def progress(what: str, done: int, total: int) -> None:
            if left:
                left.pop()(engine)

        moved = move(source, target, settings=SETTINGS, progress=progress).moved
    assert not left
    assert moved.rounds >= 2
    with database(str(source / RECORDS)) as here, database(str(target / RECORDS)) as there:
        source_rows, target_rows = (
            transact(database, database.reading, contents) for database in (here, there)
        )
    assert target_rows == source_rows
