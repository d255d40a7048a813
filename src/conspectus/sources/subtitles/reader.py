"""Caption files of this machine, or from a caller, as bytes in any encoding."""

from dataclasses import dataclass, replace

from conspectus.errors import TooLarge
from conspectus.model.streams import CaptionTrack
from conspectus.settings import Settings
from conspectus.sources.plain_text import plain_text
from conspectus.sources.subtitles.caption_import import read_caption_file


@dataclass(frozen=True, slots=True)
class LocalCaptions:
    """The `CaptionReader` port; the limit is in bytes of a file."""

    max_file_bytes: int = 50_000_000

    @classmethod
    def under(cls, settings: Settings) -> "LocalCaptions":
        """With the limits of the settings."""
        return cls(max_file_bytes=settings.max_file_bytes)

    def read(self, data: bytes, name: str, *, sentences: bool) -> CaptionTrack:
        """The captions of a file. Raises TooLarge or UnreadableFile."""
        if len(data) > self.max_file_bytes:
            raise TooLarge("file", size=len(data), limit=self.max_file_bytes)
        plain = plain_text(data, name, known=True)
        track = read_caption_file(plain.text, name, sentences=sentences)
        notices = [*plain.doubts, *([track.notice] if track.notice else [])]
        return replace(track, notice="; ".join(notices) or None)
