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
ISO = "ISO 8601, with a zone"


class ArgumentModel(BaseModel):
    """A part of the arguments of a tool: no unknown names, and values of the type that the schema names."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Arguments(ArgumentModel):
    """The arguments of a tool."""

    max_tokens: int | None = Field(
        None,
        description="Most tokens of the result.",
    )


class ScopedArguments(Arguments):
    """The arguments of a tool that works on memories; what the server fixes is not offered."""

    user: Name | None = Field(None, description="Whose memories; left out: those of no user.")
    agent: Name | None = Field(None, description="Of which agent; left out: any, in writes none.")
    conversation: Name | None = Field(
        None, description="Of which conversation; left out: any, in writes none."
    )

    def scope(self, fixed: Scope) -> Scope:
        """Whose memories are meant, where the server fixes some of it."""
        return Scope(
            fixed.user or self.user, fixed.agent or self.agent, fixed.conversation or self.conversation
        )


def fixed_names(fixed: Scope) -> frozenset[str]:
    """The arguments that no call can give."""
    return frozenset(name for name in ("user", "agent", "conversation") if getattr(fixed, name) is not None)


TACIT = [("minLength", 1), ("default", []), ("default", False)]
TACIT += [("maxLength", each) for each in (NAME, IDENTIFIER, INSTANT)]


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model for clients that pay for it by the token.

    It has no references, no alternatives of null, no titles, and no bounds that everybody expects.
    """
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
        if name not in {"$defs", "title"} and (name, each) not in TACIT
    }


def _properties(properties: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _simple(each, known) for name, each in properties.items()}
