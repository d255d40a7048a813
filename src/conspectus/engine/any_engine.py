"""The common interface of local and remote engines."""

from typing import Protocol

from conspectus.engine.access import AccessService
from conspectus.engine.alerts import AlertService
from conspectus.engine.answers import AnswerService
from conspectus.engine.channels import ChannelService
from conspectus.engine.chat import ChatService
from conspectus.engine.connections import ConnectionService
from conspectus.engine.events import EventService
from conspectus.engine.experiments import ExperimentService
from conspectus.engine.files import FileService
from conspectus.engine.graph import GraphService
from conspectus.engine.identities import IdentityService
from conspectus.engine.jobs import JobService
from conspectus.engine.keys import KeyService
from conspectus.engine.logins import LoginService
from conspectus.engine.maintenance import MaintenanceService
from conspectus.engine.memory import MemoryService
from conspectus.engine.people import PeopleService
from conspectus.engine.retention import RetentionService
from conspectus.engine.streams import StreamService
from conspectus.engine.summaries import SummaryService
from conspectus.engine.task_search import TaskEngine
from conspectus.engine.tasks import TaskService
from conspectus.model.trust import Origin


class AnyEngine(TaskEngine, Protocol):
    """The services that `Engine` and `RemoteEngine` share; those of tasks are in TaskEngine."""

    def with_origin(self, origin: Origin) -> "AnyEngine":
        """Return an engine whose writes are trusted no more than texts of an origin."""

    @property
    def answers(self) -> AnswerService:
        """See AnswerService."""

    @property
    def experiments(self) -> ExperimentService:
        """See ExperimentService."""

    @property
    def channels(self) -> ChannelService:
        """See ChannelService."""

    @property
    def chat(self) -> ChatService:
        """See ChatService."""

    @property
    def tasks(self) -> TaskService:
        """See TaskService."""

    @property
    def streams(self) -> StreamService:
        """See StreamService."""

    @property
    def events(self) -> EventService:
        """See EventService."""

    @property
    def summaries(self) -> SummaryService:
        """See SummaryService."""

    @property
    def alerts(self) -> AlertService:
        """See AlertService."""

    @property
    def memory(self) -> MemoryService:
        """See MemoryService."""

    @property
    def retention(self) -> RetentionService:
        """See RetentionService."""

    @property
    def graph(self) -> GraphService:
        """See GraphService."""

    @property
    def people(self) -> PeopleService:
        """See PeopleService."""

    @property
    def keys(self) -> KeyService:
        """See KeyService."""

    @property
    def logins(self) -> LoginService:
        """See LoginService."""

    @property
    def identities(self) -> IdentityService:
        """See IdentityService."""

    @property
    def access(self) -> AccessService:
        """See AccessService."""

    @property
    def jobs(self) -> JobService:
        """See JobService."""

    @property
    def connections(self) -> ConnectionService:
        """See ConnectionService."""

    @property
    def files(self) -> FileService:
        """See FileService."""

    @property
    def maintenance(self) -> MaintenanceService:
        """See MaintenanceService."""
