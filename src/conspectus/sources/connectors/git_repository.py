"""A Git repository with Markdown files as a wiki. Top-level folders are its spaces.

The branch is fetched into a bare clone and never checked out, so hooks, filters and submodules of the
repository do not run. Symbolic links are skipped. Renamed pages keep their identity as far as git detects
renames. If the history was rewritten, everything is listed.
"""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed, ForbiddenAddress, InvalidInput, NotFound, TooLarge, UnreadableFile
from conspectus.model.jobs import ConnectorEntry, Listing
from conspectus.model.pages import portions
from conspectus.model.records import NewDocument
from conspectus.private import UMASK, make_folder
from conspectus.sources.connectors.markdown_folder import (
    Difference,
    File,
    PageIndexState,
    Row,
    identify,
    is_page,
    page_id,
    read_page,
)
from conspectus.sources.files.local_files import SKIPPED_FOLDERS, LocalFiles
from conspectus.sources.web.address_policy import AddressPolicy, Resolve, literal, resolve_name
from conspectus.text.urls import Url, parse_url

PROTOCOLS = ("https", "ssh", "file")
SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
USER = re.compile(r"(?:([A-Za-z0-9_][A-Za-z0-9_.-]*)@)?[^@]*")
SSH_PORT = 22
SSH = (
    "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ProxyCommand=none -o ProxyJump=none "
    "-o ClearAllForwardings=yes -o PermitLocalCommand=no -o ForwardAgent=no -o ConnectTimeout=30"
)


@dataclass(frozen=True, slots=True)
class Remote:
    """The address for git, the only protocol that it may use, and settings that pin the checked addresses."""

    address: str
    protocol: str
    settings: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def pinned(self) -> bool:
        """Whether git itself has to be pinned to the checked addresses."""
        return self.protocol == "https" and bool(self.settings)


def local_or_remote(address: str, protocols: Collection[str]) -> str:
    """Return the protocol of an address. Raises InvalidInput for unsupported ones."""
    scheme = SCHEME.match(address)
    protocol = scheme[1].lower() if scheme else "file"
    if protocol not in PROTOCOLS or (scheme is None and not address.startswith("/")):
        raise InvalidInput("address", "use https://, ssh://, file:// or an absolute path")
    if protocol not in protocols:
        raise InvalidInput("address", f"{protocol} is not allowed here")
    return protocol


async def checked(
    address: str, *, protocols: Collection[str], boundary: AddressPolicy, resolve: Resolve = resolve_name
) -> Remote:
    """Check an address for git.

    Raises InvalidInput for an invalid address, ForbiddenAddress if the policy forbids its host, and
    FetchFailed if the host cannot be resolved.
    """
    protocol = local_or_remote(address, protocols)
    if protocol == "file":
        return Remote(_folder(address), protocol)
    user = USER.fullmatch(urlsplit(address).netloc)
    if user is None or (protocol == "https" and user[1]):
        raise InvalidInput("address", "must not contain a password or, for https, a user name")
    url = parse_url(re.sub("^ssh:", "https:", address, flags=re.IGNORECASE))
    if protocol == "https":
        addresses = await _resolved(url, url.port, boundary, resolve)
        return Remote(str(url), protocol, _curl(url, addresses))
    port = urlsplit(address).port or SSH_PORT
    addresses = await _resolved(url, port, boundary, resolve)
    return _ssh(url, port, user[1], addresses[0])


async def _resolved(url: Url, port: int, boundary: AddressPolicy, resolve: Resolve) -> Sequence[str]:
    """Resolve the host. Raises ForbiddenAddress unless all its addresses are allowed."""
    if not boundary.may_ask(url.host):
        raise ForbiddenAddress(url.redacted)
    try:
        addresses = [url.host] if literal(url.host) is not None else await resolve(url.host, port)
    except OSError as fault:
        raise FetchFailed(url.redacted, fault.strerror or "unknown host", passing=True) from fault
    if not addresses:
        raise FetchFailed(url.redacted, "unknown host", passing=True)
    if not all(boundary.admits(url.host, ip_address(address)) for address in addresses):
        raise ForbiddenAddress(url.redacted)
    return addresses


