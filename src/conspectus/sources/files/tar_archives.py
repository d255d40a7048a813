"""Tar archives as folders, packed by gzip, bzip2 or xz or not packed at all.

Nothing is unpacked to disk, and no link is followed: only the bytes of regular files are read.
"""

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable, Mapping
from typing import Final, cast

from conspectus.sources.files.archive_members import MIN_CHECKED_BYTES, PackedMember, unpack_members
from conspectus.sources.files.extract import Extract, Limits, Oversized, Refused, Unsupported
from conspectus.text.zips import DAMAGED

MEDIA_TYPE: Final = "application/x-tar"
FAULTS: Final = (*DAMAGED, OSError, lzma.LZMAError, tarfile.TarError)
OPENERS: Final[Mapping[bytes, Callable[[io.BytesIO], object]]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
"""What unpacks a file, by its first bytes."""


def read_tar(data: bytes, limits: Limits) -> Extract:
    """Return the members of an archive.

    Raises Refused, Oversized if they unpack to too many bytes, and Unsupported for one packed file that is no
    archive.
    """
    unpacked = _unpack(data, limits)
    try:
        archive = tarfile.TarFile(fileobj=io.BytesIO(unpacked), errors="replace")
    except FAULTS as error:
        if unpacked is data:
            raise Refused(f"a damaged tar archive: {error}") from None
        raise Unsupported("a packed file, and no tar archive. Unpack it, and add the file.") from None
    entries, fault = _read_entries(archive, unpacked, limits)
    packed = [_packed_member(archive, entry) for entry in entries if not entry.isdir()]
    notice = None if packed else "the archive is empty"
    if fault:
        notice = f"the archive is damaged after {len(entries)} entries: {fault}"
    return Extract("", MEDIA_TYPE, notice=notice, members=tuple(unpack_members(packed, limits)))


def _unpack(data: bytes, limits: Limits) -> bytes:
    """Return the bytes of the tar archive in a packed file; the same bytes if it is not packed."""
    opener = next((opener for mark, opener in OPENERS.items() if data.startswith(mark)), None)
    if opener is None:
        return data
    max_by_ratio = max(MIN_CHECKED_BYTES, limits.ratio * len(data))
    try:
        with cast(io.BufferedIOBase, opener(io.BytesIO(data))) as stream:
            unpacked = stream.read(min(limits.unpacked, max_by_ratio) + 1)
    except FAULTS as error:
        raise Refused(f"a damaged archive: {error}. Pack it again") from None
    if len(unpacked) > limits.unpacked:
        raise Oversized(len(unpacked), limits.unpacked)
    if len(unpacked) > max_by_ratio:
        raise Refused(f"unpacks to more than {limits.ratio} times its size; see max_archive_ratio")
    return unpacked


def _read_entries(
    archive: tarfile.TarFile, unpacked: bytes, limits: Limits
) -> tuple[list[tarfile.TarInfo], str]:
    """Return the entries up to the first damage, and that damage. Raises Refused for too many."""
    entries: list[tarfile.TarInfo] = []
    try:
        for entry in archive:
            entries.append(entry)
            if len(entries) > limits.members:
                raise Refused(f"has more than {limits.members} members; see max_archive_members")
    except FAULTS as error:
        return entries, str(error)
    # The library ends at a damaged header as at the end of the archive, which is a block of zeros.
    rest = unpacked[archive.offset : archive.offset + tarfile.BLOCKSIZE]
    return entries, "what follows cannot be read" if rest.strip(b"\0") else ""


def _packed_member(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> PackedMember:
    def unpack(max_bytes: int) -> bytes:
        stream = archive.extractfile(entry)
        return b"" if stream is None else stream.read(max_bytes)

    obstacle = "" if entry.isreg() else "is a link" if entry.issym() or entry.islnk() else "is a device"
    return PackedMember(entry.name.replace("\\", "/").removeprefix("./"), unpack, FAULTS, obstacle)
