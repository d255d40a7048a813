"""Recordings that tests make: speech by a synthetic voice, and sounds without any."""

import io
import os
import wave
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conspectus.sources.speech.model_files import is_installed

RATE = 24_000
PAUSE = np.zeros(int(1.5 * RATE), np.float32)
FIRST = "The harbor commission met on Monday to discuss the new lighthouse."
SECOND = "The engineer explained that the fuel pump needs a new valve."
needs_speech = pytest.mark.skipif(
    not (is_installed() and find_spec("hibari")) and not os.environ.get("CI"),
    reason="the extra `audio` is not installed: make speech",
)


@cache
def say(text: str) -> NDArray[np.float32]:
    """Return a sentence as a synthetic voice says it, with 24,000 samples a second."""
    samples: NDArray[np.float32] = import_module("hibari").Hibari()(text, seed=0)
    return samples


def talk(*texts: str) -> NDArray[np.float32]:
    """Return sentences with pauses before, between and after them."""
    return np.concatenate([PAUSE, *(part for text in texts for part in (say(text), PAUSE))])


def wav(samples: NDArray[np.float32], rate: int = RATE) -> bytes:
    """Return a WAV file of samples of shape (n,) or (n, channels)."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1 if samples.ndim == 1 else samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32_767).astype("<i2").tobytes())
    return buffer.getvalue()


def encode(samples: NDArray[np.float32], container: str, codec: str, *, video: bool = False) -> bytes:
    """Return a compressed recording with the title `Harbor meeting`; a video has a picture in each second."""
    av = import_module("av")
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=container) as output:
        output.metadata["title"] = "Harbor meeting"
        pictures: Any = output.add_stream("mpeg4", rate=1) if video else None
        if video:
            pictures.width, pictures.height, pictures.pix_fmt = 64, 64, "yuv420p"
        sound = output.add_stream(codec, rate=48_000 if codec == "libopus" else RATE)
        resampler = av.AudioResampler(
            sound.codec_context.format, sound.codec_context.layout, sound.codec_context.rate,
            frame_size=sound.codec_context.frame_size or 1_024,
        )  # fmt: skip
        frame = av.AudioFrame.from_ndarray(samples[np.newaxis], format="fltp", layout="mono")
        frame.rate = RATE
        for number in range(len(samples) // RATE if video else 0):
            picture = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
            picture.pts = number
            output.mux(pictures.encode(picture))
        for part in (*resampler.resample(frame), *resampler.resample(None), None):
            output.mux(sound.encode(part))
        if video:
            output.mux(pictures.encode(None))
    return buffer.getvalue()
