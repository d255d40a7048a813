"""The engine on a server: its services, as far as they are not derived, and the connection to it."""

from conspectus import bootstrap
from conspectus.client.alerts import RemoteAlerts
from conspectus.client.channels import RemoteChannels
from conspectus.client.chat import RemoteChat
from conspectus.client.collections import RemoteCollections
from conspectus.client.documents import RemoteDocuments
from conspectus.client.events import RemoteEvents
from conspectus.client.graph import RemoteGraph
from conspectus.client.jobs import RemoteJobs
from conspectus.client.maintenance import RemoteMaintenance
from conspectus.client.memory import RemoteMemory
from conspectus.client.operations import derive_client
from conspectus.client.people import (
    RemoteAccess,
    RemoteIdentities,
    RemoteKeys,
    RemoteLogins,
    RemotePeople,
)
from conspectus.client.search import RemoteSearch
from conspectus.client.streams import RemoteStreams
from conspectus.client.transport import RemoteService, Transport
from conspectus.engine.answers import AnswerService
from conspectus.engine.connections import ConnectionService
from conspectus.engine.delegation import delegate_to
from conspectus.engine.documents import DocumentService
from conspectus.engine.experiments import ExperimentService
from conspectus.engine.files import FileService
from conspectus.engine.retention import RetentionService
from conspectus.engine.search import SearchService
from conspectus.engine.summaries import SummaryService
from conspectus.engine.tasks import TaskService
from conspectus.model.trust import Origin
from conspectus.ports import Archives, CountTokens, Files


@derive_client
class RemoteAnswers(RemoteService, AnswerService):
    """Answer records of a server."""


@derive_client
class RemoteExperiments(RemoteService, ExperimentService):
    """Question sets of a server and their runs."""


@derive_client
class RemoteConnections(RemoteService, ConnectionService):
    """Connections of a server."""


@derive_client
class RemoteFiles(RemoteService, FileService):
    """Documents of a server as files."""


@derive_client
class RemoteRetention(RemoteService, RetentionService):
    """Retention rules of a server."""


@derive_client
class RemoteSummaries(RemoteService, SummaryService):
    """Summaries of streams of a server."""


class RemoteEngine:
    """The services of Engine on a server. Opened with `conspectus.connect`; safe to use from many tasks.

    Results and errors are those of Engine. Raises PermissionDenied if the key does not permit an operation,
    and ServerUnavailable if the server cannot be reached.
    """

    def __init__(self, channel: Transport, files: Files, archives: Archives) -> None:
        parts = self._parts = (channel, files, archives)
        self.collections = RemoteCollections(*parts)
        self.documents = RemoteDocuments(*parts)
        self.search = RemoteSearch(*parts)
        self.answers = RemoteAnswers(*parts)
        self.experiments = RemoteExperiments(*parts)
        self.channels = RemoteChannels(*parts)
        self.chat = RemoteChat(*parts)
        self.tasks = TaskService(self)
        self.streams = RemoteStreams(*parts)
        self.events = RemoteEvents(*parts)
        self.summaries = RemoteSummaries(*parts)
        self.alerts = RemoteAlerts(*parts)
        self.memory = RemoteMemory(*parts)
        self.retention = RemoteRetention(*parts)
        self.graph = RemoteGraph(*parts)
        self.people = RemotePeople(*parts)
        self.keys = RemoteKeys(*parts)
        self.logins = RemoteLogins(*parts)
        self.identities = RemoteIdentities(*parts)
        self.access = RemoteAccess(*parts)
        self.jobs = RemoteJobs(*parts)
        self.connections = RemoteConnections(*parts)
        self.files = RemoteFiles(*parts)
        self.maintenance = RemoteMaintenance(*parts)

    add = delegate_to("documents", DocumentService.add)
    retrieve = delegate_to("search", SearchService.retrieve)
    window = delegate_to("search", SearchService.window)
    explain = delegate_to("search", SearchService.explain)

    def with_origin(self, origin: Origin) -> "RemoteEngine":
        """Return an engine whose writes are trusted no more than texts of an origin, such as `agent`."""
        channel, files, archives = self._parts
        return RemoteEngine(channel.with_origin(origin), files, archives)

    def tokenizer(self, name: str = "o200k_base") -> CountTokens:
        """Return the local function that counts tokens with a tokenizer. Raises UnknownTokenizer."""
        return bootstrap.local_counter(name)
