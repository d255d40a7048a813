"""Compiled statements: what one store compiled, others of the process use, with values of their own."""

import gc
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Dialect
from tests.support.postgres_server import PostgresProcess
from tests.waiting import until

import conspectus
from conspectus.records.core.compiled_statements import compiled_statements
from conspectus.settings import Settings
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), log_level="critical")


async def add_and_retrieve(address: Path | str, text: str) -> list[str]:
    async with conspectus.open(address, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await engine.add(text, wait=True)
        return [hit.chunk.text for hit in (await engine.retrieve("meeting")).hits]


async def test_a_second_store_compiles_no_statement_anew(tmp_path: Path) -> None:
    assert await add_and_retrieve(tmp_path / "a", "the meeting of Ann") == ["the meeting of Ann"]
    compiled = set(compiled_statements())
    assert len(compiled) > 5
    assert await add_and_retrieve(tmp_path / "b", "the meeting of Ben") == ["the meeting of Ben"]
    assert set(compiled_statements()) == compiled


async def test_stores_of_two_drivers_share_no_statement(tmp_path: Path, postgres: PostgresProcess) -> None:
    await add_and_retrieve(tmp_path / "a", "the meeting of Ann")
    with postgres.fresh() as url:
        assert await add_and_retrieve(url, "the meeting of Ben") == ["the meeting of Ben"]
    assert await add_and_retrieve(tmp_path / "b", "the meeting of Eve") == ["the meeting of Eve"]


async def test_closed_stores_leave_no_dialect_behind(tmp_path: Path) -> None:
    await add_and_retrieve(tmp_path / "first", "the meeting")
    gc.collect()
    # What lives by now is not looked at again, here and in all later tests.
    gc.freeze()
    for number in range(5):
        await add_and_retrieve(tmp_path / str(number), "the meeting")
    # The thread of the last connection may still end.
    await until(lambda: count_new_dialects() == 0)
    assert count_new_dialects() == 0


def count_new_dialects() -> int:
    gc.collect()
    return sum(isinstance(living, Dialect) for living in gc.get_objects())
