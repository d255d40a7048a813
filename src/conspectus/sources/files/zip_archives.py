"""ZIP archives as folders: each member with its bytes, or with the reason why it is left out."""

import io
import stat
import zipfile
from collections.abc import Iterator

from conspectus.sources.files.extract import Extract, Limits, Member, Oversized, Refused
from conspectus.text.zips import DAMAGED, ENCRYPTED, is_clutter, leads_out, name_of

MEDIA_TYPE = "application/zip"
MIN_CHECKED_BYTES = 1_000_000
"""Smaller members may have any ratio to their packed size."""
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
    return Extract("", MEDIA_TYPE, notice=notice, members=tuple(_members(archive, entries, limits)))


def _members(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo], limits: Limits) -> Iterator[Member]:
    last_of_name = {name_of(entry): number for number, entry in enumerate(entries)}
    unpacked_bytes = 0
    for number, entry in enumerate(entries):
        name = name_of(entry)
        reason = _reason_to_skip(entry, name, limits)
        if not reason and last_of_name[name] != number:
            reason = "is in the archive more than once; the last one is read"
        if reason:
            yield Member(name, skipped=reason)
            continue
        member = _read_member(archive, entry, limits.unpacked - unpacked_bytes)
        unpacked_bytes += len(member.data)
        if unpacked_bytes > limits.unpacked:
            raise Oversized(unpacked_bytes, limits.unpacked)
        yield member


def _reason_to_skip(entry: zipfile.ZipInfo, name: str, limits: Limits) -> str:
    """Return why a member is not read; empty if it is."""
    if leads_out(name):
        return "its name leads out of the archive"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "is a link"
    if is_clutter(name):
        return "is hidden"
    if entry.flag_bits & ENCRYPTED:
        return "is encrypted with a password"
    if entry.file_size > MIN_CHECKED_BYTES and entry.file_size > limits.ratio * max(entry.compress_size, 1):
        return f"unpacks to more than {limits.ratio} times its size"
    return ""


def _read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, max_bytes: int) -> Member:
    """Return a member with at most one byte more than allowed."""
    name = name_of(entry)
    try:
        with archive.open(entry) as stream:
            return Member(name, stream.read(max_bytes + 1))
    except FAULTS as error:
        return Member(name, refused=f"damaged in the archive: {str(error)[:100]}")
