"""The client of a Conspectus server: the engine's methods, asked over HTTP."""

from conspectus.client.connect import open
from conspectus.client.engine import RemoteEngine

__all__ = ["RemoteEngine", "open"]
