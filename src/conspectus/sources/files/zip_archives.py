"""ZIP archives as folders: each member with its bytes, or with the reason why it is left out."""

import io
import stat
import zipfile

from conspectus.sources.files.archive_members import MIN_CHECKED_BYTES, PackedMember, unpack_members
from conspectus.sources.files.extract import Extract, Limits, Refused
from conspectus.text.zips import DAMAGED, ENCRYPTED, name_of

MEDIA_TYPE = "application/zip"
FAULTS = (*DAMAGED, OSError, RuntimeError)


def read_zip(data: bytes, limits: Limits) -> Extract:
    """Return the members of an archive. Raises Refused, or Oversized if they unpack to too many bytes."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except FAULTS as error:
        raise Refused(f"a damaged ZIP archive: {error}") from None
    entries = [entry for entry in archive.infolist() if not name_of(entry).endswith("/")]
    if len(entries) > limits.members:
        raise Refused(f"has {len(entries)} members, more than {limits.members}; see max_archive_members")
    notice = None if entries else "the archive is empty"
    packed = [_packed_member(archive, entry, limits) for entry in entries]
    return Extract("", MEDIA_TYPE, notice=notice, members=tuple(unpack_members(packed, limits)))


def _packed_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limits: Limits) -> PackedMember:
    def unpack(max_bytes: int) -> bytes:
        with archive.open(entry) as stream:
            return stream.read(max_bytes)

    return PackedMember(name_of(entry), unpack, FAULTS, _obstacle(entry, limits))


def _obstacle(entry: zipfile.ZipInfo, limits: Limits) -> str:
    """Return why a member is not unpacked; empty if it is."""
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "is a link"
    if entry.flag_bits & ENCRYPTED:
        return "is encrypted with a password"
    if entry.file_size > MIN_CHECKED_BYTES and entry.file_size > limits.ratio * max(entry.compress_size, 1):
        return f"unpacks to more than {limits.ratio} times its size"
    return ""
