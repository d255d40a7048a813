"""Makes stores of Chroma and Qdrant with good and broken members, and says how many of them are imported.

A line of stdin is a JSON list: the kind of the import and the members. The answer is a JSON list: how many
records are imported, and how many are skipped with a reason.
"""

import json
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import chromadb
from chromadb.api.shared_system_client import SharedSystemClient
from qdrant_client import QdrantClient, models

from conspectus.ports.imports import ForeignPlace, LeftOut
from conspectus.sources.foreign_stores.readers import foreign_reader

SIZE = 4


def make_chroma(folder: Path, members: list[Any]) -> None:
    """One record for each member: its text, if it has one, and its metadata."""
    collection = chromadb.PersistentClient(str(folder)).create_collection("members")
    for number, member in enumerate(members):
        collection.add(
            ids=[f"m{number}"],
            embeddings=[[1.0, 2.0, 3.0, float(number)]],
            documents=None if member["text"] is None else [member["text"]],
            metadatas=[member["metadata"]] if member["metadata"] else None,
        )
    SharedSystemClient.clear_system_cache()


def make_qdrant(folder: Path, members: list[Any], name: str) -> None:
    """One point for each member, with its payload and its vectors."""
    size = models.VectorParams(size=SIZE, distance=models.Distance.COSINE)
    with closing(QdrantClient(path=str(folder))) as client:
        client.create_collection(
            name, {"dense": size, "other": size}, sparse_vectors_config={"words": models.SparseVectorParams()}
        )
        vectors: dict[str, Any] = {
            "dense": [1.0, 2.0, 3.0, 4.0],
            "other": [4.0, 3.0, 2.0, 1.0],
            "words": models.SparseVector(indices=[1], values=[0.5]),
        }
        for number, member in enumerate(members):
            member_vectors = {vector: vectors[vector] for vector in member["vectors"]}
            client.upsert(
                name, [models.PointStruct(id=number, vector=member_vectors, payload=member["payload"])]
            )


def count_records(kind: str, members: list[Any]) -> tuple[int, int]:
    """Return how many members are imported, and how many are skipped."""
    left = LeftOut()
    with TemporaryDirectory() as folder:
        if kind == "chroma":
            make_chroma(Path(folder), members)
        else:
            make_qdrant(Path(folder), members, kind)
        imported = sum(1 for _ in foreign_reader(kind, ForeignPlace(folder))(left))
    return imported, sum(skipped.count for skipped in left.records.values())


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(count_records(*json.loads(line))), flush=True)
