"""The code of the document that describes semantic search for tasks, with its imports changed."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

import conspectus
from conspectus.facades.tasks import (
    CONTEXT_BUDGET_ALLOCATION,
    RAGService,
    estimate_tokens,
    truncate_to_budget,
)
from conspectus.model.tasks import Attachment


class SearchResult(BaseModel):
    """Single search result."""

    model_config = ConfigDict(from_attributes=True)
    task_id: str
    document: str
    distance: float
    similarity: float
    status: str
    priority: str
    has_attachments: bool
    snippet: str


class SemanticSearchResponse(BaseModel):
    """Semantic search API response."""

    results: list[SearchResult]
    total: int
    query: str
    filters: dict


class RAGContextRequest(BaseModel):
    """Request for RAG context."""

    query: str
    n_results: int = Field(default=3, ge=1, le=10)
    include_metadata: bool = True
    max_tokens: int | None = Field(default=1500, ge=100, le=5000)


class ChatRequest(BaseModel):
    """A chat message."""

    message: str


class LLMService:
    """A model that streams two pieces and keeps what it was told."""

    def __init__(self) -> None:
        self.messages: list[dict[str, str]] = []

    async def stream_chat(self, messages: list[dict[str, str]]) -> AsyncIterator[str]:
        self.messages = messages
        for piece in ("Hello,\n", "world"):
            yield piece


def app_of(rag_service: RAGService, llm_service: LLMService) -> FastAPI:
    """The two endpoints of the document."""
    search = APIRouter(prefix="/api/v1/search", tags=["search"])
    chats = APIRouter(prefix="/api/v1/chat")

    @search.get("/semantic", response_model=SemanticSearchResponse)
    async def semantic_search(
        q: str = Query(..., min_length=1, max_length=500),
        status: str | None = Query(None, pattern="^(pending|in_progress|completed)$"),
        priority: str | None = Query(None, pattern="^(low|medium|high|critical)$"),
        n: int = Query(5, ge=1, le=20),
        min_similarity: float = Query(0.0, ge=0.0, le=1.0),
    ) -> Any:
        results = await rag_service.search(
            query=q,
            n_results=n,
            filter_status=status,
            filter_priority=priority,
            min_similarity=min_similarity,
        )
        return SemanticSearchResponse(
            results=[SearchResult.model_validate(r) for r in results],
            total=len(results),
            query=q,
            filters={"status": status, "priority": priority},
        )

    @chats.post("")
    async def chat(request: ChatRequest) -> StreamingResponse:
        async def stream_generator() -> AsyncIterator[str]:
            answer = await rag_service.chat_with_context(user_query=request.message, llm_service=llm_service)
            for line in answer.splitlines():
                yield f"data: {line}\n"
            yield "\ndata: [DONE]\n\n"

        return StreamingResponse(
            stream_generator(),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-cache", "Connection": "keep-alive"},
        )

    app = FastAPI()
    app.include_router(search)
    app.include_router(chats)
    return app


@pytest.fixture
async def rag_service_test(tmp_path: Path) -> AsyncIterator[RAGService]:
    async with conspectus.open(tmp_path) as engine:
        yield RAGService(engine)


@pytest.fixture
async def indexed_tasks(rag_service_test: RAGService) -> list[dict[str, str]]:
    """Pre-index sample tasks."""
    tasks = [
        {"id": "auth-1", "title": "Fix login", "status": "pending"},
        {"id": "auth-2", "title": "Update JWT", "status": "completed"},
        {"id": "ui-1", "title": "Redesign", "status": "pending"},
    ]
    for task in tasks:
        await rag_service_test.index_task(task)
    return tasks


@pytest.fixture
def llm_service() -> LLMService:
    return LLMService()


@pytest.fixture
async def client(rag_service_test: RAGService, llm_service: LLMService) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app_of(rag_service_test, llm_service))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasks") as client:
        yield client


@pytest.mark.usefixtures("indexed_tasks")
class TestSemanticSearch:
    async def test_search_returns_relevant(self, rag_service_test: RAGService) -> None:
        """Search finds semantically similar tasks."""
        results = await rag_service_test.search("authentication issues", n_results=3)
        assert len(results) > 0
        assert results[0].task_id.startswith("auth")

    async def test_search_with_status_filter(self, rag_service_test: RAGService) -> None:
        """Filter by status works."""
        results = await rag_service_test.search("task", filter_status="pending")
        assert results and all(r.status == "pending" for r in results)

    async def test_search_min_similarity(self, rag_service_test: RAGService) -> None:
        """Minimum similarity filters results."""
        results = await rag_service_test.search("task", min_similarity=0.9)
        assert all(r.similarity >= 0.9 for r in results)

    async def test_the_endpoint_has_the_response_model(
        self, client: httpx.AsyncClient, rag_service_test: RAGService
    ) -> None:
        """Also for tasks without a priority, and for attachments."""
        await rag_service_test._tasks.attach("auth-1", Attachment("log", "Wrong credentials at noon"))
        answer = await client.get("/api/v1/search/semantic", params={"q": "login issues", "n": 4})
        response = SemanticSearchResponse.model_validate(answer.json())
        assert (answer.status_code, response.total, response.query) == (200, 4, "login issues")
        similarities = [result.similarity for result in response.results]
        assert similarities == sorted(similarities, reverse=True)
        assert {result.priority for result in response.results} == {"none"}
        for wrong in ({}, {"q": ""}, {"q": "x", "n": 21}, {"q": "x", "status": "done"}):
            assert (await client.get("/api/v1/search/semantic", params=wrong)).status_code == 422


@pytest.mark.usefixtures("indexed_tasks")
class TestRAGContext:
    async def test_build_context_includes_metadata(self, rag_service_test: RAGService) -> None:
        """Context includes task status and priority."""
        context = await rag_service_test.build_context("what tasks?", n_results=2, include_metadata=True)
        assert "status:" in context
        assert "priority:" in context
        assert "similarity:" in context

    async def test_build_context_truncates_to_budget(self, rag_service_test: RAGService) -> None:
        """Context truncates to token budget."""
        context = await rag_service_test.build_context("task" * 100, n_results=10, max_tokens=40)
        assert len(context) < 40 * 4 + 4
        assert "..." in context or "[truncated]" in context

    def test_the_request_has_its_bounds(self) -> None:
        request = RAGContextRequest(query="x")
        assert (request.n_results, request.max_tokens) == (3, CONTEXT_BUDGET_ALLOCATION["rag_context"])


async def test_build_context_no_results(rag_service_test: RAGService) -> None:
    """Context message when no results."""
    assert "No relevant tasks found" in await rag_service_test.build_context("xyz123")


class TestChatWithRAG:
    @pytest.mark.usefixtures("indexed_tasks")
    async def test_chat_uses_rag_context(self, client: httpx.AsyncClient, llm_service: LLMService) -> None:
        """Chat injects RAG context."""
        response = await client.post("/api/v1/chat", json={"message": "Test"})
        assert response.text == "data: Hello,\ndata: world\n\ndata: [DONE]\n\n"
        assert any("Relevant tasks:" in m["content"] for m in llm_service.messages)
        assert llm_service.messages[-1] == {"role": "user", "content": "Test"}

    async def test_chat_works_without_tasks(self, client: httpx.AsyncClient, llm_service: LLMService) -> None:
        response = await client.post("/api/v1/chat", json={"message": "Test"})
        assert response.status_code == 200
        assert "No relevant tasks found." in llm_service.messages[0]["content"]


def test_the_budget() -> None:
    assert dict(CONTEXT_BUDGET_ALLOCATION) == {
        "system_prompt": 500,
        "rag_context": 1500,
        "user_message": 200,
        "llm_output": 800,
    }
    assert [estimate_tokens(text) for text in ("", "abc", "abcd" * 3)] == [1, 1, 3]
    assert truncate_to_budget("short", 10) == "short"
    assert truncate_to_budget("long " * 100, 10).endswith("... [truncated]")
