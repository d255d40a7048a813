"""Messages of Outlook made by hand: a compound file (MS-CFB) with the properties of MS-OXMSG."""

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

Node: TypeAlias = "bytes | Mapping[str, Node]"

SECTOR, MINI_SECTOR, MINI_CUTOFF = 512, 64, 4096
FREE, END, FAT_SECTOR = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
STORAGE, STREAM, ROOT = 1, 2, 5
TEXT, BINARY, NUMBER, TIME = 0x001F, 0x0102, 0x0003, 0x0040
SUBJECT, BODY, SENDER, SENDER_ADDRESS, SENT = 0x0037, 0x1000, 0x0C1A, 0x5D01, 0x0039
MESSAGE_ID, IN_REPLY_TO = 0x1035, 0x1042
KIND, NAME, ADDRESS = 0x0C15, 0x3001, 0x39FE
FILE_NAME, FILE_BYTES = 0x3707, 0x3701


def outlook_message(
    properties: Mapping[int, object],
    recipients: Sequence[Mapping[int, object]] = (),
    files: Sequence[Mapping[int, object]] = (),
    forwarded: Sequence[Mapping[int, object]] = (),
) -> bytes:
    """A .msg file with recipients, attached files, and messages that are attached as such."""
    tree: dict[str, Node] = {**_storage(properties, bytes(32))}
    for number, recipient in enumerate(recipients):
        tree[f"__recip_version1.0_#{number:08X}"] = _storage(recipient, bytes(8))
    for number, file in enumerate(files):
        tree[f"__attach_version1.0_#{number:08X}"] = _storage(file, bytes(8))
    for number, inner in enumerate(forwarded, len(files)):
        part = {**_storage({}, bytes(8)), "__substg1.0_3701000D": _storage(inner, bytes(24))}
        tree[f"__attach_version1.0_#{number:08X}"] = part
    return compound(tree)


def _storage(properties: Mapping[int, object], header: bytes) -> dict[str, Node]:
    """The streams of the properties of a message, a recipient or an attachment."""
    rows, streams = [header], {}
    for pid, content in properties.items():
        match content:
            case int():
                rows.append(struct.pack("<HHIII", NUMBER, pid, 6, content, 0))
                continue
            case datetime():
                ticks = int((content - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10_000_000
                rows.append(struct.pack("<HHIQ", TIME, pid, 6, ticks))
                continue
            case str():
                kind, encoded = TEXT, content.encode("utf-16-le")
            case bytes():
                kind, encoded = BINARY, content
            case _:
                raise TypeError(content)
        rows.append(struct.pack("<HHIII", kind, pid, 6, len(encoded), 0))
        streams[f"__substg1.0_{pid:04X}{kind:04X}"] = encoded
    return {"__properties_version1.0": b"".join(rows), **streams}


def compound(tree: Mapping[str, Node]) -> bytes:
    """A compound file with these storages and streams."""
    file = _Compound()
    file.add("Root Entry", tree, ROOT)
    return file.finish()


class _Compound:
    def __init__(self) -> None:
        self.entries: list[list[object]] = []
        self.small = bytearray()
        self.small_fat: list[int] = []
        self.sectors: list[bytes] = []
        self.fat: list[int] = []

    def add(self, name: str, node: Node, kind: int) -> int:
        number = len(self.entries)
        entry: list[object] = [name, kind, FREE, FREE, END, 0]
        self.entries.append(entry)
        if isinstance(node, bytes):
            entry[4], entry[5] = self._store(node), len(node)
            return number
        previous: list[object] | None = None
        for child_name, child in node.items():
            child_number = self.add(child_name, child, STREAM if isinstance(child, bytes) else STORAGE)
            if previous is None:
                entry[3] = child_number
            else:
                previous[2] = child_number
            previous = self.entries[child_number]
        return number

    def _store(self, data: bytes) -> int:
        if len(data) >= MINI_CUTOFF:
            return self._write(data)
        start, count = len(self.small_fat), -(-len(data) // MINI_SECTOR)
        self.small += data.ljust(count * MINI_SECTOR, b"\0")
        self.small_fat += [*range(start + 1, start + count), END] if count else []
        return start if count else END

    def _write(self, data: bytes) -> int:
        start, count = len(self.sectors), -(-len(data) // SECTOR)
        padded = data.ljust(count * SECTOR, b"\0")
        self.sectors += [padded[at : at + SECTOR] for at in range(0, len(padded), SECTOR)]
        self.fat += [*range(start + 1, start + count), END] if count else []
        return start if count else END

    def finish(self) -> bytes:
        root = self.entries[0]
        root[4], root[5] = self._write(bytes(self.small)), len(self.small)
        small_fat = self._write(
            struct.pack(f"<{len(self.small_fat)}I", *self.small_fat).ljust(SECTOR, b"\xff")
        )
        entries = b"".join(map(_directory_entry, self.entries))
        directory = self._write(entries.ljust(-(-len(entries) // SECTOR) * SECTOR, b"\0"))
        fat_count = 1
        while fat_count * (SECTOR // 4) < len(self.fat) + fat_count:
            fat_count += 1
        first = len(self.fat)
        fat = [*self.fat, *[FAT_SECTOR] * fat_count]
        fat += [FREE] * (fat_count * (SECTOR // 4) - len(fat))
        difat = [*range(first, first + fat_count), *[FREE] * (109 - fat_count)]
        small_sectors = -(-len(self.small_fat) * 4 // SECTOR)
        header = struct.pack(
            "<8s16sHHHHH6xIIIIIIIII", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"", 0x3E, 3, 0xFFFE, 9, 6, 0,
            fat_count, directory, 0, MINI_CUTOFF, small_fat, max(1, small_sectors), END, 0,
        )  # fmt: skip
        return b"".join(
            (header, struct.pack("<109I", *difat), *self.sectors, struct.pack(f"<{len(fat)}I", *fat))
        )


def _directory_entry(entry: Sequence[object]) -> bytes:
    name, kind, right, child, start, size = entry
    encoded = str(name).encode("utf-16-le") + b"\0\0"
    numbers = (len(encoded), kind, 1, FREE, right, child, b"", 0, 0, 0, start, size)
    return struct.pack("<64sHBBIII16sIQQIQ", encoded, *numbers)
