"""The whole product on a server."""

from conspectus import bootstrap
from conspectus.client.forgetting import Forgetting
from conspectus.ports import CountTokens


class RemoteEngine(Forgetting):
    """Open it with `conspectus.connect`; it is safe to use from many tasks.

    It has the methods of Engine, and answers and errors are the same. What the key may not do raises
    NotAllowed; a server that cannot be reached raises ServerUnavailable.
    """

    def counter(self, tokenizer: str = "o200k_base") -> CountTokens:
        """What counts tokens as that tokenizer does, on this machine. Raises UnknownTokenizer."""
        return bootstrap.local_counter(tokenizer)
