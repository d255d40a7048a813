"""The text of messages of Outlook that have it as compressed RTF alone.

The packages `compressed-rtf` and `striprtf` read it. The format is MS-OXRTFCP.
"""

import struct
from typing import Final

from conspectus.errors import optional

MODULES: Final = ("compressed_rtf.crc32", "compressed_rtf.compressed_rtf", "striprtf.striprtf")
_HEADER: Final = struct.Struct("<II4sI")
"""The sizes of the compressed and the plain text, the kind, and the checksum of what follows."""
_COMPRESSED, _PLAIN = b"LZFu", b"MELA"
_BYTES_BEFORE_COUNT: Final = 4
"""Bytes of the header that the first size does not count."""


def read_compressed_rtf(compressed: bytes) -> str:
    """Return the text of compressed RTF; empty if it is damaged.

    Raises MissingExtra without the packages.
    """
    checksums, compression, plain_text = (optional(module, "outlook", "striprtf") for module in MODULES)
    if len(compressed) < _HEADER.size:
        return ""
    size, _, kind, checksum = _HEADER.unpack_from(compressed)
    content = compressed[_HEADER.size : _BYTES_BEFORE_COUNT + size]
    expected = {_COMPRESSED: checksums.crc32(content), _PLAIN: 0}
    if expected.get(kind) != checksum:
        return ""
    try:
        rtf = compression.decompress(compressed)
        text: str = plain_text.rtf_to_text(rtf.decode("latin-1"), errors="replace")
    except (ValueError, LookupError, TypeError, struct.error):
        return ""
    return text.strip()
