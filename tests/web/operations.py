"""A valid request for every operation of the API, and what has to exist before it.

Requests name what exists by placeholders: `{document}` is the id of a document that is made before they are
sent. An operation without a request here fails a test, so that a new one is covered as soon as it appears.
"""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import httpx

Parts: TypeAlias = Mapping[str, Any]
"""What a request has beside its method and path, as httpx names it: `params`, `json`, `files`, `data`."""

PREFIX: Final = "/api/v1"
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_NAMES: Final = itertools.count()
_HERE: Final = {"collection": "{collection}"}
_IN: Final = {"params": _HERE}
_ANN: Final = {**_HERE, "user": "ann"}
_OF_ANN: Final = {"params": _ANN}
_QUERY: Final = {"query": "quinces", "collection": "{collection}"}
_DOCUMENTS: Final = [{"text": "Quinces ripen in October.", "title": "Quinces"}]
_TALK: Final = {"channel": "{fresh}", **_HERE, "messages": [{"text": "Are quinces ripe?", "key": "1"}]}
_QUESTIONS: Final = [
    {"query": "quinces", "key": "q1", "evidence": [{"document": "{document}", "start": 0, "end": 7}]}
]
_FILES: Final = {"files": ("quinces.md", b"# Quinces\n\nThey ripen in October.", "text/markdown")}
_SUBTITLES: Final = {"files": ("gate.srt", b"1\n00:00:01,000 --> 00:00:02,000\nA car stops.\n")}
_POSTS: Final = {"file": ("posts.jsonl", b'{"channel": "garden", "text": "Quinces are ripe."}\n')}
_HELD: Final = [{"key": "{fresh}", "text": "Quinces wait for a review.", "trust": "quarantined"}]
_CAPTIONS: Final = [{"text": "A car stops.", "start": 0, "end": 9, "entities": ["car"]}]
_GRANT: Final = {"grantee": {"kind": "user", "id": "{user}"}, "role": "viewer"}
_ISSUER: Final = {"issuer": "https://login.example.org"}
_CLAIM: Final = {"claim": "{fresh}", "group": "{group}", **_ISSUER}
_WIKI: Final = {"connector": "mediawiki", "options": {"address": "https://wiki.example/api.php"}}
_THIS: Final = '{{"field": "document", "eq": "{document}"}}'
_LINE: Final = (
    '{{"format": 1, "key": "{fresh}", "user": "ann", "text": "Ann likes quinces.", "kind": "turn",'
    ' "known_from": "2026-01-05T14:30:00Z"}}'
)
_TURN: Final = [{"role": "user", "content": "quinces"}]