def _curl(url: Url, addresses: Sequence[str]) -> tuple[str, ...]:
    """Pin the checked address with a setting of curl: git would resolve the name again."""
    if literal(url.host) is not None:
        return ()
    places = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    return (f"http.curloptResolve={url.host}:{url.port}:{places}",)


def _ssh(url: Url, port: int, user: str | None, address: str) -> Remote:
    """Pin the checked address. The host key is still looked up by name."""
    name = url.host if port == SSH_PORT else f"[{url.host}]:{port}"
    host = f"[{url.host}]" if ":" in url.host else url.host
    command = f"{SSH} -o HostName={address} -o 'HostKeyAlias={name}'"
    at = f"{user}@" if user else ""
    return Remote(
        f"ssh://{at}{host}:{port}{url.path}",
        "ssh",
        environment={"GIT_SSH_COMMAND": command, "GIT_SSH_VARIANT": "ssh"},
    )


def _folder(address: str) -> str:
    """Return the path of a local repository."""
    path = address
    if SCHEME.match(address):
        parts = urlsplit(address)
        if parts.netloc not in {"", "localhost"}:
            raise InvalidInput("address", "a file:// address must not contain a host")
        path = unquote(parts.path)
    if "\0" in path or not Path(path).is_absolute():
        raise InvalidInput("address", "use https://, ssh://, file:// or an absolute path")
    if not Path(path).is_dir():
        raise FetchFailed(path, "is not a folder", passing=True)
    return path


SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.askPass=", "credential.helper=", "gc.auto=0",
    "maintenance.auto=false", "fetch.recurseSubmodules=false", "http.followRedirects=false", "http.proxy=",
    "http.emptyAuth=false", "http.lowSpeedLimit=1", "http.lowSpeedTime=60", "protocol.allow=never",
    "core.quotePath=false",
)  # fmt: skip
ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "/bin/false", "SSH_ASKPASS": "/bin/false",
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LFS_SKIP_SMUDGE": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C",
    "GIT_NO_LAZY_FETCH": "1", "GIT_ADVICE": "0",
}  # fmt: skip
REFUSAL = re.compile(
    rb"requested URL returned error: 40[134]\b|Authentication failed for |could not read Username for "
    rb"|^fatal: repository '[^']*' not found",
    re.MULTILINE,
)
"""What git, in the locale C, says of a server that answers with 401, 403 or 404."""
PINS_SINCE = (2, 37)
MESSAGE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Git:
    """Runs git on one bare repository. `name` is the name in messages."""

    folder: Path
    name: str
    seconds: float = 300.0

    async def run(self, *arguments: str, stdin: bytes = b"", remote: Remote | None = None) -> bytes:
        """Return the output of git. Raises FetchFailed if it is not installed, fails or times out."""
        code, output, errors = await self._run(arguments, stdin, remote)
        if code:
            lines = errors.decode("utf-8", "replace").strip()[-MESSAGE_LENGTH:]
            reason = f"git {arguments[0]}: {lines or f'ended with {code}'}"
            refused = remote is not None and REFUSAL.search(errors) is not None
            raise FetchFailed(self.name, reason, passing=not refused, refused=refused)
        return output

    async def holds(self, *arguments: str) -> bool:
        """Return whether git exits with success."""
        code, _, _ = await self._run(arguments, b"", None)
        return code == 0

    async def require_pinning(self) -> None:
        """Raises FetchFailed if this version of git cannot be pinned to checked addresses."""
        version = re.search(rb"(\d+)\.(\d+)", await self.run("version"))
        if version is None or (int(version[1]), int(version[2])) < PINS_SINCE:
            raise FetchFailed(self.name, "git 2.37 or newer is needed for https addresses")

    async def _run(
        self, arguments: tuple[str, ...], stdin: bytes, remote: Remote | None
    ) -> tuple[int, bytes, bytes]:
        allowed = () if remote is None else (f"protocol.{remote.protocol}.allow=always", *remote.settings)
        options = [part for setting in (*SETTINGS, *allowed) for part in ("-c", setting)]
        program = shutil.which("git")
        if program is None:
            raise FetchFailed(self.name, "git is not installed; install it")
        path = os.pathsep.join([str(Path(program).parent), os.defpath])
        transport = {} if remote is None else {**remote.environment, "GIT_ALLOW_PROTOCOL": remote.protocol}
        process = await asyncio.create_subprocess_exec(
            program, f"--git-dir={self.folder}", *options, *arguments,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            cwd="/", env={**ENVIRONMENT, "PATH": path, **transport}, start_new_session=True, umask=UMASK,
        )  # fmt: skip
        ended = False
        try:
            async with asyncio.timeout(self.seconds):
                output, errors = await process.communicate(stdin)
            ended = True
        except TimeoutError:
            late = f"git {arguments[0]} took longer than {self.seconds:g} s"
            raise FetchFailed(self.name, late, passing=True) from None
        finally:
            if not ended:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.communicate()
        return process.returncode or 0, output, errors


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
        local_or_remote(self.address, self.protocols)
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
        blobs = dict(_pages(listed))
        if len(blobs) > self._files.settings.max_files:
            raise TooLarge("files", size=len(blobs), limit=self._files.settings.max_files, unit="files")
        files = await self._listed(blobs, state.rows)
        keys = identify(state.rows, list(files.values()), await self._moves(state.mark, commit))
        self._blobs = {key: (path, blobs[path]) for path, key in keys.items()}
        everything = before is None or not await self._follows(state.mark, commit)
        for listing in Difference(state, files, keys, commit).listings(
            everything=everything, size=self._batch
        ):
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
        remote = await checked(here.address, protocols=here.protocols, boundary=here.boundary)
        await asyncio.to_thread(_make_room, self._copy)
        if remote.pinned:
            await self._git.require_pinning()
        await self._git.run("init", "--quiet", "--bare", "--template=")
        branch = f"refs/heads/{here.branch}" if here.branch else "HEAD"
        options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--force")
        await self._git.run("fetch", *options, remote.address, f"+{branch}:{REFERENCE}", remote=remote)
        return (await self._git.run("rev-parse", "--verify", f"{REFERENCE}^{{commit}}")).decode().strip()

    async def _follows(self, old: str, new: str) -> bool:
        if not COMMIT.fullmatch(old):
            return False
        return await self._git.holds("merge-base", "--is-ancestor", old, new)

    async def _moves(self, old: str, new: str) -> dict[str, str]:
        """Return the new paths with their old ones, as far as git detects renames."""
        before, after = self._repository.tree(old), self._repository.tree(new)
        if not COMMIT.fullmatch(old) or not await self._git.holds("rev-parse", "--verify", "--quiet", before):
            return {}
        options = ("-r", "-z", "-M", "--diff-filter=R", "--name-status")
        output = await self._git.run("diff-tree", *options, before, after)
        names = [name.decode("utf-8", "surrogateescape") for name in output.split(b"\0")]
        pairs = zip(names[1::3], names[2::3], strict=False)
        return {to: origin for origin, to in pairs if is_page(origin) and is_page(to)}

    async def _listed(self, blobs: Mapping[str, Blob], stored: Mapping[str, Row]) -> dict[str, File]:
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


def _make_room(copy: Path) -> None:
    """Create the folder of the clone, and remove locks of a killed git."""
    try:
        make_folder(copy)
        for lock in copy.rglob("*.lock"):
            lock.unlink(missing_ok=True)
    except OSError as fault:
        raise FetchFailed(str(copy), f"the copy cannot be written: {fault.strerror}") from fault


def _pages(listed: bytes) -> Iterator[tuple[str, Blob]]:
    """Yield the pages of a tree: regular files that are not hidden."""
    for line in filter(None, listed.split(b"\0")):
        facts, _, name = line.partition(b"\t")
        mode, _, id, size = facts.split()
        path = name.decode("utf-8", "surrogateescape")
        parts = path.split("/")
        left_out = any(part.startswith(".") or part in SKIPPED_FOLDERS for part in parts)
        if mode in REGULAR and is_page(path) and not left_out:
            yield path, Blob(id.decode(), int(size))
