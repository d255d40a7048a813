"""The engine on a server."""

from conspectus import bootstrap
from conspectus.client.channels import RemoteChannels
from conspectus.client.chat import RemoteChat
from conspectus.client.collections import RemoteCollections
from conspectus.client.documents import RemoteDocuments
from conspectus.client.memory import RemoteMemory, RemoteRetention
from conspectus.client.services import (
    RemoteAlerts,
    RemoteConnections,
    RemoteFiles,
    RemoteGraph,
    RemoteJobs,
    RemoteMaintenance,
    RemotePeople,
    RemoteSearch,
)
from conspectus.client.streams import RemoteEvents, RemoteStreams, RemoteSummaries
from conspectus.client.transport import Transport
from conspectus.engine.context import short
from conspectus.engine.documents import DocumentService
from conspectus.engine.search import SearchService
from conspectus.engine.tasks import TaskService
from conspectus.ports import Archives, CountTokens, Files


class RemoteEngine:
    """The services of Engine on a server. Opened with `conspectus.connect`; safe to use from many tasks.

    Results and errors are those of Engine. Raises PermissionDenied if the key does not permit an operation,
    and ServerUnavailable if the server cannot be reached.
    """

    def __init__(self, channel: Transport, files: Files, archives: Archives) -> None:
        given = (channel, files, archives)
        self.collections = RemoteCollections(*given)
        self.documents = RemoteDocuments(*given)
        self.search = RemoteSearch(*given)
        self.channels = RemoteChannels(*given)
        self.chat = RemoteChat(*given)
        self.tasks = TaskService(self)
        self.streams = RemoteStreams(*given)
        self.events = RemoteEvents(*given)
        self.summaries = RemoteSummaries(*given)
        self.alerts = RemoteAlerts(*given)
        self.memory = RemoteMemory(*given)
        self.retention = RemoteRetention(*given)
        self.graph = RemoteGraph(*given)
        self.people = RemotePeople(*given)
        self.jobs = RemoteJobs(*given)
        self.connections = RemoteConnections(*given)
        self.files = RemoteFiles(*given)
        self.maintenance = RemoteMaintenance(*given)

    add = short("documents", DocumentService.add)
    retrieve = short("search", SearchService.retrieve)
    window = short("search", SearchService.window)
    explain = short("search", SearchService.explain)

    def tokenizer(self, name: str = "o200k_base") -> CountTokens:
        """Return the local function that counts tokens with a tokenizer. Raises UnknownTokenizer."""
        return bootstrap.local_counter(name)
