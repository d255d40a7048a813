"""A Git repository with Markdown files as a wiki. Top-level folders are its spaces.

The branch is fetched into a bare clone and never checked out, so hooks, filters and submodules of the
repository do not run. Symbolic links are skipped. Renamed pages keep their identity as far as git detects
renames. If the history was rewritten, everything is listed.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Annotated, ClassVar

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed, InvalidInput, NotFound, TooLarge, UnreadableFile
from conspectus.model.annotations import Example, Length
from conspectus.model.checks import Checked
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.model.pages import portions
from conspectus.model.records import NewDocument
from conspectus.ports.connectors import ConnectionSite
from conspectus.private import make_folder
from conspectus.sources.connectors.git_process import Git
from conspectus.sources.connectors.git_remote import PROTOCOLS, check_remote, protocol_of
from conspectus.sources.connectors.markdown_pages import page_id, read_page
from conspectus.sources.connectors.page_index import Difference, File, PageIndexState, Row, identify, is_page
from conspectus.sources.files.local_files import SKIPPED_FOLDERS, LocalFiles
from conspectus.sources.web.address_policy import AddressPolicy

BATCH = 500
READ_BYTES = 20_000_000
REFERENCE = "refs/heads/wiki"
BRANCH = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock$))[\w.][\w./+@-]*")
COMMIT = re.compile(r"[0-9a-f]{40,64}")
REGULAR = frozenset({b"100644", b"100755", b"100664"})


@dataclass(frozen=True, slots=True)
class Blob:
    """A file in a tree."""

    id: str
    size: int


@dataclass(frozen=True, slots=True)
class Repository:
    """A part of a repository.

    `branch` None means the branch of HEAD. Raises InvalidInput for a protocol that is not in `protocols`, and
    for an invalid branch or folder.
    """

    address: str
    branch: str | None = None
    folder: str = ""
    protocols: Collection[str] = PROTOCOLS
    boundary: AddressPolicy = field(default_factory=AddressPolicy)

    def __post_init__(self) -> None:
        protocol_of(self.address, self.protocols)
        if self.branch is not None and not BRANCH.fullmatch(self.branch):
            raise InvalidInput("branch", f"{self.branch!r} is not the name of a branch")
        if ".." in self.folder.split("/") or "\0" in self.folder:
            raise InvalidInput("folder", "must lie inside the repository")

    def tree(self, commit: str) -> str:
        """Return the name of the folder at a commit, in git's syntax."""
        return f"{commit}:{self.folder.strip('/')}"


