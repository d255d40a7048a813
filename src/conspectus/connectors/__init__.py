"""What a package needs to add a connector: the port, its entries, and what declares options.

Imports ports.
"""

from conspectus.connectors.pacing import PacedFetcher
from conspectus.model.annotations import Example, Length, Range, Secret
from conspectus.model.checks import Checked
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.model.records import NewDocument
from conspectus.model.viewers import EVERYONE, AccessListing
from conspectus.ports.connectors import (
    ConnectionSite,
    Connector,
    ConnectorFactory,
    FileReader,
    HostResolver,
    Mirroring,
    Verifying,
    Watchable,
)
from conspectus.ports.web import Fetched, Fetcher

__all__ = [
    "EVERYONE",
    "AccessListing",
    "Checked",
    "ConnectionSite",
    "Connector",
    "ConnectorEntry",
    "ConnectorFactory",
    "Example",
    "Fetched",
    "Fetcher",
    "FileReader",
    "HostResolver",
    "Length",
    "Listing",
    "Mirroring",
    "NewDocument",
    "PacedFetcher",
    "Range",
    "Secret",
    "Verifying",
    "Watchable",
]
