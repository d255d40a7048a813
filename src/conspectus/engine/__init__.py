"""The engine: every operation, a few lines each: check access, call one pipeline."""

from conspectus.engine.components import EngineComponents
from conspectus.engine.engine import Engine

__all__ = ["Engine", "EngineComponents"]
