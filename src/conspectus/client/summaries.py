"""Summaries of streams of a server."""

from conspectus.client.operations import derived
from conspectus.client.service import RemoteService
from conspectus.engine.summaries import SummaryService


@derived
class RemoteSummaries(RemoteService, SummaryService):
    """Summaries of streams of a server."""