class GitRepository:
    """The `Connector` port for a repository. `copy` is the folder of its bare clone, not shared."""

    def __init__(
        self,
        repository: Repository,
        copy: Path,
        *,
        files: LocalFiles | None = None,
        batch: int = BATCH,
    ) -> None:
        self._repository = repository
        self._copy = copy.absolute()
        self._git = Git(self._copy, repository.address)
        self._files = files or LocalFiles()
        self._batch = batch
        self._blobs: dict[str, tuple[str, Blob]] = {}

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Yield batches of the changes since the commit of the cursor.

        Everything is listed without a cursor, for an unknown cursor, and if the commit is no longer an
        ancestor. Raises FetchFailed, ForbiddenAddress or InvalidInput.
        """
        before = PageIndexState.read(cursor)
        state = before or PageIndexState()
        commit = await self._fetch()
        listed = await self._git.run("ls-tree", "-r", "-z", "-l", self._repository.tree(commit))
        regular_files = dict(_regular_files(listed))
        blobs = {path: blob for path, blob in regular_files.items() if is_page(path)}
        not_pages = tuple(path for path in regular_files if path not in blobs)
        if len(blobs) > self._files.settings.max_files:
            raise TooLarge("files", size=len(blobs), limit=self._files.settings.max_files, unit="files")
        files = await self._list_files(blobs, state.rows)
        keys = identify(state.rows, list(files.values()), await self._moves(state.mark, commit))
        self._blobs = {key: (path, blobs[path]) for path, key in keys.items()}
        everything = before is None or not await self._is_ancestor(state.mark, commit)
        difference = Difference(state, files, keys, commit, not_pages)
        for listing in difference.listings(everything=everything, size=self._batch):
            yield listing

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Return the page at the last listed commit. Raises NotFound, UnreadableFile or TooLarge."""
        if entry.key not in self._blobs:
            raise NotFound("page", entry.key)
        path, blob = self._blobs[entry.key]
        if blob.size > self._files.settings.max_file_bytes:
            raise TooLarge("file", size=blob.size, limit=self._files.settings.max_file_bytes)
        data = await self._git.run("cat-file", "blob", blob.id)
        return await asyncio.to_thread(lambda: read_page(self._text(data, path), path))

    async def close(self) -> None:
        """Do nothing: the clone is kept for the next run."""

    async def _fetch(self) -> str:
        """Fetch the branch, and return its commit."""
        here = self._repository
        remote = await check_remote(here.address, protocols=here.protocols, boundary=here.boundary)
        await asyncio.to_thread(_prepare_clone, self._copy)
        if remote.pinned:
            await self._git.require_pinning()
        await self._git.run("init", "--quiet", "--bare", "--template=")
        branch = f"refs/heads/{here.branch}" if here.branch else "HEAD"
        options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--force")
        await self._git.run("fetch", *options, remote.address, f"+{branch}:{REFERENCE}", remote=remote)
        return (await self._git.run("rev-parse", "--verify", f"{REFERENCE}^{{commit}}")).decode().strip()

    async def _is_ancestor(self, old: str, new: str) -> bool:
        if not COMMIT.fullmatch(old):
            return False
        return await self._git.succeeds("merge-base", "--is-ancestor", old, new)

    async def _moves(self, old: str, new: str) -> dict[str, str]:
        """Return the new paths with their old ones, as far as git detects renames."""
        before, after = self._repository.tree(old), self._repository.tree(new)
        if not COMMIT.fullmatch(old):
            return {}
        if not await self._git.succeeds("rev-parse", "--verify", "--quiet", before):
            return {}
        options = ("-r", "-z", "-M", "--diff-filter=R", "--name-status")
        output = await self._git.run("diff-tree", *options, before, after)
        names = [name.decode("utf-8", "surrogateescape") for name in output.split(b"\0")]
        pairs = zip(names[1::3], names[2::3], strict=False)
        return {to: origin for origin, to in pairs if is_page(origin) and is_page(to)}

    async def _list_files(self, blobs: Mapping[str, Blob], stored: Mapping[str, Row]) -> dict[str, File]:
        """Return the files. Only files whose content differs from the cursor are read."""
        files: dict[str, File] = {}
        unread: list[str] = []
        for path, blob in blobs.items():
            row = stored.get(path)
            same = row is not None and row.content == blob.id
            files[path] = File(path, blob.id, row.id if row and same else None, PurePosixPath(path).stem)
            if not same and blob.size <= self._files.settings.max_file_bytes:
                unread.append(path)
        for some in portions(unread, lambda path: blobs[path].size, most=BATCH, room=READ_BYTES):
            contents = await self._read([blobs[path].id for path in some])
            for path, data in zip(some, contents, strict=True):
                files[path] = await asyncio.to_thread(self._file, path, blobs[path], data)
        return files

    async def _read(self, ids: Sequence[str]) -> list[bytes]:
        output = await self._git.run(
            "cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in ids).encode()
        )
        contents, offset = [], 0
        for _ in ids:
            start = output.index(b"\n", offset) + 1
            end = start + int(output[offset:start].split()[-1])
            contents.append(output[start:end])
            offset = end + 1
        return contents

    def _file(self, path: str, blob: Blob, data: bytes) -> File:
        """Return the listing of a file. An unreadable file is listed too, and its fetch fails."""
        try:
            text = self._text(data, path)
        except (InvalidInput, UnreadableFile):
            return File(path, blob.id, None, PurePosixPath(path).stem)
        return File(path, blob.id, page_id(text), read_page(text, path).title)

    def _text(self, data: bytes, path: str) -> str:
        documents = self._files.parse_bytes(data, path).documents
        return documents[0].text if documents else ""


def _prepare_clone(copy: Path) -> None:
    """Create the folder of the clone, and remove locks of a killed git."""
    try:
        make_folder(copy)
        for lock in copy.rglob("*.lock"):
            lock.unlink(missing_ok=True)
    except OSError as fault:
        raise FetchFailed(str(copy), f"the copy cannot be written: {fault.strerror}") from fault


def _regular_files(listed: bytes) -> Iterator[tuple[str, Blob]]:
    """Yield the regular files of a tree that are not hidden."""
    for line in filter(None, listed.split(b"\0")):
        facts, _, name = line.partition(b"\t")
        mode, _, id, size = facts.split()
        path = name.decode("utf-8", "surrogateescape")
        parts = path.split("/")
        left_out = any(part.startswith(".") or part in SKIPPED_FOLDERS for part in parts)
        if mode in REGULAR and not left_out:
            yield path, Blob(id.decode(), int(size))


@dataclass(frozen=True, slots=True)
class RepositoryOptions(Checked):
    """The options of a repository."""

    address: Annotated[
        str,
        Length(1, 4_096),
        "Address of the repository: https, ssh, file or a path.",
        Example("https://git.example.org/handbook.git"),
    ]
    branch: Annotated[str | None, Length(1, 255), "Branch; that of HEAD if omitted.", Example("main")] = None
    folder: Annotated[str, Length(0, 4_096), "Folder inside the repository.", Example("docs")] = ""


class GitRepositories:
    """Connects with Git repositories."""

    title: ClassVar[str] = "Git repository"
    options: ClassVar[type[RepositoryOptions]] = RepositoryOptions

    def is_local(self, options: RepositoryOptions) -> bool:
        """Return whether a repository is reached by a path, or with the keys of the machine."""
        return protocol_of(options.address, PROTOCOLS) != "https"

    def create(self, options: RepositoryOptions, site: ConnectionSite) -> GitRepository:
        """Return the connector of a repository. Raises InvalidInput for an invalid address or branch."""
        repository = Repository(
            options.address,
            branch=options.branch,
            folder=options.folder,
            boundary=AddressPolicy.from_entries(site.settings.fetch_allowed_networks.split(",")),
        )
        return GitRepository(repository, site.folder, files=LocalFiles(site.settings))
