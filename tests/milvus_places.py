"""Where the tests of the index in Milvus keep theirs: names of their own, and turns by locks on files."""

from pathlib import Path
from uuid import uuid4

from conspectus.index.milvus.asking import Place
from conspectus.index.milvus.server import MilvusServer
from conspectus.records.turns import turn


def place_in(server: MilvusServer, folder: Path, dimensions: int, name: str = "") -> Place:
    """A place for one index; the same folder and name give the same place again."""
    return Place(
        server, name or f"test_{uuid4().hex}", lambda work: turn(folder / f"{work}.lock"), dimensions
    )
