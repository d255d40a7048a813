"""What every engine must do, here or on a server.

Subclass `EngineContract`, give it `engine` (that of an owner, on an empty store whose collections get
vectors of 64 dimensions) and `local` (an engine of the same store in this process, which may be the same
one), and let pytest collect it.
"""

from tests.contracts.engine_alerts_contract import EngineAlertsContract
from tests.contracts.engine_channels_contract import ChannelsContract
from tests.contracts.engine_documents_contract import CatalogContract, DocumentsContract
from tests.contracts.engine_entities_contract import EntitiesContract
from tests.contracts.engine_export_contract import ExportContract
from tests.contracts.engine_files_contract import FilesContract
from tests.contracts.engine_graph_contract import GraphContract
from tests.contracts.engine_memory_contract import MemoryContract
from tests.contracts.engine_people_contract import PeopleContract, SeeAsContract, WorkContract
from tests.contracts.engine_retention_contract import RetentionContract
from tests.contracts.engine_search_contract import SearchContract, UpkeepContract
from tests.contracts.engine_streams_contract import StreamsContract
from tests.contracts.engine_summaries_contract import EngineSummariesContract
from tests.contracts.engine_vectors_contract import VectorsContract


class EngineContract(
    CatalogContract,
    DocumentsContract,
    ExportContract,
    VectorsContract,
    SearchContract,
    UpkeepContract,
    ChannelsContract,
    StreamsContract,
    SeeAsContract,
    EngineSummariesContract,
    GraphContract,
    MemoryContract,
    RetentionContract,
    PeopleContract,
    WorkContract,
    EngineAlertsContract,
    FilesContract,
    EntitiesContract,
):
    """The behaviour of every engine, as tests."""
