"""The arguments of tools, and their schemas."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from conspectus.model import parameters
from conspectus.model.filter_json import MAX_FILTER_LENGTH
from conspectus.model.memory import Scope
from conspectus.model.trust import MinTrust
from conspectus.operations.declared import INT64, declared, facts_of

MAX_INSTANT_LENGTH = 100
Name = Annotated[str, Field(**facts_of(parameters.Name))]
Question = Annotated[str, Field(**{**facts_of(parameters.QueryText), "min_length": 1})]
Instant = Annotated[str, StringConstraints(min_length=1, max_length=MAX_INSTANT_LENGTH)]
Collection = Annotated[str, Field(**facts_of(parameters.CollectionName))]
AsOf = Annotated[Instant | None, Field(**facts_of(parameters.AsOf))]
MinConfidence = Annotated[float, Field(**facts_of(parameters.MinConfidence))]
MinTrustArgument = Annotated[MinTrust | None, Field(**facts_of(parameters.LowestTrust))]


class ArgumentModel(BaseModel):
    """A part of the arguments of a tool: no unknown names, no conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Arguments(ArgumentModel):
    """The arguments of a tool."""

    max_tokens: int | None = Field(None, description="Token limit of the result.")


class ScopedArguments(Arguments):
    """The arguments of a tool that works on memories; what the server fixes is not offered."""

    user: Annotated[str | None, declared(Scope, "user")] = None
    agent: Annotated[str | None, declared(Scope, "agent")] = None
    conversation: Annotated[str | None, declared(Scope, "conversation")] = None

    def scope(self, fixed: Scope) -> Scope:
        """Return the memory scope of the call, some of which the server may fix."""
        return Scope(
            fixed.user or self.user, fixed.agent or self.agent, fixed.conversation or self.conversation
        )


def fixed_names(fixed: Scope) -> frozenset[str]:
    """Return the names of the arguments that the server fixes."""
    return frozenset(name for name in ("user", "agent", "conversation") if getattr(fixed, name) is not None)


USUAL_MEMBERS = [("minLength", 1), ("default", []), ("default", False)]
USUAL_MEMBERS += [("additionalProperties", True), ("additionalProperties", False), ("description", "")]
USUAL_MEMBERS += [("exclusiveMaximum", INT64), ("maxLength", MAX_INSTANT_LENGTH)]
USUAL_MEMBERS += [("maxLength", length) for length in (parameters.MAX_NAME, parameters.MAX_ID)]
USUAL_MEMBERS += [
    ("maxLength", length) for length in (parameters.MAX_QUERY, parameters.MAX_TEXT, MAX_FILTER_LENGTH)
]
"""Members of schemas that cost tokens and tell a model nothing."""


@cache
def compact_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a model in few tokens: no references, titles, examples and usual bounds."""
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
        schema = {**named, "description": "", **schema}
        schema = {name: member for name, member in schema.items() if name != "$ref"}
    if "enum" in schema:
        schema = {name: member for name, member in schema.items() if name != "type"}
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        rest = {name: member for name, member in schema.items() if name not in {"anyOf", "default"}}
        return _simplify({**options[0], **rest}, definitions)
    return {
        name: {key: _simplify(one, definitions) for key, one in member.items()}
        if name == "properties"
        else _simplify(member, definitions)
        for name, member in schema.items()
        if name not in {"$defs", "title", "examples"} and (name, member) not in USUAL_MEMBERS
    }
