"""Client of a server: the methods of the engine over HTTP.

Imports bootstrap, engine, ingest, memory, operations, ports and text.
"""

from conspectus.client.connection import open
from conspectus.client.engine import RemoteEngine

__all__ = ["RemoteEngine", "open"]
