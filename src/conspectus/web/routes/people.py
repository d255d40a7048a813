"""Users, groups, API keys and grants."""

from conspectus.operations import GRANT_OPERATIONS, PEOPLE_OPERATIONS
from conspectus.web.openapi import Section
from conspectus.web.operation_routes import add_routes

router = Section("people")
add_routes(router, PEOPLE_OPERATIONS)
grants = Section("grants")
add_routes(grants, GRANT_OPERATIONS)
router.routes.extend(grants.routes)
