"""Files that came with a request, handed on without being held in memory."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from fastapi import UploadFile

from conspectus.model.jobs import Upload


async def handed_in(files: Sequence[UploadFile], folder: str) -> list[Upload]:
    """The files under numbers in a folder, with the names that they came with."""
    uploads = []
    for number, each in enumerate(files):
        place = Path(folder) / str(number)
        await asyncio.to_thread(_copy, each.file, place)
        uploads.append(Upload(each.filename or "", place))
    return uploads


def _copy(file: BinaryIO, place: Path) -> None:
    with place.open("wb") as target:
        shutil.copyfileobj(file, target)
