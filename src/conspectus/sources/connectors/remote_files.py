"""Files of remotes as documents: the bytes that a connector has fetched, read as `add` reads a file."""

import asyncio
from dataclasses import field, replace
from pathlib import PurePath

from conspectus.deferred import dataclass
from conspectus.errors import UnreadableFile
from conspectus.model.records import NewDocument
from conspectus.ports import ParsedFile
from conspectus.settings import Settings
from conspectus.sources.files import ocr
from conspectus.sources.files.file_kinds import NAMED
from conspectus.sources.files.local_files import LocalFiles
from conspectus.sources.files.parsers import is_known

OUTLOOK_SUFFIX = ".msg"


@dataclass(frozen=True, slots=True)
class RemoteFileReader:
    """The `FileReader` port."""

    settings: Settings
    _files: LocalFiles = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_files", LocalFiles(self.settings))

    def reads(self, name: str) -> bool:
        """Return whether a file of that name has a reader here."""
        suffix = PurePath(name).suffix.lower()
        if NAMED.get(suffix) == "picture":
            return ocr.is_installed()
        return suffix in {"", OUTLOOK_SUFFIX} or suffix in NAMED or is_known(name)

    async def read(self, body: bytes, name: str, *, charset: str | None = None) -> NewDocument:
        """Return a file as one document: the files inside it follow its own text.

        Raises UnreadableFile or TooLarge.
        """
        parsed = await asyncio.to_thread(self._files.parse_bytes, body, name, charset=charset)
        if parsed.has_captions:
            raise UnreadableFile(name, "has captions; import it as a stream")
        documents = [*parsed.documents, *_list_inner_documents(parsed)]
        if not documents:
            return NewDocument("", title=PurePath(name).name, metadata={"path": name})
        text = "\n\n".join(document.text for document in documents)
        first = documents[0]
        merged = first if len(documents) == 1 else replace(first, text=text, places=(), spans=())
        return replace(merged, key=None, parent=None, metadata={**first.metadata, "path": name})


def _list_inner_documents(parsed: ParsedFile) -> list[NewDocument]:
    files = [member.file for member in parsed.members if member.file is not None]
    return [document for file in files for document in file.documents]
