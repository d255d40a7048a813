"""Operations: each is declared once, and its HTTP route and its client method are derived from that.

Imports engine.
"""

from conspectus.operations.graph import GRAPH_OPERATIONS
from conspectus.operations.operation import Operation, Parameter

OPERATIONS = {each.name: each for each in GRAPH_OPERATIONS}
"""Every operation by the name of its method."""

__all__ = ["GRAPH_OPERATIONS", "OPERATIONS", "Operation", "Parameter"]
