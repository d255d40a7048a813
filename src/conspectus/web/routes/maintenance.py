"""The store as a whole."""

from conspectus.operations import MAINTENANCE_OPERATIONS
from conspectus.web.openapi import Section
from conspectus.web.operation_routes import add_routes

router = Section("upkeep")
add_routes(router, MAINTENANCE_OPERATIONS)
