"""txtai: FAISS over vectors (its default), its own BM25, SQLite for texts; both scores count half."""

from pathlib import Path

import numpy as np
from txtai import Embeddings

from peers.work import TOP, WANTED, Effort, Hits, Question, Rows, Vector

ANYWHERE = f"select id, text, score from txtai where similar(:question) limit {TOP}"
SIMILAR = "select id, text, score from txtai where similar(:question, :candidates)"
IN_BUCKET = f"{SIMILAR} and bucket = {WANTED} limit {TOP}"
DEFAULT_CANDIDATES = 10 * TOP


class Switched(Embeddings):
    """Embeddings whose word index can be left out of a search, so that one store serves both measurements."""

    use_words = True

    def issparse(self) -> bool:
        return self.use_words and super().issparse()


class Adapter:
    """Vectors come from the given ones through an external transform, so no model is loaded."""

    package = "txtai"
    inside = None
    efforts = tuple({"nprobe": probes} for probes in (8, 16, 32, 64, 128, 256, 512))
    filter_efforts = tuple(
        {"nprobe": probes, "candidates": candidates}
        for probes, candidates in ((32, 1_000), (64, 2_000), (128, 5_000), (256, 10_000), (512, 20_000))
    )

    def __init__(self) -> None:
        self._given: dict[str, Vector] = {}

    def build(self, store: Path, rows: Rows) -> None:
        self._embeddings = Switched(**self._settings())
        self._given = dict(zip(rows.texts, rows.vectors, strict=True))
        self._embeddings.index(_documents(rows))
        self._embeddings.save(str(store))

    def open(self, store: Path) -> None:
        self._embeddings = Switched()
        self._embeddings.load(str(store), config=self._settings())

    def hybrid(self, question: Question, effort: Effort) -> Hits | None:
        return self._search(ANYWHERE, question, effort, words=True)

    def vectors(self, question: Question, effort: Effort) -> Hits:
        return self._search(ANYWHERE, question, effort, words=False)

    def filtered(self, question: Question, effort: Effort) -> Hits:
        return self._search(IN_BUCKET, question, effort, words=False)

    def insert(self, rows: Rows) -> None:
        self._given = dict(zip(rows.texts, rows.vectors, strict=True))
        self._embeddings.use_words = True
        self._embeddings.upsert(_documents(rows))

    def close(self) -> None:
        self._embeddings.close()

    def _search(self, sql: str, question: Question, effort: Effort, *, words: bool) -> Hits:
        self._given = {question.text: question.vector}
        self._embeddings.use_words = words
        self._embeddings.ann.config["faiss"] = {"nprobe": effort["nprobe"]} if effort else {}
        bound = {"question": question.text, "candidates": effort.get("candidates", DEFAULT_CANDIDATES)}
        rows = self._embeddings.search(sql, TOP, parameters=bound)
        return [(int(row["id"]), row["text"]) for row in rows]

    def _settings(self) -> dict[str, object]:
        return {
            "method": "external",
            "transform": lambda texts: np.stack([self._given[text] for text in texts]),
            "content": True,
            "hybrid": True,
        }


def _documents(rows: Rows) -> list[tuple[str, dict[str, object]]]:
    return [
        (str(number), {"text": text, "bucket": bucket})
        for number, text, bucket in zip(rows.numbers, rows.texts, rows.buckets, strict=True)
    ]
