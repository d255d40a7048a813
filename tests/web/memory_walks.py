"""Requests to every route of memories, names and graphs, each with what it promises."""

from collections.abc import Sequence
from typing import Any

Step = tuple[str, str, Any, int]
ANN = {"user": "ann", "conversation": "one"}
OF_ANN = "user=ann&conversation=one"
FACT = {"subject": "Ann", "predicate": "lives in", "object": "Köln"}
TEA = {"text": "I like green tea.", "key": "1", "role": "user", "at": "2026-03-02T08:00:00Z"}
HOME = {
    "text": "I live in Köln.",
    "kind": "note",
    "fact": FACT,
    "valid_from": "2020-01-01",
    "entities": ["Köln"],
}
ASKED = {"query": "What does Ann like?", **ANN}
MEMORIES: Sequence[Step] = [
    ("POST", "/memories", {**ANN, "memories": [TEA, HOME], "wait": True}, 201),
    ("POST", "/memories", {**ANN, "memories": [{**TEA, "tex": "x"}]}, 422),
    ("POST", "/memories", {**ANN, "memories": [{"text": " "}]}, 422),
    ("POST", "/memories", {"user": "", "memories": [TEA]}, 422),
    ("GET", f"/memories?{OF_ANN}&kind=turn&limit=1&newest_first=true&filter=role%3Duser", None, 200),
    ("GET", "/memories?collection=nowhere", None, 404),
    ("POST", "/memories/count", {"user": "ann", "filter": {"field": "role", "eq": "user"}}, 200),
    ("POST", "/memories/recall", {**ASKED, "graph": {"alpha": 0.5, "hops": 1}, "limit": 3}, 200),
    ("POST", "/memories/recall", {**ASKED, "graph": None, "as_of": "2020-01-01T00:00:00Z"}, 200),
    ("POST", "/memories/recall", {**ASKED, "as_of": "2020-01-01T00:00:00"}, 422),
    ("POST", "/memories/context", {**ASKED, "max_tokens": 90, "notes_share": 0.5, "recent": 1}, 200),
    (
        "POST",
        "/memories/context",
        {**ASKED, "max_tokens": {"max_tokens": 9, "tokenizer": "hf:/etc/passwd"}},
        422,
    ),
    ("GET", f"/memories/recent?{OF_ANN}&limit=2&max_tokens=50", None, 200),
    ("GET", f"/memories/recent?{OF_ANN}&tokenizer=hf:/etc/passwd", None, 422),
    ("GET", f"/memories/{{memory}}?{OF_ANN}", None, 200),
    ("GET", "/memories/{memory}?user=bob", None, 404),
    ("PATCH", f"/memories/{{memory}}?{OF_ANN}", {"text": "I like black tea.", "pinned": True}, 200),
    ("PATCH", f"/memories/{{memory}}?{OF_ANN}", {"key": "2"}, 422),
    ("GET", f"/memories/{{memory}}/versions?{OF_ANN}", None, 200),
    ("GET", "/memories/conversations?user=ann", None, 200),
    ("GET", "/memories/stats?user=ann", None, 200),
    ("GET", f"/memories/export?{OF_ANN}&limit=1", None, 200),
    ("POST", "/memories/import", {"lines": ["{}"]}, 422),
    ("POST", "/memories/extract", {"max_tokens": 100}, 503),
    ("POST", "/memories/extract", {"max_tokens": 0}, 422),
    ("PUT", "/memories/retention", {"user": "ann", "max_count": 1, "days": 30.5}, 204),
    ("PUT", "/memories/retention", {"user": "ann"}, 422),
    ("PUT", "/memories/retention", {"user": "ann", "days": 365_001}, 422),
    ("PUT", "/memories/retention", {"user": "ann", "max_count": -1}, 422),
    ("GET", "/memories/retention", None, 200),
    ("POST", "/memories/retention/apply", {"scope": {"user": "ann"}, "dry_run": True}, 200),
    ("POST", "/memories/retention/start", {}, 202),
    ("DELETE", "/memories/retention?user=ann", None, 204),
    ("POST", "/memories/forget", {**ANN, "everything": True, "dry_run": True}, 200),
    ("POST", "/memories/forget", ANN, 422),
    ("DELETE", "/memories/{memory}?user=bob", None, 200),
    ("DELETE", f"/memories/{{memory}}?{OF_ANN}", None, 200),
    ("GET", f"/memories/{{memory}}?{OF_ANN}", None, 404),
]

