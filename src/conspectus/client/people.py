"""Users, groups, API keys and grants of a server."""

from conspectus.client.operations import derive_client
from conspectus.client.transport import RemoteService
from conspectus.engine.access import AccessService
from conspectus.engine.identities import IdentityService
from conspectus.engine.keys import KeyService
from conspectus.engine.logins import LoginService
from conspectus.engine.people import PeopleService


@derive_client
class RemotePeople(RemoteService, PeopleService):
    """Users and groups of a server."""


@derive_client
class RemoteKeys(RemoteService, KeyService):
    """API keys of a server."""


@derive_client
class RemoteLogins(RemoteService, LoginService):
    """Sessions of browsers at a server, and invitations to it."""


@derive_client
class RemoteIdentities(RemoteService, IdentityService):
    """Identities of users of a server at an issuer of tokens."""


@derive_client
class RemoteAccess(RemoteService, AccessService):
    """Grants of a server, the roles that they give, and its audit log."""
