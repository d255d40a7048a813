"""The arguments of tools, and their schemas."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from conspectus.model import parameters
from conspectus.model.memory import Scope
from conspectus.model.trust import MinTrust
from conspectus.operations.declared import bounded

MAX_NAME_LENGTH = 500
MAX_ID_LENGTH = 200
MAX_QUERY_LENGTH = 10_000
MAX_INSTANT_LENGTH = 100
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_LENGTH)]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_LENGTH)]
Question = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_LENGTH)]
Instant = Annotated[str, StringConstraints(min_length=1, max_length=MAX_INSTANT_LENGTH)]
INSTANT_FORMAT = "ISO 8601"
MinConfidence = Annotated[float, bounded(parameters.MinConfidence, "Minimum probability of an answer.")]
MinTrustArgument = Annotated[MinTrust | None, Field(description="Minimum trust.")]


class ArgumentModel(BaseModel):
    """A part of the arguments of a tool: no unknown names, no conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Arguments(ArgumentModel):
    """The arguments of a tool."""

    max_tokens: int | None = Field(None, description="Token limit of the result.")


class ScopedArguments(Arguments):
    """The arguments of a tool that works on memories; what the server fixes is not offered."""

    user: Name | None = Field(None, description="Memory scope; none: memories of no user.")
    agent: Name | None = Field(None, description="Memory scope; none: any agent.")
    conversation: Name | None = Field(None, description="Memory scope; none: any conversation.")

    def scope(self, fixed: Scope) -> Scope:
        """Return the memory scope of the call, some of which the server may fix."""
        return Scope(
            fixed.user or self.user, fixed.agent or self.agent, fixed.conversation or self.conversation
        )


def fixed_names(fixed: Scope) -> frozenset[str]:
    """Return the names of the arguments that the server fixes."""
    return frozenset(name for name in ("user", "agent", "conversation") if getattr(fixed, name) is not None)


USUAL_MEMBERS = [("minLength", 1), ("default", []), ("default", False), ("additionalProperties", True)]


USUAL_MEMBERS += [
    ("maxLength", length) for length in (MAX_NAME_LENGTH, MAX_ID_LENGTH, MAX_INSTANT_LENGTH, MAX_QUERY_LENGTH)
]


@cache
def compact_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a model in few tokens, without references, titles and usual bounds."""
    schema = model.model_json_schema()
    simple: dict[str, Any] = _simplify(schema, schema.get("$defs", {}))
    return {name: member for name, member in simple.items() if name != "description"}


def _simplify(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_simplify(member, definitions) for member in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = definitions[schema["$ref"].rsplit("/", 1)[-1]]
        schema = {**named, **{name: member for name, member in schema.items() if name != "$ref"}}
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        rest = {name: member for name, member in schema.items() if name not in {"anyOf", "default"}}
        return _simplify({**options[0], **rest}, definitions)
    return {
        name: {key: _simplify(one, definitions) for key, one in member.items()}
        if name == "properties"
        else _simplify(member, definitions)
        for name, member in schema.items()
        if name not in {"$defs", "title"} and (name, member) not in USUAL_MEMBERS
    }
