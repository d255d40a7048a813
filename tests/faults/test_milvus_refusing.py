"""Milvus is there and refuses: a token, what a cluster cannot answer yet, to drop what an alias means."""

import base64
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from conspectus.errors import StorageBusy, StorageError
from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from conspectus.index.milvus.writes import forget
from conspectus.model.filter import EVERYTHING
from conspectus.ports import Probe
from tests.index_histories import DIMENSIONS, assert_right, catch_up, history
from tests.milvus_locations import location_in

lite = pytest.importorskip("milvus_lite.adapter.grpc.servicer")
database = pytest.importorskip("milvus_lite.db")
protocol = pytest.importorskip("pymilvus.grpc_gen.common_pb2")
answers = pytest.importorskip("pymilvus.grpc_gen.milvus_pb2")
services = pytest.importorskip("pymilvus.grpc_gen.milvus_pb2_grpc")

TOKEN = "root:Milvus"


class Cluster(lite.MilvusServicer):  # type: ignore[misc, name-defined]
    """Milvus Lite that can be told to answer queries as a cluster does for a while."""

    status: Any = None

    def Query(self, request: Any, context: Any) -> Any:
        if self.status is not None:
            return answers.QueryResults(status=self.status)
        return super().Query(request, context)

    def DropCollection(self, request: Any, context: Any) -> Any:
        """As Milvus from 2.5.5 on: not while an alias means it."""
        alias_request = answers.ListAliasesRequest(collection_name=request.collection_name)
        if self.ListAliases(alias_request, context).aliases:
            return protocol.Status(error_code=1, code=65535, reason="unset the alias first")
        return super().DropCollection(request, context)


class Guard(grpc.ServerInterceptor):  # type: ignore[misc]
    """Asks for a token, as Milvus does where authorization is on."""

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        credentials = dict(details.invocation_metadata).get("authorization", "")
        if base64.b64decode(credentials).decode() == TOKEN:
            return continuation(details)
        return grpc.unary_unary_rpc_method_handler(_denied)


def _denied(_: object, context: grpc.ServicerContext) -> None:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "auth check failure")


@contextmanager
def running_cluster(folder: Path, *guards: Guard) -> Iterator[tuple[Cluster, str]]:
    data = database.MilvusLite(str(folder / "data"))
    cluster = Cluster(data)
    server = grpc.server(ThreadPoolExecutor(4), interceptors=guards)
    services.add_MilvusServiceServicer_to_server(cluster, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield cluster, f"http://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
        data.close()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[tuple[Cluster, MilvusServer]]:
    with running_cluster(tmp_path) as (cluster, uri):
        server = MilvusServer(uri, seconds=20)
        yield cluster, server
        await server.close()


@pytest.mark.parametrize(
    "status",
    [
        {"code": 2, "reason": "service unavailable", "retriable": True},
        {"code": 503, "reason": "channel not available"},
    ],
)
async def test_what_passes_is_busy(
    tmp_path: Path, cluster: tuple[Cluster, MilvusServer], status: dict[str, Any]
) -> None:
    servicer, server = cluster
    journal, where = history(31, size=20), location_in(server, tmp_path, DIMENSIONS)
    index = await MilvusIndex.open(where, journal, str.split)
    await catch_up(index, journal)
    servicer.status = protocol.Status(error_code=1, **status)
    with pytest.raises(StorageBusy, match=status["reason"]):
        await index.search(Probe(EVERYTHING, "fox", None, 5))
    servicer.status = None
    await assert_right(index, journal)


async def test_nothing_is_dropped_that_an_alias_means(
    tmp_path: Path, cluster: tuple[Cluster, MilvusServer]
) -> None:
    _, server = cluster
    journal, where = history(32, size=20), location_in(server, tmp_path, DIMENSIONS)
    index = await MilvusIndex.open(where, journal, str.split)
    await catch_up(index, journal)
    await index.rebuild()
    assert len(await server.collections()) == 2
    meant = await server.resolve_alias(where.name)
    assert meant is not None
    with pytest.raises(StorageError, match="alias"):
        await server.drop(meant)
    await assert_right(index, journal)
    await forget(where)
    assert await server.collections() == []


async def test_what_does_not_pass_is_not(cluster: tuple[Cluster, MilvusServer]) -> None:
    servicer, server = cluster
    servicer.status = protocol.Status(error_code=1, code=1100, reason="invalid parameter")
    with pytest.raises(StorageError, match="invalid parameter") as caught:
        await server.query("any", "chunk > 0", ["chunk"])
    assert not isinstance(caught.value, StorageBusy)


@pytest.mark.parametrize("token", ["", "root:wrong"])
async def test_a_token_that_is_refused(tmp_path: Path, token: str) -> None:
    with running_cluster(tmp_path, Guard()) as (_, uri):
        right, wrong = MilvusServer(uri, token=TOKEN), MilvusServer(uri, token=token, seconds=20)
        assert await right.collections() == []
        with pytest.raises(StorageBusy, match=r"refuses the token; .* CONSPECTUS_MILVUS_TOKEN"):
            await wrong.collections()
        await right.close()
        await wrong.close()
