"""The kit for connectors: properties as pytest classes, and a plug-in that tells what they have counted.

A test class names the fixture of its server: `class TestNotes(MirroringProperties): server = "notes"`. In the
first `conftest.py`, `pytest_plugins = ("conspectus.testing.connectors",)` adds the option and the summary.

Imports the engine, ports and pytest.
"""

from conspectus.testing.connectors.copies import Copy
from conspectus.testing.connectors.http_gate import HttpGate, open_gate
from conspectus.testing.connectors.installation import install_connector
from conspectus.testing.connectors.listings import ListingProperties
from conspectus.testing.connectors.permissions import MirroringProperties
from conspectus.testing.connectors.servers import (
    ConnectedServer,
    GuardedServer,
    Interruptible,
    PageStore,
    Throttling,
)
from conspectus.testing.connectors.summary import pytest_addoption, pytest_terminal_summary
from conspectus.testing.connectors.syncs import ConnectorProperties
from conspectus.testing.connectors.verification import VerifyingProperties

__all__ = [
    "ConnectedServer",
    "ConnectorProperties",
    "Copy",
    "GuardedServer",
    "HttpGate",
    "Interruptible",
    "ListingProperties",
    "MirroringProperties",
    "PageStore",
    "Throttling",
    "VerifyingProperties",
    "install_connector",
    "open_gate",
    "pytest_addoption",
    "pytest_terminal_summary",
]
