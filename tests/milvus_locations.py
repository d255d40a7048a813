"""Where the tests of the index in Milvus keep theirs: names of their own, and turns by locks on files."""

from pathlib import Path
from uuid import uuid4

from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.search import MilvusLocation
from conspectus.records.jobs.locks import turn


class TakenForAServer(MilvusServer):
    """Milvus Lite used as a server is: facts are arrays, and Milvus chooses the index of the vectors."""

    async def is_lite(self) -> bool:
        """What it says when it is asked."""
        return False


def location_in(server: MilvusServer, folder: Path, dimensions: int, name: str = "") -> MilvusLocation:
    """A place for one index; the same folder and name give the same place again."""
    return MilvusLocation(
        server, name or f"test_{uuid4().hex}", lambda work: turn(folder / f"{work}.lock"), dimensions
    )
