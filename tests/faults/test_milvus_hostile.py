"""Hostile strings in every place of a filter, and values Milvus has no room for, are data and no more."""

from pathlib import Path

from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from conspectus.model.filter import And, Between, Eq, Exists, Filter, In, Not, matches
from conspectus.model.records import Json
from conspectus.ports import Probe
from tests.milvus_locations import location_in
from tests.support.journal import Journal, make_chunk

HOSTILE = [
    "",
    '"',
    "'",
    "\\",
    '\\" or version >= 0 or "',
    '") or (version >= 0',
    "{value}",
    "{{}}",
    "%",
    "_",
    "$meta",
    "line\nbreak\r\t",
    "null\x00byte",
    "👩‍👩‍👧 ünïcode 東京都",
    "\u202e\ufeff",
    "x" * 10_000,
    "null",
    "true",
    "\udfff\ud800",
    "y" * 100_000,
]


async def opened(server: MilvusServer, folder: Path, journal: Journal) -> MilvusIndex:
    index = await MilvusIndex.open(location_in(server, folder, 0), journal, str.split)
    await index.apply(await journal.changes_since(0, limit=100_000))
    return index


async def find_admitted(index: MilvusIndex, where: Filter) -> list[int]:
    candidates = await index.search(Probe(where, "fox", None, 100))
    return [int(number) for number in candidates.ids]


def everywhere(text: str) -> list[Filter]:
    """Filters that only a row with this text, and this text alone, satisfies."""
    return [
        *(Eq(name, text) for name in ("author", "thread", "role", "parent", "source", "document")),
        In("author", (text, "\x01")),
        Eq(("tag",), text),
        In(("tags",), (text,)),
        And((Between(("tag",), text), Between("author", text), Not(Between("author", text + "\x00")))),
        Exists(("paths", text, text)),
    ]


async def test_hostile_strings_are_values_only(tmp_path: Path, milvus_client: MilvusServer) -> None:
    journal = Journal()
    for number, text in enumerate(HOSTILE):
        metadata: dict[str, Json] = {"tag": text, "tags": ["no", text], "paths": {text: {text: 1}}}
        names = dict.fromkeys(("author", "thread", "role", "parent", "source"), text)
        chunk = make_chunk(number, "fox", metadata=metadata, id=text, **names)
        journal.put([chunk])
    index = await opened(milvus_client, tmp_path, journal)
    for number, text in enumerate(HOSTILE):
        for where in everywhere(text):
            assert await find_admitted(index, where) == [number], where
    for text in HOSTILE:
        assert await find_admitted(index, Eq("author", text + '" or chunk >= 0 or "')) == []
    assert await index.check() == []


async def test_rows_beyond_what_milvus_holds(tmp_path: Path, milvus_client: MilvusServer) -> None:
    journal = Journal()
    many: dict[str, Json] = {f"path{number}": number for number in range(5_000)}
    journal.put([make_chunk(1, "fox", metadata=many), make_chunk(2, "fox", metadata={"path7": 8})])
    journal.put([make_chunk(3, "fox", sequence=2**80), make_chunk(4, "fox", author="z" * 5_000)])
    journal.put([make_chunk(5, "fox " * 70_000 + " ".join(map(str, range(20_000))))])
    index = await opened(milvus_client, tmp_path, journal)
    for where in (
        Eq(("path4999",), 4_999),
        Between(("path7",), 7, 9),
        Not(Exists(("path4999",))),
        Eq("sequence", 2**80),
        Between("sequence", 2**79, None),
        Eq("author", "z" * 5_000),
        Not(Eq("author", "z" * 5_000)),
        In(("path7",), tuple(range(3_000))),
    ):
        expected = [chunk.chunk.id for chunk in journal.live() if matches(where, chunk.row())]
        assert await find_admitted(index, where) == expected, where
    journal.remove([1, 3, 4])
    await index.apply(await journal.changes_since(index.applied_sequence(), limit=10))
    assert await find_admitted(index, Not(Eq("author", "z" * 5_000))) == [2, 5]
