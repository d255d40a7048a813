"""chromadb: HNSW over vectors; a local store has no search by words to combine with them."""

from pathlib import Path

import chromadb
from chromadb.config import Settings

from peers.work import TOP, WANTED, Effort, Hits, Question, Rows

DEFAULT_EF = 100
BATCH = 5_000


class Adapter:
    """A persistent client with one collection; vectors are given, so no model is loaded."""

    package = "chromadb"
    inside = None
    efforts = tuple({"ef_search": ef} for ef in (25, 50, 200, 400, 800))
    filter_efforts = efforts

    def build(self, store: Path, rows: Rows) -> None:
        self._ef = DEFAULT_EF
        self._connect(store)
        self._collection = self._client.create_collection(
            "chunks", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        for batch in rows.batches(BATCH):
            self.insert(batch)

    def open(self, store: Path) -> None:
        self._store = store
        self._connect(store)
        self._collection = self._client.get_collection("chunks", embedding_function=None)
        self._ef = self._collection.configuration["hnsw"]["ef_search"]

    def hybrid(self, question: Question, effort: Effort) -> Hits | None:
        return None

    def vectors(self, question: Question, effort: Effort) -> Hits:
        return self._search(question, effort, None)

    def filtered(self, question: Question, effort: Effort) -> Hits:
        return self._search(question, effort, {"bucket": WANTED})

    def insert(self, rows: Rows) -> None:
        self._collection.add(
            ids=[str(number) for number in rows.numbers],
            embeddings=rows.vectors,
            documents=rows.texts,
            metadatas=[{"bucket": bucket} for bucket in rows.buckets],
        )

    def close(self) -> None:
        if self._ef != DEFAULT_EF:
            self._collection.modify(configuration={"hnsw": {"ef_search": DEFAULT_EF}})
        self._release()

    def _connect(self, store: Path) -> None:
        self._client = chromadb.PersistentClient(str(store), settings=Settings(anonymized_telemetry=False))

    def _change(self, ef: int) -> None:
        """The setting is stored with the collection, and taken over when the store is opened."""
        self._collection.modify(configuration={"hnsw": {"ef_search": ef}})
        self._release()
        self.open(self._store)

    def _release(self) -> None:
        self._client.clear_system_cache()
        del self._collection, self._client

    def _search(self, question: Question, effort: Effort, where: dict[str, int] | None) -> Hits:
        ef = effort.get("ef_search", DEFAULT_EF)
        if ef != self._ef:
            self._change(ef)
        response = self._collection.query(
            query_embeddings=[question.vector], n_results=TOP, where=where, include=["documents"]
        )
        return [
            (int(number), text)
            for number, text in zip(response["ids"][0], response["documents"][0], strict=True)
        ]
