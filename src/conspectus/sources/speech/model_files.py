"""The files of the Whisper model: those of the package conspectus-speech, or of a folder."""

import hashlib
import json
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from conspectus.errors import MissingExtra

EXTRA = "audio"
INSTALL = f"pip install 'conspectus[{EXTRA}]'"
MODULES = ("av", "ctranslate2", "faster_whisper")
WEIGHTS_PACKAGE = "conspectus_speech"
MANIFEST = "manifest.json"
NEEDED = ("config.json", "model.bin", "tokenizer.json")
"""A model without its tokenizer would be completed by a download."""


def is_installed(folder: str = "") -> bool:
    """Return whether recordings can be read: the libraries are installed, and the weights or a folder."""
    modules = MODULES if folder else (*MODULES, WEIGHTS_PACKAGE)
    return all(find_spec(module) is not None for module in modules)


def model_folder(folder: str = "") -> Path:
    """Return the folder of the model, by default that of the package.

    Raises MissingExtra without the package, and ValueError for files that are missing or not those of the
    manifest.
    """
    if folder:
        path = Path(folder).expanduser()
    elif find_spec(WEIGHTS_PACKAGE) is None:
        raise MissingExtra(EXTRA, "conspectus-speech")
    else:
        path = Path(str(files(WEIGHTS_PACKAGE)))
    missing = [name for name in NEEDED if not (path / name).is_file()]
    if missing:
        raise ValueError(f"{path} is no model of Whisper for CTranslate2: it lacks {', '.join(missing)}")
    if not folder:
        _check_hashes(path)
    return path


def _check_hashes(path: Path) -> None:
    """Raise ValueError if a file of the package is not the one that was built."""
    hashes = json.loads((path / MANIFEST).read_text(encoding="utf-8"))["files"]
    for name, expected in hashes.items():
        with (path / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise ValueError(f"{path / name} is damaged. Install conspectus-speech again.")
