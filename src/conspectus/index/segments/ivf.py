"""Quantized codes to preselect rows of a segment with many vectors, in inverted lists (IVF)."""

from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from conspectus.errors import IndexDamaged
from conspectus.index.bm25 import single
from conspectus.index.segments.columns import Allowed, Arrays, Half, RowNumbers
from conspectus.ports import Vectors
from conspectus.private import make_file

faiss_api: Any = faiss
"""The module `faiss`, typed as Any because its type stubs are incomplete."""

FILE = "vectors.faiss"
_CENTROIDS = 16
_BLOCK_CODES = 32
"""Codes that FAISS compares at once."""
_TRAINED_ROWS = 2_048
_TRAINING_STEPS = 4
"""Rows and steps of the training of the codes."""
_CANDIDATES_PER_HIT = 3
_MIN_ROWS, _USUAL_DIMENSIONS = 300, 384
"""Number of rows that are at least preselected, with vectors of the usual number of dimensions or more."""
_CODES_PER_VECTOR = 8
"""Number of codes that are compared in the time of one vector."""
_MAX_LISTS = 2_048
_TRAINED_PER_LIST = 48
_ITERATIONS = 6
"""Number of lists, and rows and iterations of the training of their centroids."""
_BLOCK_ROWS = 32_768
_CALIBRATION_QUERIES = 128
_QUERY_NOISE = 0.7
"""Standard deviation of the noise, relative to a unit vector, that half of the calibration queries get."""
_TARGET_RECALL = 0.98
_DEPTHS = (12, 30, 75, 200, 500, 1_000)
"""Numbers of nearest rows for which the number of lists to probe is calibrated."""


def build_codes(folder: Path, vectors: Half, rows: RowNumbers, *, lists: bool) -> dict[str, NDArray[Any]]:
    """Write codes of those rows, in one or more lists. Returns the arrays to store with the segment."""
    arrays = _make_lists(vectors, rows) if lists else _make_one_list(vectors, rows)
    make_file(folder / FILE)
    threads = faiss.omp_get_max_threads()
    # The steps are too short for threads.
    faiss.omp_set_num_threads(1)
    try:
        _write(str(folder / FILE), vectors, rows, arrays)
    finally:
        faiss.omp_set_num_threads(threads)
    return arrays


def _make_one_list(vectors: Half, rows: RowNumbers) -> dict[str, NDArray[Any]]:
    return {
        "lists.centroids": vectors[rows[:_TRAINED_ROWS]].mean(axis=0, dtype=np.float32)[None],
        "lists.of_row": np.zeros(0, np.uint16),
        "lists.probes": np.ones(len(_DEPTHS), np.int64),
    }