MAKERS: Final[Mapping[str, tuple[str, Parts, str]]] = {
    "collection": ("POST /collections", {"json": {"name": "{fresh}"}}, "id"),
    "source": ("POST /collections/{collection}/sources", {"json": {"name": "{fresh}"}}, "id"),
    "document": ("POST /sources/{source}/documents", {"json": {"documents": _DOCUMENTS}}, "0.id"),
    "related": ("POST /sources/{source}/documents", {"json": {"documents": _DOCUMENTS}}, "0.id"),
    "chunk": ("GET /documents/{document}/chunks", {}, "0.id"),
    "path": ("GET /files/find", {"params": {"filter": _THIS}}, "entries.0.path"),
    "held": ("POST /sources/{source}/documents", {"json": {"documents": _HELD}}, "0.id"),
    "user": ("POST /users", {"json": {"name": "{fresh}"}}, "id"),
    "group": ("POST /groups", {"json": {"name": "{fresh}"}}, "id"),
    "member": ("PUT /groups/{group}/members/{user}", {}, ""),
    "key": ("POST /keys", {"json": {"user": "{user}"}}, "key.id"),
    "secret": ("POST /keys", {"json": {"user": "{user}"}}, "secret"),
    "login": ("POST /session", {"json": {"key": "{secret}"}}, ""),
    "session": ("GET /sessions", {"params": {"user": "{user}"}, "needs": "login"}, "0.id"),
    "invitation": ("POST /invitations", {"json": {"user": "{user}"}}, "invitation.id"),
    "identity": ("POST /identities", {"json": {"user": "{user}", "subject": "{fresh}", **_ISSUER}}, "id"),
    "group_claim": ("POST /group-claims", {"json": _CLAIM}, "id"),
    "granted": ("PUT /collections/{collection}/grants", {"json": _GRANT}, "grantee.id"),
    "name": ("POST /collections/{collection}/connections", {"json": {"name": "{fresh}", **_WIKI}}, "name"),
    "job": ("POST /collections/{collection}/ingest/files", {"files": _FILES}, "id"),
    "sync": ("POST /collections/{collection}/connections/{name}/sync", {}, "id"),
    "ended": ("POST /jobs/{sync}/cancel", {}, "id"),
    "message": ("POST /messages", {"json": _TALK}, "0.id"),
    "channel": ("GET /documents/{message}", {}, "source"),
    "task": ("POST /tasks", {**_IN, "json": {"id": "{fresh}", "title": "Pick quinces"}}, "id"),
    "attachment": ("PUT /tasks/{task}/attachments/{fresh}", {**_IN, "json": {"text": "A ladder."}}, "id"),
    "stream": ("POST /streams", {"json": {"name": "{fresh}", **_HERE}}, "source.id"),
    "caption": ("POST /streams/{stream}/captions", {**_IN, "json": {"captions": _CAPTIONS}}, "0.id"),
    "standing": ("PUT /streams/{stream}/summary/live", {**_IN, "json": {}}, ""),
    "answer": ("POST /context", {"json": {**_QUERY, "max_tokens": 200}, "needs": "document"}, "answer"),
    "question_set": (
        "POST /question-sets",
        {"json": {"name": "{fresh}", "questions": _QUESTIONS, **_HERE}},
        "id",
    ),
    "question": ("GET /question-sets/{question_set}", {}, "questions.0.id"),
    "run": ("POST /question-sets/{question_set}/runs", {"json": {}}, "id"),
    "used": ("POST /runs/{run}/use", {}, "id"),
    "feedback": ("POST /feedback", {"json": {"query": "quinces", "used": ["{chunk}"]}}, "0.id"),
    "alert": ("POST /alerts", {"json": {"name": "{fresh}", "query": "car", **_HERE}}, "id"),
    "memory": ("POST /memories", {"json": {**_ANN, "memories": [{"text": "Ann likes quinces."}]}}, "0.id"),
    "graph": ("POST /graphs", {"json": {"name": "{fresh}", **_HERE}}, "id"),
    "node": ("POST /graphs/{graph}/nodes", {**_IN, "json": {"nodes": [{"id": "ann"}, {"id": "bo"}]}}, "0.id"),
    "other": ("GET /graphs/{graph}/node", {"params": {**_HERE, "node": "bo"}}, "id"),
    "edge": (
        "POST /graphs/{graph}/edges",
        {**_IN, "json": {"edges": [{"source": "{node}", "target": "bo"}]}},
        "0.id",
    ),
    "merged": ("POST /graphs/{graph}/merge", {**_IN, "json": {"into": "{node}", "nodes": ["bo"]}}, "id"),
    "merge": ("GET /graphs/{graph}/merges", {"params": {**_HERE, "node": "{merged}"}}, "0.number"),
    "retention": ("PUT /memories/retention", {"json": {**_ANN, "days": 9}}, ""),
}
"""How what a placeholder names is made, and where its id stands in the answer."""

