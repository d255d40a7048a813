"""What every group of operations works with: the way to the server, and what can be read on this machine."""

from conspectus.client.transport import Transport
from conspectus.model.validation import ChecksArguments
from conspectus.ports import Archives, Files


class Desk(ChecksArguments):
    """One server, as the holder of the key may use it."""

    def __init__(self, channel: Transport, files: Files, archives: Archives) -> None:
        self._channel = channel
        self._files = files
        self._archives = archives
