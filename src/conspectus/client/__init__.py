"""The client of a Conspectus server: the engine's methods, asked over HTTP."""

from conspectus.client.engine import RemoteEngine
from conspectus.client.opening import open

__all__ = ["RemoteEngine", "open"]
