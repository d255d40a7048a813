"""The operations on search, each declared once."""

from typing import Final

from conspectus.engine.search import SearchService
from conspectus.model.query import Query
from conspectus.operations.operation import OMITTED, Operation

_BUDGET: Final = "max_tokens"
_AS_IT_TAKES: Final = {"limit": OMITTED}
"""Without a limit, a window retrieves as many hits as fill it."""

SEARCH_OPERATIONS: Final = (
    Operation(
        SearchService.retrieve,
        "POST",
        "/search",
        reads=True,
        id="search",
        fields_of=Query,
    ),
    Operation(
        SearchService.window,
        "POST",
        "/context",
        spread=_BUDGET,
        reads=True,
        id="context",
        fields_of=Query,
        defaults=_AS_IT_TAKES,
    ),
    Operation(
        SearchService.explain,
        "POST",
        "/explain",
        spread=_BUDGET,
        reads=True,
        fields_of=Query,
        defaults=_AS_IT_TAKES,
    ),
    Operation(
        SearchService.explain_as,
        "POST",
        "/explain/as/{user}",
        spread=_BUDGET,
        reads=True,
        fields_of=Query,
        defaults=_AS_IT_TAKES,
        for_models="named",
    ),
    Operation(
        SearchService.augment,
        "POST",
        "/augment",
        spread=_BUDGET,
        reads=True,
        fields_of=Query,
        defaults={"collection": OMITTED, "min_similarity": OMITTED, **_AS_IT_TAKES},
    ),
    Operation(
        SearchService.search_and_rerank,
        "POST",
        "/search-and-rerank",
        reads=True,
        fields_of=Query,
        defaults=_AS_IT_TAKES,
    ),
    Operation(SearchService.add_feedback, "POST", "/feedback", status=201, for_models="named"),
    Operation(SearchService.list_feedback, "GET", "/feedback", for_models="named"),
    Operation(
        SearchService.revoke_feedback, "DELETE", "/feedback/{feedback}", status=204, for_models="named"
    ),
)
