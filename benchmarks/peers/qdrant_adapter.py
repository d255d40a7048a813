"""qdrant-edge-py: HNSW over vectors, its BM25 as sparse vectors, an index for the filter, fused by ranks."""

from pathlib import Path

import qdrant_edge as edge

from peers.work import DIMENSIONS, TOP, WANTED, Effort, Hits, Question, Rows

BATCH = 1_000
PREFETCH = 20
RRF_CONSTANT = 60
AVERAGE_WORDS = 30.0


class Adapter:
    """One shard with a dense and a sparse vector for each point."""

    package = "qdrant-edge-py"
    inside = None
    efforts = tuple({"hnsw_ef": ef} for ef in (16, 32, 64, 128, 256, 512))
    filter_efforts = efforts

    def __init__(self) -> None:
        self._bm25 = edge.Bm25(edge.Bm25Config(avg_len=AVERAGE_WORDS))

    def build(self, store: Path, rows: Rows) -> None:
        store.mkdir(parents=True)
        config = edge.EdgeConfig(
            vectors={"dense": edge.EdgeVectorParams(size=DIMENSIONS, distance=edge.Distance.Cosine)},
            sparse_vectors={"words": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
        )
        self._shard = edge.EdgeShard.create(str(store), config)
        for batch in rows.batches(BATCH):
            self.insert(batch)
        index = edge.UpdateOperation.create_field_index("bucket", edge.PayloadSchemaType.Integer)
        self._shard.update(index)
        self._shard.optimize()
        self._shard.flush()

    def open(self, store: Path) -> None:
        self._shard = edge.EdgeShard.load(str(store))
        only = edge.FieldCondition("bucket", match=edge.MatchValue(WANTED))
        self._filter = edge.Filter(must=[only])

    def hybrid(self, question: Question, effort: Effort) -> Hits | None:
        words = edge.Query.Nearest(self._bm25.embed_query(question.text), using="words")
        arms = [
            edge.Prefetch(limit=PREFETCH, query=_nearest(question), params=edge.SearchParams(**effort)),
            edge.Prefetch(limit=PREFETCH, query=words),
        ]
        fusion = edge.Fusion.Rrf(k=RRF_CONSTANT)
        return self._hits(edge.QueryRequest(limit=TOP, prefetches=arms, query=fusion, with_payload=["text"]))

    def vectors(self, question: Question, effort: Effort) -> Hits:
        return self._nearest(question, effort, None)

    def filtered(self, question: Question, effort: Effort) -> Hits:
        return self._nearest(question, effort, self._filter)

    def insert(self, rows: Rows) -> None:
        points = [
            edge.Point(
                number,
                {"dense": vector.tolist(), "words": self._bm25.embed_document(text)},
                {"text": text, "bucket": bucket},
            )
            for number, text, vector, bucket in zip(
                rows.numbers, rows.texts, rows.vectors, rows.buckets, strict=True
            )
        ]
        self._shard.update(edge.UpdateOperation.upsert_points(points))

    def close(self) -> None:
        self._shard.close()

    def _nearest(self, question: Question, effort: Effort, only: edge.Filter | None) -> Hits:
        request = edge.QueryRequest(
            limit=TOP,
            query=_nearest(question),
            filter=only,
            params=edge.SearchParams(**effort),
            with_payload=["text"],
        )
        return self._hits(request)

    def _hits(self, request: edge.QueryRequest) -> Hits:
        return [(point.id, point.payload["text"]) for point in self._shard.query(request)]


def _nearest(question: Question) -> edge.Query:
    return edge.Query.Nearest(question.vector.tolist(), using="dense")
