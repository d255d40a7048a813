"""Operations: each is declared once, and its HTTP route and its client method are derived from that.

Imports engine.
"""

from conspectus.operations.graph import GRAPH_OPERATIONS
from conspectus.operations.operation import Operation, Parameter
from conspectus.operations.people import GRANT_OPERATIONS, PEOPLE_OPERATIONS

OPERATIONS = {each.key: each for each in (*PEOPLE_OPERATIONS, *GRANT_OPERATIONS, *GRAPH_OPERATIONS)}
"""Every operation by its method, such as `PeopleService.whoami`."""

__all__ = [
    "GRANT_OPERATIONS",
    "GRAPH_OPERATIONS",
    "OPERATIONS",
    "PEOPLE_OPERATIONS",
    "Operation",
    "Parameter",
]
