"""Sound of a recording, decoded by FFmpeg (PyAV): blocks of samples at 16 kHz, one voice after the other."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.errors import optional
from conspectus.sources.files.extract import Refused
from conspectus.sources.speech.model_files import EXTRA

Samples = NDArray[np.float32]
"""Samples of one channel from -1 to 1, 16,000 a second."""

SAMPLE_RATE = 16_000
FORMATS = "aac,aiff,amr,asf,avi,caf,flac,matroska,mov,mp3,ogg,wav,w64"
"""Containers that FFmpeg may open: no playlist, which names other files, is among them."""
BLOCK_SECONDS = 300
"""Longest part that is transcribed at once, which bounds the memory."""
CUT_SECONDS = 30
"""A part ends at the quietest moment of its last seconds."""
QUIET_SECONDS = 0.4
PROBED_SECONDS = 600
FRAME_SECONDS = 0.05
MAX_SHARED_ENVELOPE = 0.2
"""Two channels are two voices if their loudness has a lower correlation."""
MIN_CHANNEL_SHARE = 0.01
"""A channel with less of the energy of the other has no voice."""


@dataclass(frozen=True, slots=True)
class Voice:
    """What is transcribed on its own: a track, or one channel of it, with the name of its speaker."""

    track: int = 0
    channel: int | None = None
    speaker: str | None = None


class TooLong(Exception):
    """The recording has more seconds of sound than allowed."""


class Recording:
    """A file with sound, opened by FFmpeg."""

    def __init__(self, file: BinaryIO, max_seconds: float) -> None:
        """Open a file that can be sought. Raises Refused for one that is none of the formats."""
        self._library = optional("av", EXTRA, "av")
        self._file = file
        self._max_seconds = max_seconds
        self.damaged_packets = 0
        with self._open() as container:
            tracks = container.streams.audio
            if not tracks:
                raise Refused("has no sound; add its captions as a file instead")
            self.titles = [str(track.metadata.get("title", "")).strip() for track in tracks]
            self.languages = {str(track.metadata.get("language", "")) for track in tracks}
            self.channels = tracks[0].codec_context.channels
            self.title = str(container.metadata.get("title", "")).strip()
            self.claimed_seconds = max(0.0, (container.duration or 0) / 1_000_000)

    def voices(self) -> Sequence[Voice]:
        """Return what is transcribed on its own.

        Tracks with titles of their own are speakers, and so are two channels that are not loud together.
        Otherwise it is the first track.
        """
        if len(self.titles) > 1 and all(self.titles) and len(set(self.titles)) == len(self.titles):
            if len(self.languages) == 1:
                return [Voice(track, speaker=title) for track, title in enumerate(self.titles)]
        elif self.channels == 2 and self._has_separate_channels():
            return [Voice(0, channel, f"channel {channel + 1}") for channel in range(2)]
        return [Voice()]

    def blocks(self, voice: Voice) -> Iterator[tuple[float, Samples]]:
        """Yield the sound of a voice in parts, each with the second at which it starts. Raises TooLong."""
        start, pending = 0, np.zeros(0, np.float32)
        parts: list[Samples] = []
        waiting = 0
        for samples in self._decode(voice.track, 1 if voice.channel is None else 2):
            parts.append(samples[voice.channel or 0])
            waiting += samples.shape[1]
            if waiting < BLOCK_SECONDS * SAMPLE_RATE:
                continue
            pending = np.concatenate(parts)
            end = quietest_moment(pending)
            yield start / SAMPLE_RATE, pending[:end]
            start += end
            parts, waiting = [pending[end:]], len(pending) - end
        if waiting:
            yield start / SAMPLE_RATE, np.concatenate(parts)

    def _has_separate_channels(self) -> bool:
        """Whether the loudness of both channels goes its own way, as on the two lines of a call."""
        frame = int(FRAME_SECONDS * SAMPLE_RATE)
        probed = [np.zeros((2, 0), np.float32)]
        seconds = 0.0
        for samples in self._decode(0, 2):
            probed.append(samples)
            seconds += samples.shape[1] / SAMPLE_RATE
            if seconds > PROBED_SECONDS:
                break
        sound = np.concatenate(probed, axis=1)
        frames = sound[:, : sound.shape[1] // frame * frame].reshape(2, -1, frame)
        energies = (frames.astype(np.float64) ** 2).mean(axis=2)
        totals = energies.sum(axis=1)
        if frames.shape[1] < 2 or totals.min() <= MIN_CHANNEL_SHARE * totals.max():
            return False
        loudness = np.log10(energies + 1e-6)
        if loudness.std(axis=1).min() == 0:
            return False
        return bool(np.corrcoef(loudness)[0, 1] < MAX_SHARED_ENVELOPE)

    def _decode(self, track: int, channels: int) -> Iterator[Samples]:
        """Yield samples of shape (channels, n) of about a second. Damaged packets are counted."""
        library = self._library
        resampler = library.AudioResampler(
            format="fltp", layout="stereo" if channels == 2 else "mono", rate=SAMPLE_RATE
        )
        length = 0
        with self._open() as container:
            stream = container.streams.audio[track]
            for samples in chain.from_iterable(self._frames(container, stream, resampler)):
                length += samples.shape[1]
                if length > self._max_seconds * SAMPLE_RATE:
                    raise TooLong
                yield samples

    def _frames(self, container: Any, stream: Any, resampler: Any) -> Iterator[Iterator[Samples]]:
        """Yield the samples of each packet, and what the resampler held back at the end."""
        for packet in self._packets(container, stream):
            try:
                decoded = packet.decode()
            except self._library.FFmpegError:
                self.damaged_packets += 1
                continue
            for frame in decoded:
                frame.pts = None
                yield (resampled.to_ndarray() for resampled in resampler.resample(frame))
        yield (resampled.to_ndarray() for resampled in resampler.resample(None))

    def _packets(self, container: Any, stream: Any) -> Iterator[Any]:
        """Yield the packets of a stream, as far as the container is whole."""
        try:
            yield from container.demux(stream)
        except self._library.FFmpegError:
            self.damaged_packets += 1

    def _open(self) -> Any:
        self._file.seek(0)
        options = {"format_whitelist": FORMATS, "protocol_whitelist": ""}
        try:
            return self._library.open(self._file, mode="r", options=options, metadata_errors="ignore")
        except self._library.FFmpegError:
            raise Refused("a damaged recording, or of another format than its name says") from None


def quietest_moment(samples: Samples) -> int:
    """Return the middle of the quietest moment in the last seconds of a part, as a number of samples."""
    window = int(QUIET_SECONDS * SAMPLE_RATE)
    first = max(0, len(samples) - CUT_SECONDS * SAMPLE_RATE)
    sums = np.concatenate([[0.0], np.cumsum(samples[first:].astype(np.float64) ** 2)])
    energies = sums[window:] - sums[:-window]
    return first + int(np.argmin(energies)) + window // 2 if len(energies) else len(samples)