DIRECTORY = "POST /group-claims/sync"
"""It needs an LDAP directory."""
WRITES: Final[Mapping[str, Parts]] = {
    "POST /users": {"json": {"name": "{fresh}"}},
    "PATCH /users/{user}": {"json": {"disabled": True}},
    "DELETE /users/{user}": {},
    "POST /groups": {"json": {"name": "{fresh}"}},
    "DELETE /groups/{group}": {},
    "PUT /groups/{group}/members/{user}": {},
    "DELETE /groups/{group}/members/{user}": {"needs": "member"},
    "POST /keys": {"json": {"user": "{user}"}},
    "DELETE /keys/{key}": {},
    "POST /keys/{key}/rotate": {},
    "DELETE /sessions/{session}": {},
    "POST /invitations": {"json": {"user": "{user}"}},
    "DELETE /invitations/{invitation}": {},
    "POST /identities": {"json": {"user": "{user}", "subject": "{fresh}", **_ISSUER}},
    "DELETE /identities/{identity}": {},
    "POST /group-claims": {"json": _CLAIM},
    "POST /group-claims/sync": {"json": {"dry_run": True}},
    "DELETE /group-claims/{group_claim}": {},
    "PUT /collections/{collection}/grants": {"json": _GRANT},
    "DELETE /collections/{collection}/grants": {"params": {"kind": "user", "id": "{granted}"}},
    "POST /collections/{collection}/ingest/url": {"json": {"url": "https://example.com/quinces"}},
    "POST /collections/{collection}/ingest/files": {"files": _FILES},
    "POST /collections/{collection}/ingest/preview": {"files": _FILES},
    "POST /collections/{collection}/connections": {"json": {"name": "{fresh}", **_WIKI}},
    "PUT /collections/{collection}/connections/{name}/credentials": {"json": {"credentials": {}}},
    "PUT /collections/{collection}/connections/{name}/people": {
        "json": {"person": "user:1", "user": "{user}"}
    },
    "DELETE /collections/{collection}/connections/{name}": {},
    "POST /collections/{collection}/connections/{name}/sync": {},
    "POST /jobs/{job}/cancel": {},
    "POST /jobs/{ended}/retry": {},
    "POST /collections/{collection}/sources": {"json": {"name": "{fresh}"}},
    "PATCH /sources/{source}": {"json": {"metadata": {"shelf": "{fresh}"}}},
    "DELETE /sources/{source}": {},
    "POST /sources/{source}/documents": {"json": {"documents": _DOCUMENTS}},
    "POST /messages": {"json": _TALK},
    "POST /messages/import": {"files": _POSTS, "data": _HERE},
    "POST /collections/{collection}/documents": {"json": {"documents": _DOCUMENTS}},
    "POST /collections/{collection}/documents/delete": {"json": {"ids": ["{document}"]}},
    "POST /documents/delete": {"json": {"ids": ["{document}"]}},
    "PATCH /documents/{document}": {"json": {"title": "{fresh}"}},
    "DELETE /documents/{document}": {},
    "DELETE /documents/{document}/chunks": {},
    "PUT /documents/{document}/relations/{related}": {"json": {}},
    "DELETE /documents/{document}/relations/{related}": {},
    "POST /documents/{held}/release": {},
    "DELETE /documents/by-key": {"params": {**_HERE, "source": "{channel}", "key": "1"}},
    "POST /tasks": {**_IN, "json": {"id": "{fresh}", "title": "Pick quinces"}},
    "POST /tasks/bulk": {**_IN, "json": {"tasks": [{"id": "{fresh}", "title": "Pick quinces"}]}},
    "PUT /tasks/{task}/attachments/{attachment}": {**_IN, "json": {"text": "{fresh}"}},
    "DELETE /tasks/{task}/attachments/{attachment}": _IN,
    "PUT /tasks/{task}": {**_IN, "json": {"title": "{fresh}"}},
    "PATCH /tasks/{task}": {**_IN, "json": {"title": "{fresh}"}},
    "DELETE /tasks/{task}": _IN,
    "POST /feedback": {"json": {"query": "quinces", "wrong": ["{chunk}"]}},
    "DELETE /feedback/{feedback}": {},
    "DELETE /answers/{answer}": {},
    "POST /question-sets": {"json": {"name": "{fresh}", "questions": _QUESTIONS, **_HERE}},
    "POST /question-sets/{question_set}/questions": {"json": {"questions": _QUESTIONS}},
    "DELETE /question-sets/{question_set}": {},
    "POST /question-sets/{question_set}/runs": {"json": {"retrievers": ["keyword"]}},
    "DELETE /runs/{run}": {},
    "POST /runs/{run}/use": {},
    "DELETE /collections/{collection}/defaults": {"params": {"version": 1}, "needs": "used"},
    "POST /alerts": {"json": {"name": "{fresh}", "query": "car", **_HERE}},
    "DELETE /alerts/{alert}": {},
    "POST /memories/forget": {"json": {**_ANN, "ids": ["{memory}"]}},
    "PUT /memories/retention": {"json": {**_ANN, "days": 9}},
    "DELETE /memories/retention": {**_OF_ANN, "needs": "retention"},
    "POST /memories/retention/apply": {"json": _HERE, "needs": "retention"},
    "POST /memories/retention/start": {"json": _HERE, "needs": "retention"},
    "POST /memories/extract": {"json": _HERE},
    "POST /collections/{collection}/documents/import": {
        "json": {"lines": ['{{"source": "lines", "key": "quince", "text": "Quinces are ripe."}}']}
    },
    "POST /memories/import": {"json": {**_HERE, "lines": [_LINE]}},
    "POST /memories": {"json": {**_ANN, "memories": [{"text": "Ann likes quinces."}]}},
    "PATCH /memories/{memory}": {**_OF_ANN, "json": {"text": "{fresh}"}},
    "DELETE /memories/{memory}": _OF_ANN,
    "PUT /collections/{collection}/entities": {"json": {"enabled": True}},
    "POST /collections/{collection}/entities/wait": {},
    "POST /graphs/{graph}/merge": {**_IN, "json": {"into": "{node}", "nodes": ["bo"]}},
    "POST /graphs/{graph}/undo-merge": {**_IN, "json": {"merge": "{merge}"}},
    "POST /graphs": {"json": {"name": "{fresh}", **_HERE}},
    "POST /graphs/{graph}/nodes": {**_IN, "json": {"nodes": [{"id": "ann"}]}},
    "POST /graphs/{graph}/nodes/delete": {**_IN, "json": {"nodes": ["{node}"]}},
    "POST /graphs/{graph}/edges": {**_IN, "json": {"edges": [{"source": "{node}", "target": "bo"}]}},
    "POST /graphs/{graph}/edges/delete": {**_IN, "json": {"edges": ["{edge}"]}},
    "DELETE /graphs/{graph}": _IN,
    "POST /streams/{stream}/events": {**_IN, "json": {"events": [{"type": "stop", "start": 3}]}},
    "POST /streams/{stream}/summary": {**_IN, "json": {"extractive": True}, "needs": "caption"},
    "POST /streams/{stream}/summary/start": {**_IN, "json": {"extractive": True}, "needs": "caption"},
    "PUT /streams/{stream}/summary/live": {**_IN, "json": {}},
    "DELETE /streams/{stream}/summary/live": {**_IN, "needs": "standing"},
    "POST /streams": {"json": {"name": "{fresh}", **_HERE}},
    "POST /streams/{stream}/captions": {**_IN, "json": {"captions": _CAPTIONS}},
    "DELETE /streams/{stream}/captions": {**_IN, "needs": "caption"},
    "POST /streams/import": {"files": _SUBTITLES, "data": _HERE},
    "POST /streams/{stream}/captions/import": {"files": _SUBTITLES, "data": _HERE},
    "DELETE /streams/{stream}": _IN,
    "POST /collections": {"json": {"name": "{fresh}"}},
    "POST /collections/{collection}/wait": {},
    "POST /collections/{collection}/reindex": {},
    "POST /collections/{collection}/reembed": {"json": {"embedder": "vectors:8"}},
    "PATCH /collections/{collection}": {"json": {"description": "{fresh}"}},
    "DELETE /collections/{collection}": {},
    "DELETE /session": {},
}
"""Operations that change something."""

