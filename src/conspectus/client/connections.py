"""Connections of a server."""

from conspectus.client.operations import derived
from conspectus.client.service import RemoteService
from conspectus.engine.connections import ConnectionService


@derived
class RemoteConnections(RemoteService, ConnectionService):
    """Connections of a server."""
