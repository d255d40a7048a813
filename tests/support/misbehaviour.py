"""Ways in which a model service can misbehave, as answers of the scripted servers.

    for name, answer in service_faults().items(): ...
    for name, rows in vector_faults([[1.0, 2.0], [3.0, 4.0]]).items(): ...

The first are faults of the transport, which are the same for each vendor; the second are faults of vectors,
which the caller puts into the vendor's form.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.model_servers import failing, never
from tests.support.web_server import Answer, redirect

BLOCK = b'{"data": [' + b" " * 65_000
NAN, INFINITY = float("nan"), float("inf")


def service_faults() -> dict[str, Answer]:
    """Answers without any content of the protocol."""
    login = b"<html><body><form action='/login'>Please sign in</form></body></html>"
    return {
        "login page": Answer(login, type="text/html"),
        "login page that says it is JSON": Answer(login, type="application/json"),
        "truncated JSON": Answer(b'{"data": [{"index": 0, "embedding": [0.1, ', type="application/json"),
        "broken off": Answer(b'{"data": [] ' + b" " * 10_000, type="application/json", broken=True),
        "empty body": Answer(b"", type="application/json"),
        "null": Answer(b"null", type="application/json"),
        "another form": Answer(b'{"status": "ok"}', type="application/json"),
        "list of numbers": Answer(b"[1, 2, 3]", type="application/json"),
        "error as success": Answer(b'{"error": {"message": "overloaded"}}', type="application/json"),
        "deep nesting": Answer(b"[" * 100_000, type="application/json"),
        "not UTF-8": Answer(b'\xff\xfe{"data"', type="application/json"),
        "endless body": Answer(BLOCK, type="application/json", endless=True),
        "silence": never(),
        "slow drip": Answer(b"x" * 1_000, type="application/json", piece=1, pause=0.2),
        "429": failing(429, retry_after=1),
        "500": failing(500),
        "503": failing(503),
        "401": failing(401),
        "404": failing(404),
        "redirect": redirect("/elsewhere"),
        "redirect for good": redirect("/elsewhere", 308),
    }


def vector_faults(rows: Sequence[Sequence[float]]) -> dict[str, list[Any]]:
    """Rows of at least two texts that are no vectors for them; the first is wrong unless all are."""
    first, *rest = [list(row) for row in rows]
    size = len(first)
    return {
        "one too few": [*rest],
        "one too many": [first, first, *rest],
        "none": [],
        "null": [None, *rest],
        "NaN": [[NAN] * size, *rest],
        "Infinity": [[INFINITY] * size, *rest],
        "overflow": [[1e200] * size, *rest],
        "zeros": [[0.0] * size, *rest],
        "one shorter": [first[:-1], *rest],
        "all shorter": [row[:-1] for row in (first, *rest)],
        "empty row": [[], *rest],
        "strings": [[str(number) for number in first], *rest],
        "booleans": [[True] * size, *rest],
        "nested": [[[number] for number in first], *rest],
        "huge integers": [[10**400] * size, *rest],
        "no base64": ["?", *rest],
    }


def index_faults(count: int) -> dict[str, list[Any]]:
    """Indexes of as many entries as there are texts that do not name each text once."""
    return {
        "duplicate": [0] * count,
        "beyond the end": [*range(1, count + 1)],
        "negative": [*range(-1, count - 1)],
        "as text": [str(index) for index in range(count)],
        "missing in one": [None, *range(1, count)],
        "booleans": [bool(index) for index in range(count)],
    }


def as_json(content: Mapping[str, Any]) -> Answer:
    """An answer with NaN and Infinity as many services write them."""
    return Answer(json.dumps(content).encode(), type="application/json")
