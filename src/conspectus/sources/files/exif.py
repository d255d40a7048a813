"""What the EXIF of a picture says: its description, author, camera and time.

The position (GPS) is never read: whoever can read the document would learn where somebody lives.
"""

import io
import re
import struct
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from conspectus.errors import MissingExtra, optional
from conspectus.sources.files.ocr import EXTRA, Image

MAX_FIELD_LENGTH = 1_000
DESCRIPTION, MAKE, MODEL, CHANGED, ARTIST = 0x010E, 0x010F, 0x0110, 0x0132, 0x013B
EXIF, TAKEN, OFFSET = 0x8769, 0x9003, 0x9011
JPEG_MARK, EXIF_MARK = b"\xff\xd8\xff", b"Exif\0\0"
MAX_HEADER_BYTES = 200_000
_TIME = re.compile(r"(\d{4}):(\d\d):(\d\d) (\d\d:\d\d:\d\d)")
_OFFSET = re.compile(r"[+-]\d\d:\d\d")


def load_library() -> None:
    """Import the package, if it is installed: later a child process can load no module."""
    with suppress(MissingExtra):
        for module in ("PIL.JpegImagePlugin", "PIL.MpoImagePlugin", "PIL.TiffImagePlugin"):
            optional(module, EXTRA, "pillow")


def exif_fields(picture: Image) -> dict[str, str]:
    """Return the description, artist, camera, and the time that a picture was taken at."""
    tags = picture.getexif()
    taken_tags = tags.get_ifd(EXIF)
    camera = " ".join(dict.fromkeys(f"{_text_of(tags, MAKE)} {_text_of(tags, MODEL)}".split()))
    time = _TIME.match(_text_of(taken_tags, TAKEN) or _text_of(tags, CHANGED))
    offset = _OFFSET.fullmatch(_text_of(taken_tags, OFFSET))
    fields = {
        "description": _text_of(tags, DESCRIPTION),
        "artist": _text_of(tags, ARTIST),
        "camera": camera,
        "taken": "{}-{}-{}T{}".format(*time.groups()) + (offset[0] if offset else "") if time else "",
    }
    return {name: value for name, value in fields.items() if value}


def photo_line(data: bytes) -> str:
    """Return a line of what the EXIF of a JPEG inside a document says.

    It is empty for other pictures, damaged ones, and without the extra.
    """
    if not data.startswith(JPEG_MARK) or EXIF_MARK not in data[:MAX_HEADER_BYTES]:
        return ""
    try:
        plugin = optional("PIL.JpegImagePlugin", EXTRA, "pillow")
        # Pillow warns of damages that it can read in spite of.
        with warnings.catch_warnings(action="ignore"), plugin.JpegImageFile(io.BytesIO(data)) as picture:
            fields = exif_fields(picture)
    except (MissingExtra, OSError, SyntaxError, ValueError, EOFError, struct.error):
        return ""
    parts = (
        fields.get("description", ""),
        f"taken {fields['taken'].replace('T', ' ')}" if "taken" in fields else "",
        f"by {fields['artist']}" if "artist" in fields else "",
        fields.get("camera", ""),
    )
    line = ", ".join(filter(None, parts))
    return f"[Photo: {line}]" if line else ""


def _text_of(tags: Mapping[int, Any], tag: int) -> str:
    """Return a text of the EXIF on one line; empty if it is none, or has only blanks."""
    text = tags.get(tag, "")
    return " ".join(text.replace("\0", " ").split())[:MAX_FIELD_LENGTH] if isinstance(text, str) else ""
