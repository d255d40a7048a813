"""What a package needs to add a connector: the port, its entries, and what declares options."""

from conspectus.model.annotations import Example, Length, Range, Secret
from conspectus.model.checks import Checked
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.model.records import NewDocument
from conspectus.ports.connectors import ConnectionSite, Connector, ConnectorFactory, Watchable
from conspectus.ports.web import Fetched, Fetcher

__all__ = [
    "Checked",
    "ConnectionSite",
    "Connector",
    "ConnectorEntry",
    "ConnectorFactory",
    "Example",
    "Fetched",
    "Fetcher",
    "Length",
    "Listing",
    "NewDocument",
    "Range",
    "Secret",
    "Watchable",
]
