"""Users, groups, API keys and grants of a server."""

from conspectus.client.operations import derive_client
from conspectus.client.transport import RemoteService
from conspectus.engine.people import PeopleService


@derive_client
class RemotePeople(RemoteService, PeopleService):
    """Users, groups, API keys and grants of a server."""
