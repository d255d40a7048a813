"""A program to be killed: it adds nodes and edges in large batches, and says what it begins and what is done.

Every batch has nodes of its own, and edges from each of them to the next and to a hub that all batches have.
"""

import asyncio
import sys
from dataclasses import replace
from itertools import pairwise

import conspectus
from conspectus.model.graph import NewEdge, NewNode
from conspectus.settings import Settings

SETTINGS = replace(Settings(), embedder="none", log_level="critical")
SIZE = 500
HUB = "hub"


def node_names(batch: int) -> list[str]:
    """The nodes of a batch."""
    return [f"{batch:03}-{number:05}" for number in range(SIZE)]


async def main(path: str, batches: int) -> None:
    async with conspectus.open(path, settings=SETTINGS) as engine:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for batch in range(batches):
            batch_names = node_names(batch)
            print("nodes", batch, flush=True)
            await engine.graph.add_nodes(
                [NewNode(HUB), *(NewNode(name, properties={"x": 50 * "y"}) for name in batch_names)]
            )
            print("edges", batch, flush=True)
            chain = [NewEdge(a, b, weight=0.5) for a, b in pairwise(batch_names)]
            await engine.graph.add_edges([*chain, *(NewEdge(name, HUB, "of") for name in batch_names)])
            print("done", batch, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
