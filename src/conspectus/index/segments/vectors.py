"""Exact search over half-precision vectors, read where they are stored."""

from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from conspectus.index.segments.row_filter import Allowed
from conspectus.ports import Vectors

Half = NDArray[np.float16]
RowNumbers = NDArray[np.int64]

faiss_api: Any = faiss
"""The same module where its type stubs lack what it has."""

_MARGIN = 16


def nearest(vectors: Half, query: Vectors, limit: int, allowed: Allowed) -> RowNumbers:
    """Rows that certainly hold the `limit` best allowed ones with all ties, and few others.

    Few allowed rows are gathered, many are scanned in place.
    """
    if 8 * allowed.count < len(vectors):
        rows = allowed.rows
        return rows[_certain(vectors[rows], query, limit, None)]
    return _certain(vectors, query, limit, allowed.bits)


def _certain(vectors: Half, query: Vectors, limit: int, bits: NDArray[np.uint8] | None) -> RowNumbers:
    size, dimensions = vectors.shape
    # What single precision may lose in a product of unit vectors, on either side of the limit.
    slack = 2.0**-23 * dimensions
    count = min(size, limit + _MARGIN)
    while True:
        scores, rows = _scan(vectors, query, count, bits)
        found = rows >= 0
        if count == size or not found.all():
            return rows[found]
        if scores.min() < np.partition(scores, count - limit)[count - limit] - slack:
            return rows
        count = min(size, 8 * count)


def _scan(
    vectors: Half, query: Vectors, count: int, bits: NDArray[np.uint8] | None
) -> tuple[NDArray[np.float32], RowNumbers]:
    codes = vectors.view(np.uint8).reshape(-1)
    question = np.ascontiguousarray(query, np.float32)
    selector = None if bits is None else faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
    quantizer = faiss_api.ScalarQuantizer(vectors.shape[1], faiss.ScalarQuantizer.QT_fp16)
    flat = faiss.IndexFlatIP(vectors.shape[1])
    scanner = quantizer.select_InvertedListScanner(faiss.METRIC_INNER_PRODUCT, flat, True, selector, False)
    scanner.set_query(faiss.swig_ptr(question))
    scanner.set_list(0, 0.0)
    scores = np.full(count, -np.inf, np.float32)
    rows = np.full(count, -1, np.int64)
    scanner.scan_codes(
        len(vectors), faiss.swig_ptr(codes), None, faiss.swig_ptr(scores), faiss.swig_ptr(rows), count
    )
    # Python does not own what this factory made, and taking ownership breaks SWIG's table of destructors.
    faiss_api.InvertedListScanner.__swig_destroy__(scanner)
    return scores, rows
