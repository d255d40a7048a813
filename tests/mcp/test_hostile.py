"""Arguments that are wrong, huge or meant to harm: each is refused in one line, and nothing is told."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError

from conspectus.engine import Engine
from conspectus.mcp.operation_tools import TABLE_OPERATIONS, TEXT_OPERATIONS
from conspectus.mcp.tool_list import TOOLS
from tests.mcp.conftest import call_tool, client, refused, text_of
from tests.repetitions import tries

WRONG: list[tuple[str, dict[str, Any]]] = [
    ("search", {}),
    ("search", {"query": None}),
    ("search", {"query": 5}),
    ("search", {"query": ""}),
    ("search", {"query": "x" * 10_001}),
    ("search", {"query": "x", "limit": 0}),
    ("search", {"query": "x", "limit": 10**30}),
    ("search", {"query": "x", "limit": "many"}),
    ("search", {"query": "x", "filter": "kind=page"}),
    ("search", {"query": "x", "filter": [{"kind": "page"}]}),
    ("search", {"query": "x", "filter": ['{"not":' * 5_000]}),
    ("search", {"query": "x", "filter": ["a=b"] * 21}),
    ("search", {"query": "x", "collection": ["default"]}),
    ("search", {"query": "x", "surprise": 1}),
    ("search", {"query": "x", "graph_weight": 1.5}),
    ("search", {"query": "x", "as_of": "yesterday-ish"}),
    ("search", {"query": "x", "max_tokens": 199}),
    ("search", {"query": "x", "max_tokens": 8_001}),
    ("search", {"query": "x", "max_tokens": -1}),
    ("context", {"query": "x", "format": "messages"}),
    ("read_document", {"document": "x", "start": -1}),
    ("read_document", {"document": "../../etc/passwd"}),
    ("remember", {"memories": []}),
    ("remember", {"memories": "text"}),
    ("remember", {"memories": [{"text": "x"}] * 51}),
    ("remember", {"memories": [{"text": "x" * 100_001}]}),
    ("remember", {"memories": [{"text": "x", "kind": "dream"}]}),
    ("remember", {"memories": [{"text": "x", "at": "sometime"}]}),
    ("remember", {"memories": [{"text": "x", "fact": {"subject": "a"}}]}),
    ("remember", {"memories": [{"text": "x", "vector": [1.0]}]}),
    ("remember", {"memories": [{"text": "x"}], "user": "\x00"}),
    ("remember", {"memories": [{"text": "x"}], "user": " "}),
    ("forget", {"older_than_days": -1}),
    ("graph", {"node": "x", "hops": 6}),
    ("graph", {"node": "x", "direction": "sideways"}),
    ("add_facts", {"facts": [{"subject": "a", "predicate": "b", "object": "c", "weight": 0}]}),
    ("add_facts", {"facts": [{"subject": "a", "predicate": "b", "object": "c"}], "graph": "graph/bob//"}),
]


@pytest.mark.parametrize(("tool", "arguments"), WRONG)
async def test_what_is_wrong_is_refused_in_a_line(
    engine: Engine, tool: str, arguments: dict[str, Any]
) -> None:
    async with client(engine) as session:
        why = await refused(session, tool, **arguments)
    code, colon, reason = why.partition(": ")
    assert code in {"invalid_input", "not_found", "too_large"} and colon and reason
    assert "\n" not in why and "Traceback" not in why and ".py" not in why
    assert engine.tokenizer()(why) <= 200


async def test_a_tool_that_does_not_exist_is_an_error_of_the_protocol(engine: Engine) -> None:
    async with client(engine) as session:
        for name in ("drop_everything", "", "search\x00", "x" * 100_000):
            with pytest.raises(MCPError) as caught:
                await session.call_tool(name, {})
            assert caught.value.error.code == -32602
            assert len(str(caught.value)) < 500
        assert (await refused(session, "drop_everything")).startswith(
            "invalid_input: name: unknown operation"
        )
        assert not (await call_tool(session, "list_collections", {})).is_error


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
SPECS = {**TOOLS, **TEXT_OPERATIONS}
ARGUMENTS = {
    **{name: sorted(spec.arguments.model_fields) for name, spec in SPECS.items()},
    **{
        name: [leaf.name for one in operation.parameters for leaf in one.leaves]
        for name, operation in TABLE_OPERATIONS.items()
        if operation.verb != "DELETE"
    },
}
NAMES = sorted({name for names in ARGUMENTS.values() for name in names})


@settings(max_examples=tries(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
async def test_no_arguments_break_a_tool(engine: Engine, data: st.DataObject) -> None:
    tool = data.draw(st.sampled_from(sorted(ARGUMENTS)))
    names = st.sampled_from(ARGUMENTS[tool] or NAMES)
    arguments = data.draw(st.dictionaries(names | st.sampled_from(NAMES), JSON, max_size=5))
    async with client(engine) as session:
        result = await call_tool(session, tool, arguments)
        assert engine.tokenizer()(text_of(result)) <= 8_000
