"""Users, groups, API keys and grants of a server."""

from conspectus.client.operations import derived
from conspectus.client.service import RemoteService
from conspectus.engine.people import PeopleService


@derived
class RemotePeople(RemoteService, PeopleService):
    """Users, groups, API keys and grants of a server."""
