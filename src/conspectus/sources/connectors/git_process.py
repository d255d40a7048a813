"""The program `git`, run without the settings of the user or the system."""

import asyncio
import os
import re
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed
from conspectus.private import UMASK
from conspectus.sources.connectors.git_remote import Remote

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

    async def succeeds(self, *arguments: str) -> bool:
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
