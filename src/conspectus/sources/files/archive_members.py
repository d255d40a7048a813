"""Members of archives of any format: each is read within the limits, or named with the reason why not."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from conspectus.deferred import dataclass
from conspectus.sources.files.extract import Limits, Member, Oversized
from conspectus.text.zips import is_clutter, leads_out

MIN_CHECKED_BYTES: Final = 1_000_000
"""What is smaller when unpacked may have any ratio to its packed size."""
MAX_REASON_LENGTH: Final = 100


@dataclass(frozen=True, slots=True)
class PackedMember:
    """A file in an archive; `unpack` returns at most as many bytes of it as asked for.

    `obstacle` says why it cannot be unpacked, and `faults` are the errors of one that is damaged.
    """

    name: str
    unpack: Callable[[int], bytes]
    faults: tuple[type[Exception], ...]
    obstacle: str = ""


def unpack_members(packed: Sequence[PackedMember], limits: Limits) -> Iterator[Member]:
    """Yield the members of an archive. Raises Oversized if they unpack to too many bytes."""
    last_of_name = {member.name: number for number, member in enumerate(packed)}
    unpacked_bytes = 0
    for number, member in enumerate(packed):
        reason = _reason_to_skip(member)
        if not reason and last_of_name[member.name] != number:
            reason = "is in the archive more than once; the last one is read"
        if reason:
            yield Member(member.name, skipped=reason)
            continue
        try:
            content = member.unpack(limits.unpacked - unpacked_bytes + 1)
        except member.faults as error:
            yield Member(member.name, refused=f"damaged in the archive: {str(error)[:MAX_REASON_LENGTH]}")
            continue
        unpacked_bytes += len(content)
        if unpacked_bytes > limits.unpacked:
            raise Oversized(unpacked_bytes, limits.unpacked)
        yield Member(member.name, content)


def _reason_to_skip(member: PackedMember) -> str:
    if leads_out(member.name):
        return "its name leads out of the archive"
    if is_clutter(member.name):
        return "is hidden"
    return member.obstacle
