"""Web pages with photos inside them, as browsers save them in one file, and what the EXIF of these says."""

import binascii
from base64 import b64decode

from conspectus.sources.files.exif import photo_line
from conspectus.sources.files.extract import Extract
from conspectus.sources.files.file_properties import language_metadata
from conspectus.sources.files.html import read_html

PHOTO_ADDRESS = "data:image/jpeg;base64,"


def read_page_with_photos(data: bytes) -> Extract:
    """Return the text of a page in UTF-8."""
    page = read_html(data.decode(), describe_picture=_describe_picture)
    return Extract(
        page.text,
        "text/html",
        title=page.title,
        notice=page.notice,
        author=page.author,
        metadata=language_metadata([page.language]),
    )


def _describe_picture(address: str) -> str:
    if not address.startswith(PHOTO_ADDRESS):
        return ""
    try:
        return photo_line(b64decode(address.removeprefix(PHOTO_ADDRESS)))
    except (binascii.Error, ValueError):
        return ""
