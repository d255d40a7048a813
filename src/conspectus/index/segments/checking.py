"""Comparing an index with its own checksums and with the records."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from conspectus.errors import IndexDamaged
from conspectus.index.changes import untouched_since
from conspectus.index.filter_values import content_checksum
from conspectus.index.segments.arrays import damaged_files
from conspectus.index.segments.manifest import Manifest, read_manifest
from conspectus.index.segments.search import Snapshot
from conspectus.index.segments.segment import Segment
from conspectus.index.segments.segment_view import SegmentView
from conspectus.model.ids import ChunkId
from conspectus.model.index import Disagreement, IndexedChunk
from conspectus.ports import Ids, Reader


def damages(snapshot: Snapshot, directory: Path, identity: str) -> list[Disagreement]:
    """Files whose content has changed since they were written, each told by its segment's first chunk.

    Segments that a newer manifest does without may be gone by now, which is no damage.
    """
    found = []
    for view in snapshot.views:
        reasons = _damaged(view.segment)
        if reasons and _is_named(view.segment, read_manifest(directory, identity)):
            found += [_damage(view.segment, reason) for reason in reasons]
    return found


async def differences(snapshot: Snapshot, reader: Reader) -> list[Disagreement]:
    """Every live row against the records; what changed after the snapshot is left out."""
    ids, checksums = _rows(snapshot.views)
    seen = np.zeros(len(ids), np.bool_)
    found = []
    async for chunks in reader.scan():
        found += _compare(chunks, ids, checksums, seen)
    found += [Disagreement(ChunkId(i), "ghost", "not in the records") for i in ids[~seen].tolist()]
    return await untouched_since(snapshot.applied, found, reader)


def _rows(views: Sequence[SegmentView]) -> tuple[Ids, NDArray[np.uint64]]:
    ids = np.concatenate([np.zeros(0, np.int64), *(view.live_ids() for view in views)])
    checksums = np.concatenate([np.zeros(0, np.uint64), *(view.live_checksums() for view in views)])
    order = np.argsort(ids, kind="stable")
    return ids[order], checksums[order]


def _compare(
    chunks: Sequence[IndexedChunk], ids: Ids, checksums: NDArray[np.uint64], seen: NDArray[np.bool_]
) -> list[Disagreement]:
    found = []
    for chunk in chunks:
        number = chunk.chunk.id
        place = int(np.searchsorted(ids, number))
        if place == len(ids) or ids[place] != number:
            found.append(Disagreement(number, "missing", "not in the index"))
            continue
        seen[place] = True
        if int(checksums[place]) != content_checksum(chunk):
            found.append(Disagreement(number, "stale", "the records hold another version"))
    return found


def _damaged(segment: Segment) -> list[str]:
    if segment.path is None:
        return []
    try:
        return damaged_files(segment.path)
    except (FileNotFoundError, IndexDamaged) as error:
        return [str(error)]


def _is_named(segment: Segment, manifest: Manifest) -> bool:
    return segment.path is not None and segment.path.name in {entry.name for entry in manifest.entries}


def _damage(segment: Segment, reason: str) -> Disagreement:
    return Disagreement(ChunkId(int(segment.ids[0])), "damaged", f"{segment.path}: {reason}")
