"""Names in passages of a server, what they mean in its graphs, and nodes that are one."""

from collections.abc import Sequence
from typing import Final

from conspectus.client.catalog import in_collection
from conspectus.client.encode import encoded
from conspectus.client.graphing import Graphing, ids_json, in_graph, inside
from conspectus.client.request import Request, ask, get, post, work
from conspectus.model.graph import EntityCount, EntityLink, Mention, Node, NodeEvent
from conspectus.model.records import Collection, Json
from conspectus.ports import Progress

LOOKING: Final = "looking for names"


class Naming(Graphing):
    """Who and what passages are about, and which nodes names mean."""

    async def keep_names(self, on: bool = True, *, collection: str = "default") -> Collection:
        """Look through the passages of a collection for names, from the first on, in the background.

        With False, no more: what was found is forgotten.
        """
        request = Request("PUT", in_collection(collection, "names"), {"on": on}, writes=True)
        return await self._channel.one(Collection, request)

    async def settle_names(self, *, collection: str = "default", progress: Progress | None = None) -> int:
        """Wait until every passage is looked through; returns how many were meanwhile."""
        if progress is not None:
            progress(LOOKING, 0, 0)
        return await self._channel.member(int, "read", work(in_collection(collection, "names", "settle")))

    async def names(
        self,
        *,
        collection: str = "default",
        begins: str = "",
        limit: int = 100,
        source: str | None = None,
    ) -> list[EntityCount]:
        """The names that passages mention, of those that can be seen, the most frequent first."""
        request = get(in_collection(collection, "names"), begins=begins, limit=limit, source=source)
        return await self._channel.several(EntityCount, request)

    async def find_names(self, text: str, *, collection: str = "default") -> list[Mention]:
        """The names in a text, as they are found in passages."""
        request = ask(in_collection(collection, "names", "find"), {"text": encoded(text)})
        return await self._channel.several(Mention, request)

    async def link(
        self,
        text: str,
        *,
        graph: str = "default",
        collection: str = "default",
        mention: tuple[int, int] | None = None,
        threshold: float | None = None,
    ) -> list[EntityLink]:
        """Which nodes the names in a text mean, or the one name at `mention`, each with its candidates.

        A node is named only where its score is at least `threshold` (None: the settings' number).
        """
        body: Json = {"text": encoded(text), "mention": encoded(mention), "threshold": encoded(threshold)}
        return await self._channel.several(EntityLink, inside(ask(in_graph(graph, "link"), body), collection))

    async def merge_nodes(
        self,
        keep: str,
        others: Sequence[str],
        *,
        graph: str = "default",
        collection: str = "default",
        reason: str = "",
    ) -> Node:
        """Make nodes one, which has the edges and aliases of all of them; `split_node` undoes it."""
        body: Json = {"keep": encoded(keep), "others": ids_json("others", others), "reason": encoded(reason)}
        return await self._channel.one(Node, inside(post(in_graph(graph, "merge"), body), collection))

    async def split_node(
        self, merge: int, *, graph: str = "default", collection: str = "default", reason: str = ""
    ) -> list[Node]:
        """Undo the merge of that number; the nodes that there are again."""
        body: Json = {"merge": merge, "reason": encoded(reason)}
        return await self._channel.several(Node, inside(post(in_graph(graph, "split"), body), collection))

    async def node_history(
        self, node: str | None = None, *, graph: str = "default", collection: str = "default"
    ) -> list[NodeEvent]:
        """What was merged and split by hand, in order; of one node, or of all."""
        request = get(in_graph(graph, "history"), node=node, collection=collection)
        return await self._channel.several(NodeEvent, request)
