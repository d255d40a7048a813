"""Constructors name their options in signature and help."""

from inspect import Parameter, getdoc, signature

import pytest

from conspectus.facades.agent import (
    AgentContext,
    AgentMemory,
    AsyncAgentContext,
    AsyncAgentMemory,
    AsyncContextRetriever,
    ContextRetriever,
)

NAMED = {
    "token_limit": None,
    "short_term_limit": 10,
    "retention_days": None,
    "max_memories": None,
    "user_id": None,
}
EXPANSION = {"hybrid_alpha": 0.5, "use_graph_expansion": True, "max_expansion_hops": 2}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (AgentContext, NAMED | EXPANSION),
        (AsyncAgentContext, NAMED | EXPANSION),
        (AgentMemory, NAMED),
        (AsyncAgentMemory, NAMED),
        (ContextRetriever, EXPANSION),
        (AsyncContextRetriever, EXPANSION),
    ],
)
def test_the_signature_names_each_option_with_its_default(kind: type, options: dict[str, object]) -> None:
    parameters = signature(kind).parameters
    assert {name: parameters[name].default for name in options} == options
    assert all(parameter.kind != Parameter.VAR_KEYWORD for parameter in parameters.values())
    help_text = getdoc(kind.__init__) or ""
    assert all(f"`{name}`" in help_text for name in options if name in {"retention_days", "short_term_limit"})


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="tokens"):
        AgentContext(tokens=3)