PLACE = "/graphs/team%2Fone"
IN = "collection=wiki"
NODES = {"nodes": [{"id": "ann", "name": "Ann Lee"}, {"id": "http://x/bo"}, {"id": "a2", "name": "Ann L."}]}
KNOWS = {"source": "ann", "target": "http://x/bo", "type": "knows", "weight": 0.9}
GRAPHS: Sequence[Step] = [
    ("POST", "/graphs", {"name": "team/one", "collection": "wiki"}, 200),
    ("POST", f"{PLACE}/nodes?{IN}", NODES, 201),
    ("POST", f"{PLACE}/nodes?{IN}", {"nodes": [{"id": "x", "valid_from": "noon"}]}, 422),
    ("POST", f"{PLACE}/edges?{IN}", {"edges": [KNOWS]}, 201),
    ("POST", f"{PLACE}/edges?{IN}", {"edges": [{**KNOWS, "target": "nobody"}]}, 422),
    ("GET", f"/graphs?{IN}", None, 200),
    ("GET", f"{PLACE}/nodes?{IN}&type=entity&limit=1", None, 200),
    ("GET", f"{PLACE}/edges?{IN}&node=ann", None, 200),
    ("GET", f"{PLACE}/node?{IN}&node=http://x/bo", None, 200),
    ("GET", f"{PLACE}/node?{IN}&node=nobody", None, 404),
    ("GET", f"{PLACE}/neighbors?{IN}&node=ann&hops=2&types=knows&types=likes&direction=out", None, 200),
    ("GET", f"{PLACE}/neighbors?{IN}&node=ann&hops=99", None, 422),
    ("POST", f"{PLACE}/find?{IN}", {"query": "Lee", "limit": 3}, 200),
    ("GET", f"{PLACE}/at?{IN}&at=2026-01-01T00:00:00Z", None, 200),
    ("GET", f"{PLACE}/export?{IN}&format=svg", None, 200),
    ("GET", f"/graphs/nowhere/export?{IN}", None, 404),
    ("POST", f"{PLACE}/link?{IN}", {"text": "Ann Lee was here.", "min_score": 0.5}, 200),
    ("POST", f"{PLACE}/link?{IN}", {"text": "Ann Lee", "mention": [3, 99]}, 422),
    ("POST", f"{PLACE}/merge?{IN}", {"into": "ann", "nodes": ["a2"], "reason": "one"}, 200),
    ("GET", f"{PLACE}/merges?{IN}&node=ann", None, 200),
    ("POST", f"{PLACE}/undo-merge?{IN}", {"merge": 99}, 404),
    ("PUT", "/collections/wiki/entities", {"enabled": True}, 200),
    ("POST", "/collections/wiki/entities/wait", None, 200),
    ("GET", "/collections/wiki/entities?prefix=b&limit=5", None, 200),
    ("POST", "/collections/wiki/entities/extract", {"text": "Ann Lee was here."}, 200),
    ("POST", f"{PLACE}/edges/delete?{IN}", {"edges": ["nothing"]}, 200),
    ("POST", f"{PLACE}/nodes/delete?{IN}", {"nodes": ["ann", "nobody"]}, 200),
    ("DELETE", f"{PLACE}?{IN}", None, 200),
    ("DELETE", f"{PLACE}?{IN}", None, 404),
]
