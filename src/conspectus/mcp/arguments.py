"""What every tool may be given, and schemas as models and their clients read them best."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from conspectus.model.memory import Scope

NAME = 500
IDENTIFIER = 200
QUESTION = 10_000
INSTANT = 100

Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME)]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=IDENTIFIER)]
Question = Annotated[str, StringConstraints(min_length=1, max_length=QUESTION)]
Instant = Annotated[str, StringConstraints(min_length=1, max_length=INSTANT)]
ISO = "an ISO 8601 time such as 2026-03-01T14:00:00Z"


class Part(BaseModel):
    """A part of the arguments of a tool: no unknown names, and values of the type that the schema names."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Arguments(Part):
    """The arguments of a tool."""

    max_tokens: int | None = Field(
        None,
        description="The most tokens that the result may cost. It is never over; what is left out is said.",
    )


class ScopedArguments(Arguments):
    """The arguments of a tool that works on memories; what the server fixes is not offered."""

    user: Name | None = Field(
        None, description="Whose memories. Left out: those that belong to no user, never those of all."
    )
    agent: Name | None = Field(
        None, description="Of which agent. Left out: of any when reading, of none when writing."
    )
    conversation: Name | None = Field(
        None, description="Of which conversation. Left out: of any when reading, of none when writing."
    )

    def scope(self, fixed: Scope) -> Scope:
        """Whose memories are meant, where the server fixes some of it."""
        return Scope(
            fixed.user or self.user, fixed.agent or self.agent, fixed.conversation or self.conversation
        )


def fixed_names(fixed: Scope) -> frozenset[str]:
    """The arguments that no call can give."""
    return frozenset(name for name in ("user", "agent", "conversation") if getattr(fixed, name) is not None)


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model without references, alternatives of null, and titles that say nothing."""
    whole = model.model_json_schema()
    simple: dict[str, Any] = _simple(whole, whole.get("$defs", {}))
    return {name: each for name, each in simple.items() if name != "description"}


def _simple(schema: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_simple(each, known) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = known[schema["$ref"].rsplit("/", 1)[-1]]
        schema = {**named, **{name: each for name, each in schema.items() if name != "$ref"}}
    options = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(options) == 1:
        rest = {name: each for name, each in schema.items() if name not in {"anyOf", "default"}}
        return _simple({**options[0], **rest}, known)
    return {
        name: _properties(each, known) if name == "properties" else _simple(each, known)
        for name, each in schema.items()
        if name not in {"$defs", "title"}
    }


def _properties(properties: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _simple(each, known) for name, each in properties.items()}
