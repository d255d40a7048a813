"""Operations: each is declared once, and its HTTP route and its client method are derived from that.

Imports engine.
"""

from conspectus.operations.operation import Operation, Parameter
from conspectus.operations.table import OPERATIONS

__all__ = ["OPERATIONS", "Operation", "Parameter"]
