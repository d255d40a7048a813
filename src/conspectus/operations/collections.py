"""The operations on collections, and sources, each declared once."""

from typing import Final

from conspectus.engine.collections import CollectionService
from conspectus.engine.documents import DocumentService
from conspectus.engine.experiments import ExperimentService
from conspectus.engine.maintenance import MaintenanceService
from conspectus.operations.operation import Operation

_COLLECTION: Final = "/collections/{collection}"
_SOURCE: Final = "/sources/{source}"
_BY_ID: Final = ("collection",)
"""In a path, a source is given by id; the client looks up the id of a name in a collection."""

COLLECTION_OPERATIONS: Final = (
    Operation(CollectionService.list, "GET", "/collections", id="list_collections"),
    Operation(
        DocumentService.wait_until_embedded,
        "POST",
        f"{_COLLECTION}/wait",
        unhurried=True,
        wrapped="embedded",
    ),
    Operation(MaintenanceService.status, "GET", f"{_COLLECTION}/status", id="collection_status"),
    Operation(
        MaintenanceService.reembed,
        "POST",
        f"{_COLLECTION}/reembed",
        unhurried=True,
        wrapped="embedded",
        problems=(501,),
        for_models="named",
        audited=True,
    ),
    Operation(
        ExperimentService.undo_defaults,
        "DELETE",
        f"{_COLLECTION}/defaults",
        audited=True,
        for_models="never",
    ),
    Operation(CollectionService.get, "GET", _COLLECTION, tagged=True, id="get_collection"),
    Operation(
        CollectionService.update,
        "PATCH",
        _COLLECTION,
        tagged=True,
        id="update_collection",
        for_models="named",
        audited=True,
    ),
    Operation(
        CollectionService.delete,
        "DELETE",
        _COLLECTION,
        unhurried=True,
        id="delete_collection",
        for_models="named",
        audited=True,
    ),
)
"""In matching order: a name may contain a slash, so the shorter path comes last."""

SOURCE_OPERATIONS: Final = (
    Operation(CollectionService.list_sources, "GET", f"{_COLLECTION}/sources"),
    Operation(CollectionService.get_source, "GET", _SOURCE, tagged=True, local=_BY_ID),
    Operation(
        CollectionService.update_source,
        "PATCH",
        _SOURCE,
        tagged=True,
        local=_BY_ID,
        for_models="named",
        audited=True,
    ),
    Operation(
        CollectionService.delete_source,
        "DELETE",
        _SOURCE,
        unhurried=True,
        local=_BY_ID,
        for_models="named",
        audited=True,
    ),
)
