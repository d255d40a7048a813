"""Engine: every operation checks access and calls one pipeline.

Imports access, chat, graph, ingest, memory, ports, retrieval, streams, text, time_expressions and window.
"""

from conspectus.engine.components import EngineComponents
from conspectus.engine.engine import Engine

__all__ = ["Engine", "EngineComponents"]
