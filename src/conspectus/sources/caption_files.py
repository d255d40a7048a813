"""Files that become streams: captions of any format, and recordings, whose speech becomes captions."""

from dataclasses import field, replace
from pathlib import Path

from conspectus.deferred import dataclass
from conspectus.errors import TooLarge
from conspectus.model.captions import CaptionTrack, is_recording
from conspectus.ports.streams import Watch, ignore_progress
from conspectus.settings import Settings
from conspectus.sources.plain_text import plain_text
from conspectus.sources.speech.transcriber import transcribe
from conspectus.sources.speech.transcripts import to_captions
from conspectus.sources.subtitles.caption_import import read_caption_file


@dataclass(frozen=True, slots=True)
class LocalCaptions:
    """The `CaptionReader` port."""

    settings: Settings = field(default_factory=Settings)

    def read(
        self, data: bytes | Path, name: str, *, sentences: bool, watch: Watch = ignore_progress
    ) -> CaptionTrack:
        """Return the captions of a file, or the speech of a recording. Raises TooLarge or UnreadableFile."""
        if is_recording(name):
            return to_captions(transcribe(data, name, self.settings, watch), name, by_sentence=sentences)
        content = self._content(data)
        plain = plain_text(content, name, is_text=True)
        track = read_caption_file(plain.text, name, sentences=sentences)
        notices = [*plain.warnings, *([track.notice] if track.notice else [])]
        return replace(track, notice="; ".join(notices) or None)

    def _content(self, data: bytes | Path) -> bytes:
        """Return the bytes of a file, given as such or by its path. Raises TooLarge."""
        size = len(data) if isinstance(data, bytes) else data.stat().st_size
        if size > self.settings.max_file_bytes:
            raise TooLarge("file", size=size, limit=self.settings.max_file_bytes)
        return data if isinstance(data, bytes) else data.read_bytes()
