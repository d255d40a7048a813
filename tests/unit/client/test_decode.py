"""What is not an answer of ours is said where and how; what is more or less than expected is read."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from types import NoneType
from typing import Any, Literal, NewType, get_args, get_origin

import pytest

from conspectus.client import decode as decode_module
from conspectus.client.decode import Misread, decode, decode_list, decode_member
from conspectus.client.operations import request_of
from conspectus.client.request import document_json, to_json
from conspectus.engine.search import SearchService
from conspectus.errors import InvalidInput
from conspectus.model.annotations import base_of
from conspectus.model.filter import Eq, Filter
from conspectus.model.query import Budget, Query
from conspectus.model.records import Json, NewDocument, Period, Receipt, Source, TextPosition, Written
from conspectus.operations.operation import Operation
from conspectus.operations.table import OPERATIONS
from conspectus.text.times import parse_instant

SOURCE = {"id": "s", "collection": "c", "name": "n", "metadata": {"a": [1, None]}, "kind": "web"}


def test_a_newer_server_may_say_more_and_an_older_one_less() -> None:
    more = {**SOURCE, "colour": "red"}
    less = {name: SOURCE[name] for name in ("id", "collection", "name")}
    assert decode(Source, more).kind == "web"
    assert decode(Source, less) == decode(Source, {**less, "metadata": {}, "kind": "manual"})


@pytest.mark.parametrize(
    ("kind", "payload", "where"),
    [
        (Source, {**SOURCE, "name": 1}, "answer.name is 1, not a string"),
        (Source, {**SOURCE, "metadata": []}, "answer.metadata is [], not an object"),
        (Source, {**SOURCE, "kind": "odd"}, "answer.kind is 'odd', not one of"),
        (Source, {"id": "s"}, "answer.collection is missing"),
        (Source, [SOURCE], "not an object"),
        (Source, None, "answer is None, not an object"),
        (Receipt, {"documents": True}, "answer.documents is True, not a whole number"),
        (Receipt, {"documents": 1.0}, "not a whole number"),
        (Receipt, {"purged": 1}, "not true or false"),
        (Period, {"start": "2024-05-01T00:00:00", "end": "x"}, "answer.start is"),
        (float, float("nan"), "not a number"),
        (str, b"x", "not a string"),
    ],
)
def test_what_cannot_be_read_is_named(kind: Any, payload: object, where: str) -> None:
    with pytest.raises(Misread) as caught:
        decode(kind, payload)
    assert where in str(caught.value)


def find_undecodable_types(hint: Any) -> set[str]:
    """Return the types in a type, and in the fields of its dataclasses, that a client cannot decode."""
    unread, visited, undecodable = [hint], set[Any](), set[str]()
    while unread:
        kind = unread.pop()
        if kind in {NoneType, Ellipsis} or kind in visited:
            continue
        visited.add(kind)
        if isinstance(kind, NewType):
            unread.append(base_of(kind))
        elif is_dataclass(kind):
            unread += [member for _, member, _ in decode_module._members(kind)]
        elif get_origin(kind) is not Literal and kind not in (Json, Filter):
            try:
                decode_module._reader(kind)
            except TypeError:
                undecodable.add(repr(kind))
            unread += get_args(kind)
    return undecodable


def test_a_client_decodes_the_result_of_every_operation() -> None:
    """A type that it cannot decode is a crash after the operation has done its work."""
    undecodable = {
        operation.method.__qualname__: kinds
        for operation in OPERATIONS.values()
        if (kinds := find_undecodable_types(result_type(operation)))
    }
    assert undecodable == {}


def result_type(operation: Operation) -> Any:
    """Return the type of a result; of a list, that of its elements."""
    is_list = get_origin(operation.returns) in {list, Sequence, Iterable}
    return get_args(operation.returns)[0] if is_list else operation.returns


def test_lists_and_members_are_named_too() -> None:
    with pytest.raises(Misread, match=r"answer\.1\.outcome is 'lost'"):
        decode_list(Written, [{"id": "a", "outcome": o, "chunks": 1} for o in ("added", "lost")])
    with pytest.raises(Misread, match=r"answer\.count is None, not a whole number"):
        decode_member(int, "count", {})
    assert decode_member(int, "count", {"count": 3}) == 3


def test_only_what_was_said_of_a_document_is_sent() -> None:
    assert document_json(NewDocument("a")) == {"text": "a"}
    encoded = document_json(NewDocument("a", occurred="2024-05-01", metadata={"at": parse_instant(0)}))
    start = "2024-05-01T00:00:00+00:00"
    assert encoded["occurred"] == {"start": start, "end": start}
    assert encoded["metadata"] == {"at": "1970-01-01T00:00:00.000000Z"}


def test_places_are_those_of_the_text_that_is_sent() -> None:
    encoded = document_json(
        NewDocument("\ud83c\udf89 a\x00b", places=(TextPosition(0), TextPosition(3, page=2)))
    )
    assert encoded["text"] == "🎉 a\ufffdb"
    assert encoded["places"] == [
        {"start": 0, "page": None, "headings": [], "box": None},
        {"start": 2, "page": 2, "headings": [], "box": None},
    ]


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"metadata": {"a": float("nan")}}, "metadata"),
        ({"metadata": {"a": {1, 2}}}, "metadata"),
        ({"metadata": {1: 2}}, "metadata"),
        ({"occurred": "yesterday"}, "occurred"),
        ({"places": (TextPosition(9),)}, "places"),
        ({"spans": ((0, 3),), "text": "\ud83c\udf89"}, "spans"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_it_is_sent(fields: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        document_json(NewDocument(**{"text": "a", **fields}))
    assert caught.value.field == name


def test_metadata_without_end_are_refused() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    with pytest.raises(InvalidInput, match="too deeply"):
        document_json(NewDocument("a", metadata=endless))


QUERY = Query("a", limit=3, collection="c", filter=Eq("kind", "page"), min_similarity=0.5)


def build_request(method: Callable[..., Any], **values: Any) -> Any:
    return request_of(OPERATIONS[method.__qualname__], values).body


def test_a_question_keeps_what_was_said_of_it() -> None:
    body = build_request(SearchService.retrieve, query=QUERY, collection="d")
    assert body.items() >= {"query": "a", "limit": 3, "collection": "d", "min_similarity": 0.5}.items()
    assert (body["filter"], "text" in body) == ({"field": "kind", "eq": "page"}, False)
    assert build_request(SearchService.retrieve, query="a")["limit"] == Query("a").limit


def test_what_an_operation_decides_itself_is_sent_as_an_option_only() -> None:
    window = build_request(SearchService.window, query=QUERY, max_tokens=5)
    assert ("limit" in window, window["collection"]) == (False, "c")
    assert build_request(SearchService.window, query=QUERY, max_tokens=5, limit=4)["limit"] == 4
    assert (
        not {"limit", "collection", "min_similarity"}
        & build_request(SearchService.augment, query=QUERY, max_tokens=5).keys()
    )


def test_a_budget_stands_beside_a_question() -> None:
    budget = Budget(5, query="When?", reserved_tokens=2)
    body = build_request(SearchService.window, query="a", max_tokens=budget)
    assert {name: body[name] for name in ("query", "budget_query", "max_tokens", "reserved_tokens")} == {
        "query": "a",
        "budget_query": "When?",
        "max_tokens": 5,
        "reserved_tokens": 2,
    }


def test_odd_values() -> None:
    with pytest.raises(InvalidInput):
        to_json(float("inf"))