def _make_lists(vectors: Half, rows: RowNumbers) -> dict[str, NDArray[Any]]:
    count = int(min(_MAX_LISTS, 4 * len(rows) ** 0.5, max(1, len(rows) // 4)))
    centroids = _centroids(_sample(vectors, rows, _TRAINED_PER_LIST * count), count)
    quantizer = faiss.IndexFlatIP(vectors.shape[1])
    quantizer.add(centroids)
    list_of_row = np.zeros(len(vectors), np.uint16)
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = rows[start : start + _BLOCK_ROWS]
        list_of_row[block] = quantizer.search(single(vectors[block]), 1)[1][:, 0]
    probes = _calibrate_probes(vectors, rows, centroids, list_of_row)
    return {"lists.centroids": centroids, "lists.of_row": list_of_row, "lists.probes": probes}


def _sample(vectors: Half, rows: RowNumbers, maximum: int) -> Vectors:
    random = np.random.default_rng(len(rows))
    sample = np.sort(random.choice(rows, min(len(rows), maximum), replace=False))
    return single(vectors[sample])


def _write(path: str, vectors: Half, rows: RowNumbers, arrays: Arrays) -> None:
    """Write an index with lists of packed blocks, so that the file can be memory-mapped.

    Two dimensions share a byte of 4-bit codes. The last block of a list is padded with ids -1 and codes
    opposite to the centroid, which rank last.
    """
    dimensions, centroids = vectors.shape[1], arrays["lists.centroids"]
    parts = dimensions if dimensions % 2 else dimensions // 2
    writer: Any = faiss.IndexPQFastScan(dimensions, parts, 4, faiss.METRIC_INNER_PRODUCT, _BLOCK_CODES)
    writer.pq.cp.niter = _TRAINING_STEPS
    writer.pq.cp.min_points_per_centroid = 1
    sample = _sample(vectors, rows, _TRAINED_ROWS)
    writer.train(np.resize(sample, (max(len(sample), _CENTROIDS), dimensions)))
    quantizer = faiss.IndexFlatIP(dimensions)
    quantizer.add(centroids)
    index: Any = faiss.IndexIVFPQFastScan(
        quantizer, dimensions, len(centroids), parts, 4, faiss.METRIC_INNER_PRODUCT, _BLOCK_CODES
    )
    index.by_residual, index.pq, index.is_trained, index.ntotal = False, writer.pq, True, len(rows)
    # Blocks allocated by FAISS cannot be mapped; plain lists with the same bytes can.
    lists: Any = faiss.ArrayInvertedLists(len(centroids), writer.M2 // 2)
    index.replace_invlists(lists, False)
    for number, members in enumerate(_members(rows, arrays["lists.of_row"], len(centroids))):
        ids = np.append(members, np.full(-len(members) % _BLOCK_CODES, -1))
        _encode(writer, vectors, members, -centroids[number])
        lists.add_entries(number, len(ids), faiss.swig_ptr(ids), writer.codes.get())
    faiss.write_index(index, path)


def _members(rows: RowNumbers, list_of_row: NDArray[np.uint16], count: int) -> list[RowNumbers]:
    if count == 1:
        return [rows]
    lists = list_of_row[rows]
    sizes = np.bincount(lists, minlength=count)
    return np.split(rows[np.argsort(lists, kind="stable")], np.cumsum(sizes)[:-1])


def _encode(writer: Any, vectors: Half, members: RowNumbers, padding: Vectors) -> None:
    writer.reset()
    for start in range(0, len(members), _BLOCK_ROWS):
        block = single(vectors[members[start : start + _BLOCK_ROWS]])
        missing = np.broadcast_to(padding, (-len(block) % _BLOCK_CODES, len(padding)))
        writer.add(np.concatenate([block, missing]))


class Codes:
    """The codes of one segment, in inverted lists if there are many."""

    def __init__(self, folder: Path, arrays: Arrays) -> None:
        try:
            self._index: Any = faiss.read_index(str(folder / FILE), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexDamaged(str(folder / FILE), "faiss cannot read it") from error
        self._centroids = arrays["lists.centroids"]
        self._list_of_row = arrays["lists.of_row"]
        self._probes = arrays["lists.probes"]
        is_one_list = len(self._centroids) == 1
        self.exact_rows: int = self._index.ntotal // _CODES_PER_VECTOR if is_one_list else 0
        """Up to this many allowed rows, comparing their vectors is faster than visiting the only list."""

    def find_near_rows(self, query: Vectors, limit: int, allowed: Allowed) -> RowNumbers:
        """Return allowed rows that contain about the best `limit`, several times as many."""
        if len(self._centroids) == 1:
            return self._visit(query, np.zeros(1, np.int64), limit, allowed)
        similarity = _products(self._centroids, query)
        usable = len(similarity)
        if allowed.mask is not None:
            occupied = allowed.find_occupied_parts(self._list_of_row, usable)
            usable = int(np.count_nonzero(occupied))
            similarity = np.where(occupied, similarity, -np.inf)
        min_rows = min(limit, allowed.count)
        probes = min(usable, self._depth(limit, allowed.count / self._index.ntotal))
        while True:
            order = np.argpartition(-similarity, probes - 1)[:probes].astype(np.int64)
            rows = self._visit(query, order, limit, allowed)
            if len(rows) >= min_rows or probes >= usable:
                return rows
            probes = min(usable, 4 * probes)

    def _depth(self, limit: int, share: float) -> int:
        depth = max(_DEPTHS[0], 0.3 * limit) / share
        position = int(np.searchsorted(_DEPTHS, depth))
        if position < len(_DEPTHS):
            return int(self._probes[position])
        return int(self._probes[-1] * depth / _DEPTHS[-1]) + 1

    def _visit(self, query: Vectors, lists: RowNumbers, limit: int, allowed: Allowed) -> RowNumbers:
        faiss.omp_set_num_threads(1)
        # With fewer dimensions, quantization errors average out less.
        min_count = _MIN_ROWS * _USUAL_DIMENSIONS // min(_USUAL_DIMENSIONS, len(query))
        count = max(_CANDIDATES_PER_HIT * limit, min_count)
        bits = allowed.bits
        selector = None if bits is None else faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
        parameters = faiss_api.SearchParametersIVF(nprobe=len(lists), sel=selector)
        distances = np.zeros(len(lists), np.float32)
        scores, rows = np.empty(count, np.float32), np.empty(count, np.int64)
        self._index.search_preassigned_c(
            1,
            faiss.swig_ptr(query),
            count,
            faiss.swig_ptr(lists),
            faiss.swig_ptr(distances),
            faiss.swig_ptr(scores),
            faiss.swig_ptr(rows),
            False,
            parameters,
        )
        return rows[rows >= 0]


def _products(rows: Vectors, query: Vectors) -> Vectors:
    """Compute inner products in this thread: BLAS would start others, which is slower on a busy machine."""
    products = np.empty(len(rows), np.float32)
    faiss_api.fvec_inner_products_ny(
        faiss.swig_ptr(products), faiss.swig_ptr(query), faiss.swig_ptr(rows), rows.shape[1], len(rows)
    )
    return products


def _centroids(sample: Vectors, count: int) -> Vectors:
    trainer = faiss_api.Kmeans(
        sample.shape[1],
        count,
        niter=_ITERATIONS,
        spherical=True,
        seed=1,
        min_points_per_centroid=1,
        max_points_per_centroid=_TRAINED_PER_LIST,
    )
    trainer.train(sample)
    centroids: Vectors = trainer.centroids
    return centroids


def _calibrate_probes(
    vectors: Half, rows: RowNumbers, centroids: Vectors, list_of_row: NDArray[np.uint16]
) -> NDArray[np.int64]:
    """Return for each depth the number of lists to probe for the target recall."""
    random = np.random.default_rng(len(rows) + 1)
    query_rows = random.choice(rows, min(len(rows), _CALIBRATION_QUERIES), replace=False)
    queries = single(vectors[query_rows])
    noise = random.standard_normal(queries.shape, np.float32) * (_QUERY_NOISE / queries.shape[1] ** 0.5)
    queries[::2] += noise[::2]
    neighbors = _neighbors(vectors, rows, queries)
    order = np.argsort(-(queries @ centroids.T), axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[1])[None], axis=1)
    neighbor_ranks = np.take_along_axis(ranks, list_of_row[neighbors].astype(np.int64), axis=1)
    return np.array(
        [np.quantile(neighbor_ranks[:, 1:depth], _TARGET_RECALL) + 1 for depth in _DEPTHS], np.int64
    )


def _neighbors(vectors: Half, rows: RowNumbers, queries: Vectors) -> RowNumbers:
    """Return the nearest rows of each query, best first."""
    scores = np.full((len(queries), 0), 0.0, np.float32)
    neighbors = np.zeros((len(queries), 0), np.int64)
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = rows[start : start + _BLOCK_ROWS]
        scores = np.hstack([scores, queries @ single(vectors[block]).T])
        neighbors = np.hstack([neighbors, np.broadcast_to(block, (len(queries), len(block)))])
        nearest = np.argpartition(-scores, min(_DEPTHS[-1], scores.shape[1] - 1), axis=1)[:, : _DEPTHS[-1]]
        scores, neighbors = (
            np.take_along_axis(scores, nearest, axis=1),
            np.take_along_axis(neighbors, nearest, axis=1),
        )
    return np.take_along_axis(neighbors, np.argsort(-scores, axis=1), axis=1)
