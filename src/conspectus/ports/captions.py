"""What a file of captions is read by."""

from typing import Protocol

from conspectus.model.streams import CaptionTrack


class CaptionReader(Protocol):
    """Reads every format it knows; what a file is called counts where its form does not tell."""

    def read(self, data: bytes, name: str, *, sentences: bool) -> CaptionTrack:
        """The captions of a file, or with `sentences` its sentences, each with the times of its cues.

        Raises UnreadableFile for what holds no captions that can be read, TooLarge over a limit.
        """
        ...
