"""What a question may walk over: names and graphs, as far as one person may see them."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from conspectus.access.mention_reader import AuthorizedMentions
from conspectus.access.reader import SourceRef
from conspectus.engine.components import EngineCore
from conspectus.graph.expansion import FEW, GraphCandidates
from conspectus.model.filter import Filter
from conspectus.model.graph import Neighbor, Node, Traversal
from conspectus.model.ids import SourceId

NOT_KEPT = "names are not kept in this collection"
NOT_READ = "not all passages have been looked through for names yet"
STOPPED = "not all passages could be looked through for names; whoever manages the collection is told why"


async def connections(
    core: EngineCore,
    place: SourceRef,
    graphs: Sequence[SourceId],
    *,
    where: Filter,
    as_of: datetime | None = None,
) -> GraphCandidates:
    """The names and graphs of a collection that a question under a filter may walk over.

    As of an instant, only over what was in a graph by then, and under the names that it had.
    """
    parts, home = core.parts, place.collection
    seen = AuthorizedMentions(parts.names.rows, place, where)
    notices = await _notices(core, place, seen)

    async def called(keys: Sequence[str]) -> Sequence[tuple[str, Node]]:
        found = await parts.graphs.called(graphs, keys) if graphs and keys else ()
        return [(key, node) for key, node in found if as_of is None or node.updated <= as_of]

    async def walk(starts: Sequence[str], how: Traversal) -> Sequence[Neighbor]:
        found = await parts.graphs.walk(graphs, starts, how, known=as_of)
        return [each for each in found if as_of is None or each.node.updated <= as_of]

    return GraphCandidates(
        names_of=seen.of,
        passages=partial(seen.passages, most=parts.settings.max_entity_mentions, few=FEW),
        called=called,
        walk=walk,
        lack=None if home.names else NOT_KEPT,
        notices=notices,
    )


async def _notices(core: EngineCore, place: SourceRef, seen: AuthorizedMentions) -> tuple[str, ...]:
    """What is not known yet, told of only as much as the person may know."""
    if not place.collection.names:
        return ()
    problem = core.names.problem(place.collection.id)
    if problem is not None:
        return (str(problem) if place.whole else STOPPED,)
    return (NOT_READ,) if await seen.waits() else ()
