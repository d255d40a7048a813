"""The engine: every operation, a few lines each: check access, call one pipeline."""

from conspectus.engine.engine import Engine
from conspectus.engine.parts import Parts

__all__ = ["Engine", "Parts"]