READS: Final[Mapping[str, Parts]] = {
    "GET /me": {},
    "POST /session": {"json": {"key": "csp_quince"}},
    "GET /users": {},
    "GET /users/{user}": {},
    "GET /groups": {},
    "GET /groups/{group}/members": {},
    "GET /keys": {"params": {"user": "{user}"}},
    "GET /sessions": {"params": {"user": "{user}"}},
    "GET /invitations": {},
    "GET /identities": {},
    "GET /group-claims": {},
    "GET /refused-sign-ins": {},
    "GET /collections/{collection}/grants": {},
    "GET /connectors": {},
    "GET /collections/{collection}/connections": {},
    "GET /collections/{collection}/connections/{name}/people": {},
    "GET /users/{user}/roles": {},
    "GET /documents/{document}/readers": {},
    "GET /audit": {},
    "POST /explain/as/{user}": {"json": {**_QUERY, "max_tokens": 200}},
    "GET /jobs": {"params": _HERE},
    "GET /jobs/{job}": {},
    "GET /ingest/report": {"params": _HERE},
    "GET /requests": {},
    "GET /requests/totals": {},
    "GET /collections/{collection}/sources": {},
    "GET /sources/{source}": {},
    "GET /sources/{source}/documents": {},
    "GET /messages": {"params": {**_HERE, "channel": "{channel}"}},
    "POST /messages/context": {"json": {**_HERE, "channel": "{channel}", "query": "quinces"}},
    "GET /documents/by-key": {"params": {**_HERE, "source": "{channel}", "key": "1"}},
    "GET /documents/{document}/thread": {},
    "GET /collections/{collection}/documents": {},
    "POST /collections/{collection}/documents/count": {"json": {}},
    "GET /documents/{document}": {},
    "GET /documents/{document}/text": {},
    "POST /documents/texts": {"json": {"ids": ["{document}"]}},
    "GET /documents/{document}/chunks": {},
    "GET /documents/{document}/relations": {},
    "GET /files": {},
    "GET /files/text": {"params": {"path": "{path}", "max_tokens": 100}},
    "GET /files/find": {"params": {"name": "*.md"}},
    "POST /files/grep": {"json": {"pattern": "quinces?", "ignore_case": True, "context": 1}},
    "POST /collections/{collection}/scan": {"json": {"categories": ["emails"]}},
    "GET /collections/{collection}/quarantined": {},
    "POST /search": {"json": _QUERY},
    "POST /context": {"json": {**_QUERY, "max_tokens": 200}},
    "POST /explain": {"json": {**_QUERY, "max_tokens": 200, "document": "{document}"}},
    "POST /augment": {"json": {**_QUERY, "max_tokens": 200}},
    "POST /rerank": {"json": {"query": "quinces", "chunks": ["{chunk}"]}},
    "POST /search-and-rerank": {"json": _QUERY},
    "GET /feedback": _IN,
    "GET /answers": _IN,
    "GET /question-sets": _IN,
    "GET /question-sets/{question_set}": {},
    "GET /runs": _IN,
    "GET /runs/{run}": {},
    "GET /runs/{run}/questions/{question}": {},
    "GET /answers/{answer}": {},
    "POST /chat": {"json": {"message": "quinces", **_HERE}},
    "GET /chat/{stream}": {},
    "POST /chat/completions": {"json": {"messages": _TURN, "conspectus": _HERE}},
    "POST /embeddings": {"json": {"input": "x"}},
    "GET /models": {},
    "GET /search/semantic": {"params": {**_HERE, "q": "quinces"}},
    "GET /tasks": {**_IN, "needs": "task"},
    "POST /tasks/context": {"json": {"query": "quinces", **_HERE}},
    "GET /tasks/{task}/attachments": _IN,
    "GET /tasks/{task}/attachments/{attachment}": _IN,
    "GET /tasks/{task}": _IN,
    "GET /status": {},
    "GET /check": {},
    "GET /alerts": _IN,
    "GET /alerts/events": {"params": {"alert": "{alert}"}},
    "GET /alerts/stream": {"params": {"alert": "{alert}"}},
    "GET /alerts/{alert}": {},
    "GET /memories/retention": _IN,
    "GET /memories/conversations": _OF_ANN,
    "GET /memories/stats": _OF_ANN,
    "GET /memories/export": _OF_ANN,
    "GET /collections/{collection}/documents/export": {},
    "GET /memories": _OF_ANN,
    "POST /memories/count": {"json": _ANN},
    "POST /memories/recall": {"json": {**_ANN, "query": "quinces"}},
    "POST /memories/context": {"json": {**_ANN, "query": "quinces", "max_tokens": 200}},
    "GET /memories/recent": _OF_ANN,
    "GET /memories/{memory}": _OF_ANN,
    "GET /memories/{memory}/versions": _OF_ANN,
    "GET /collections/{collection}/entities": {},
    "POST /collections/{collection}/entities/extract": {"json": {"text": "quinces"}},
    "POST /graphs/{graph}/link": {**_IN, "json": {"text": "ann"}},
    "GET /graphs/{graph}/merges": {"params": {**_HERE, "node": "{node}"}},
    "GET /graphs": _IN,
    "GET /graphs/{graph}/nodes": _IN,
    "GET /graphs/{graph}/edges": {"params": {**_HERE, "node": "{node}"}},
    "GET /graphs/{graph}/node": {"params": {**_HERE, "node": "{node}"}},
    "GET /graphs/{graph}/neighbors": {"params": {**_HERE, "node": "{node}"}},
    "POST /graphs/{graph}/find": {**_IN, "json": {"query": "ann"}},
    "GET /graphs/{graph}/at": {"params": {**_HERE, "at": "2026-01-01T00:00:00Z"}},
    "GET /graphs/{graph}/export": _IN,
    "GET /streams/{stream}/events": _IN,
    "GET /streams/{stream}/entities": _IN,
    "GET /streams/{stream}/timeline": {"params": {**_HERE, "entity": "car"}},
    "GET /streams/{stream}/summary": _IN,
    "GET /streams": _IN,
    "POST /streams/search": {"json": {"query": "car", **_HERE}},
    "POST /streams/context": {"json": {"query": "car", **_HERE, "max_tokens": 200}},
    "GET /streams/{stream}/captions": _IN,
    "GET /streams/{stream}/stream": _IN,
    "GET /streams/{stream}": _IN,
    "GET /collections": {},
    "GET /collections/{collection}/status": {},
    "GET /collections/{collection}": {},
}
"""Operations that only answer."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request whose placeholders are filled in, and the ids that they stand for."""

    method: str
    path: str
    parts: Mapping[str, Any]

    async def sent(self, client: httpx.AsyncClient) -> httpx.Response:
        """The answer to it."""
        return await client.request(self.method, self.path, **self.parts)


