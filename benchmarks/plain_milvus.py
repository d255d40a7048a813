"""Milvus alone: captions, times and vectors, searched with a filter of time."""

from collections.abc import Sequence
from types import TracebackType

from pymilvus import DataType, MilvusClient
from vectors import Matrix

NAME = "plain"
BATCH = 500
FIELDS = ["text", "start", "stop"]


class PlainMilvus:
    """One collection, by Milvus's own client."""

    def __init__(self, uri: str, dimensions: int) -> None:
        self._client = MilvusClient(uri=uri)
        schema = MilvusClient.create_schema()
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("text", DataType.VARCHAR, max_length=65_535)
        schema.add_field("start", DataType.DOUBLE)
        schema.add_field("stop", DataType.DOUBLE)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimensions)
        params = MilvusClient.prepare_index_params()
        params.add_index("vector", index_type="FLAT", metric_type="COSINE")
        self._client.create_collection(NAME, schema=schema, index_params=params)

    def __enter__(self) -> "PlainMilvus":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def fill(self, captions: Sequence[str], vectors: Matrix, step: float) -> None:
        """All captions, one after the other in time. Flushed, as ours are: Lite scans what is in memory."""
        rows = [
            {"id": n, "text": text, "start": n * step, "stop": (n + 1) * step, "vector": vectors[n]}
            for n, text in enumerate(captions)
        ]
        for first in range(0, len(rows), BATCH):
            self._client.insert(NAME, rows[first : first + BATCH])
        self._client.flush(NAME)

    def between(self, start: float, end: float) -> object:
        """The captions of a range."""
        return self._client.query(NAME, filter=_inside(start, end), output_fields=FIELDS)

    def nearest(self, vector: Sequence[float], within: tuple[float, float] | None = None) -> object:
        """The ten captions nearest to a query, in a range if one is given."""
        where = "" if within is None else _inside(*within)
        return self._client.search(NAME, [vector], filter=where, limit=10, output_fields=FIELDS)


def _inside(start: float, end: float) -> str:
    return f"start < {end} and stop > {start}"
