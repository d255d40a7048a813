"""Pictures: their text by OCR, and the date, description, author and camera of their EXIF."""

import io
import struct
import warnings

from conspectus.errors import optional
from conspectus.model.records import TextPosition
from conspectus.sources.files.exif import exif_fields
from conspectus.sources.files.extract import Extract, Refused
from conspectus.sources.files.ocr import EXTRA, LANCZOS, Image, RecognizedPage, Recognizer
from conspectus.sources.files.scans import Scans, describe_recognition, recognition_notices, with_boxes

FORMATS = ("BMP", "JPEG", "PNG", "TIFF", "WEBP")
MEDIA_TYPES = {"MPO": "image/jpeg"}
MAX_PICTURE_PIXELS = 100_000_000
MAX_FRAMES = 2_000
MIN_SHARP_PIXELS = 1_500_000
"""Smaller pictures are enlarged: the letters of a screenshot are too small for Tesseract."""
BETWEEN = "\n\n"


def read_picture(data: bytes, recognizer: Recognizer) -> Extract:
    """Return the text of a picture, and of each page of a TIFF. Raises Refused."""
    library = optional("PIL.Image", EXTRA, "pillow")
    damages = (OSError, SyntaxError, ValueError, EOFError, struct.error, library.DecompressionBombError)
    try:
        # Pillow warns of damages that it can read in spite of.
        with (
            warnings.catch_warnings(action="ignore"),
            library.open(io.BytesIO(data), formats=FORMATS) as picture,
        ):
            return _read_frames(picture, recognizer)
    except library.UnidentifiedImageError:
        raise Refused("a damaged picture, or of another format than its name says") from None
    except damages as error:
        raise Refused(f"a damaged picture: {error}") from None


def _read_frames(picture: Image, recognizer: Recognizer) -> Extract:
    fields = exif_fields(picture)
    frames = min(getattr(picture, "n_frames", 1), MAX_FRAMES) if picture.format == "TIFF" else 1
    text = fields.pop("description", "")
    recognized: list[tuple[int, RecognizedPage]] = []
    places: list[TextPosition] = []
    while len(places) < frames and not recognizer.is_late():
        page = recognizer.read(_upright(picture, len(places)))
        text += BETWEEN if text and page.text else ""
        recognized.append((len(text), page))
        places.append(TextPosition(len(text), len(places) + 1 if frames > 1 else None))
        text += page.text
    scans = Scans(dict(enumerate(page for _, page in recognized)), not_reached=frames - len(places))
    has_words = any(page.text for _, page in recognized)
    notices = list(recognition_notices(scans, frames))
    return Extract(
        text,
        MEDIA_TYPES.get(picture.format, f"image/{picture.format.lower()}"),
        places=with_boxes(places, recognized),
        notice="; ".join(notices) or (None if text else "no text was found in the picture"),
        syntax="plain",
        author=fields.pop("artist", None),
        occurred=fields.pop("taken", None),
        metadata={**fields, **(describe_recognition(recognized) if has_words else {})},
        read_by="ocr" if has_words else "text",
    )


def _upright(picture: Image, index: int) -> Image:
    """Return a frame as a viewer shows it, large enough to be read."""
    picture.seek(index)
    width, height = picture.size
    if width * height > MAX_PICTURE_PIXELS:
        raise Refused(f"has {width} by {height} pixels; at most {MAX_PICTURE_PIXELS} are read")
    frame = optional("PIL.ImageOps", EXTRA, "pillow").exif_transpose(_on_white(picture))
    if width * height >= MIN_SHARP_PIXELS:
        return frame
    return frame.resize((2 * frame.width, 2 * frame.height), resample=LANCZOS)


def _on_white(picture: Image) -> Image:
    """Return the picture in gray, with white where it is transparent."""
    if not picture.has_transparency_data:
        return picture.convert("L")
    layer = picture.convert("RGBA")
    paper = optional("PIL.Image", EXTRA, "pillow").new("RGBA", layer.size, "white")
    return optional("PIL.Image", EXTRA, "pillow").alpha_composite(paper, layer).convert("L")
