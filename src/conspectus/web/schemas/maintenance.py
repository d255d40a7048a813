"""What the store says about itself."""

from typing import Literal

from conspectus.web.schemas.base import Count, ResponseModel


class IndexAnswer(ResponseModel):
    """Size of an index: live rows, rows with a vector, bytes on disk, and how the rows are cut."""

    chunks: Count
    vectors: Count
    bytes: Count
    segments: Count
    applied: Count
    details: dict[str, str]


class PercentilesAnswer(ResponseModel):
    """The 5th, 50th and 95th percentile of cosine similarities."""

    p5: float
    p50: float
    p95: float


class SimilarityAnswer(ResponseModel):
    """Similarities of a query and a text that answers it, and of a query and a random other text."""

    related: PercentilesAnswer
    unrelated: PercentilesAnswer


class CollectionStatusAnswer(ResponseModel):
    """One collection in numbers. `pending` chunks have no vector yet; `lag` is changes not indexed yet.

    `similarity` tells what similarities its embedding model gives; null where they were not measured.
    """

    name: str
    space: str | None
    sources: Count
    documents: Count
    chunks: Count
    vectors: Count
    pending: Count
    errors: Count
    lag: Count
    index: IndexAnswer
    similarity: SimilarityAnswer | None


class StatusAnswer(ResponseModel):
    """How much there is, and for the owner of the store where."""

    path: str
    version: str
    bytes: Count
    collections: list[CollectionStatusAnswer]


class DisagreementAnswer(ResponseModel):
    """One difference between records and index."""

    chunk: int
    problem: Literal["missing", "ghost", "stale", "damaged"]
    detail: str


class CheckAnswer(ResponseModel):
    """Differences between records and index by collection, and what the database found in itself."""

    clean: bool
    records: list[str]
    index: dict[str, list[DisagreementAnswer]]


class ReindexedAnswer(ResponseModel):
    """The collection whose index was built anew."""

    collection: str


class HealthAnswer(ResponseModel):
    """How the server is."""

    status: Literal["alive", "ready"]