@dataclass
class World:
    """What requests name: each thing is made when it is first needed, by somebody who may."""

    client: httpx.AsyncClient
    known: dict[str, Any] = field(default_factory=dict)

    async def request(self, label: str, parts: Parts) -> Request:
        """The request of an operation, after what it names was made."""
        for name in (*_PLACEHOLDER.findall(label), *named(parts), parts.get("needs")):
            if name not in (None, "fresh"):
                await self.make(name)
        return filled(label, parts, self.known)

    async def make(self, name: str) -> None:
        """Make what a placeholder names, unless it is there. Raises AssertionError if that is refused."""
        if name in self.known:
            return
        label, parts, where = MAKERS[name]
        answer = await (await self.request(label, parts)).sent(self.client)
        assert answer.is_success, (label, answer.text)
        self.known[name] = found(answer.json() if where else None, where)


def named(value: Any) -> list[str]:
    """The placeholders in a value, however deep."""
    match value:
        case str():
            return _PLACEHOLDER.findall(value.replace("{{", "").replace("}}", ""))
        case Mapping():
            return [name for member in value.values() for name in named(member)]
        case list():
            return [name for member in value for name in named(member)]
        case _:
            return []


def filled(label: str, parts: Parts, names: Mapping[str, Any]) -> Request:
    """The request with its placeholders filled in."""
    method, path = label.split(" ")
    values = {**names, "fresh": f"new-{next(_NAMES)}"}
    rest = {name: _with(part, values) for name, part in parts.items() if name != "needs"}
    return Request(method, path.format(**values), rest)


def found(answer: Any, where: str) -> Any:
    """The member of an answer at a place such as `0.id`."""
    for step in filter(None, where.split(".")):
        answer = answer[int(step) if step.isdecimal() else step]
    return answer


def _with(value: Any, values: Mapping[str, Any]) -> Any:
    match value:
        case str() if (only := _PLACEHOLDER.fullmatch(value)) is not None:
            return values[only[1]]
        case str():
            return value.format(**values)
        case Mapping():
            return {name: _with(member, values) for name, member in value.items()}
        case list():
            return [_with(member, values) for member in value]
        case _:
            return value
