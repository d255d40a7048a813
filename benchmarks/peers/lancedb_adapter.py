"""lancedb: IVF_HNSW_SQ over vectors, its own full-text index, a bitmap for the filter, fused by ranks."""

from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
from lancedb.index import FTS, Bitmap, HnswSq
from lancedb.rerankers import RRFReranker

from peers.work import DIMENSIONS, TOP, WANTED, Effort, Hits, Question, Rows


class Adapter:
    """One table; one partition, as its documentation recommends for HNSW below about a million rows."""

    package = "lancedb"
    inside = None
    efforts = (
        {"ef": 30},
        {"ef": 60},
        {"ef": 120},
        {"ef": 60, "refine_factor": 3},
        {"ef": 120, "refine_factor": 3},
        {"ef": 240, "refine_factor": 3},
        {"ef": 480, "refine_factor": 3},
    )
    filter_efforts = efforts

    def build(self, store: Path, rows: Rows) -> None:
        self._table = lancedb.connect(str(store)).create_table("chunks", data=_table(rows))
        self._table.create_index("vector", config=HnswSq(distance_type="cosine", num_partitions=1))
        self._table.create_index("text", config=FTS())
        self._table.create_index("bucket", config=Bitmap())

    def open(self, store: Path) -> None:
        self._table = lancedb.connect(str(store)).open_table("chunks")
        self._reranker = RRFReranker()

    def hybrid(self, question: Question, effort: Effort) -> Hits | None:
        search = self._table.search(query_type="hybrid").vector(question.vector).text(question.text)
        return _run(search.distance_type("cosine").rerank(self._reranker), effort)

    def vectors(self, question: Question, effort: Effort) -> Hits:
        return _run(self._table.search(question.vector).distance_type("cosine"), effort)

    def filtered(self, question: Question, effort: Effort) -> Hits:
        search = self._table.search(question.vector).distance_type("cosine")
        return _run(search.where(f"bucket = {WANTED}", prefilter=True), effort)

    def insert(self, rows: Rows) -> None:
        self._table.add(_table(rows))

    def close(self) -> None:
        del self._table


def _table(rows: Rows) -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.vectors.ravel()), DIMENSIONS)
    columns = [pa.array(rows.numbers, pa.int64()), pa.array(rows.texts), pa.array(rows.buckets), vectors]
    return pa.table(columns, names=["number", "text", "bucket", "vector"])


def _run(search: Any, effort: Effort) -> Hits:
    search = search.select(["number", "text"]).limit(TOP)
    for name, value in effort.items():
        search = getattr(search, name)(value)
    table = search.to_arrow()
    return list(zip(table["number"].to_pylist(), table["text"].to_pylist(), strict=True))
