"""Damaged files of an index: a segment whose checksums are wrong."""

from pathlib import Path

from conspectus.errors import IndexDamaged
from conspectus.index.segments.manifest import Manifest, find_damaged_files, read_manifest
from conspectus.index.segments.search import Snapshot
from conspectus.index.segments.segment import Segment
from conspectus.model.ids import ChunkId
from conspectus.model.index import Disagreement


def find_damages(snapshot: Snapshot, directory: Path, identity: str) -> list[Disagreement]:
    """Report files whose checksum is wrong, each with the first chunk of its segment.

    Segments that a newer manifest does not list may be deleted by now, which is no damage.
    """
    disagreements = []
    for view in snapshot.views:
        reasons = _damage_reasons(view.segment)
        if reasons and _is_named(view.segment, read_manifest(directory, identity)):
            disagreements += [_to_disagreement(view.segment, reason) for reason in reasons]
    return disagreements


def _damage_reasons(segment: Segment) -> list[str]:
    if segment.path is None:
        return []
    try:
        return find_damaged_files(segment.path)
    except (FileNotFoundError, IndexDamaged) as error:
        return [str(error)]


def _is_named(segment: Segment, manifest: Manifest) -> bool:
    return segment.path is not None and segment.path.name in {entry.name for entry in manifest.entries}


def _to_disagreement(segment: Segment, reason: str) -> Disagreement:
    return Disagreement(ChunkId(int(segment.ids[0])), "damaged", f"{segment.path}: {reason}")
