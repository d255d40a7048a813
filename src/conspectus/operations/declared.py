"""What an annotation declares, as arguments of fields and parameters of the schema library."""

from dataclasses import is_dataclass
from typing import Any, Final, get_args

from pydantic import Field

from conspectus.errors import InvalidInput
from conspectus.model.annotations import (
    NO_EXAMPLE,
    Declaration,
    Length,
    Range,
    annotated_hints,
    base_of,
    declaration_of,
)

INT64: Final = 2**63


def declared(owner: Any, name: str, **narrower: Any) -> Any:
    """Return a field with what a dataclass declares about a field, or a method about a parameter.

    `narrower` are bounds of a surface that accepts less.
    """
    return Field(**{**facts_of_field(owner, name), **narrower})


def facts_of_field(owner: Any, name: str) -> dict[str, Any]:
    """Return what a dataclass declares about a field, or a method about a parameter."""
    return facts_of(annotated_hints(owner)[name])


def facts_of(annotation: Any) -> dict[str, Any]:
    """Return help, example and bounds of an annotation."""
    declaration = declaration_of(annotation)
    facts = describe_declaration(declaration)
    if declaration.length is not None:
        facts |= length_facts(declaration.length)
    if declaration.range is not None:
        base = base_of(annotation)
        facts |= range_facts(declaration.range, is_whole=int in (base, *get_args(base)))
    return facts


def describe_declaration(declaration: Declaration) -> dict[str, Any]:
    """Return help and example of a declaration."""
    facts: dict[str, Any] = {"description": declaration.help} if declaration.help else {}
    if declaration.example is not NO_EXAMPLE:
        facts["examples"] = [declaration.example]
    return facts


def length_facts(length: Length) -> dict[str, Any]:
    """Return the bounds of a text or a list."""
    return {"min_length": length.shortest or None, "max_length": length.longest}


def range_facts(bounds: Range, *, is_whole: bool) -> dict[str, Any]:
    """Return the bounds of a number; where the highest is a setting, the engine checks it."""
    facts: dict[str, Any] = {"gt" if bounds.above else "ge": bounds.lowest}
    if bounds.highest is not None and not bounds.setting:
        facts["le"] = bounds.highest
    elif is_whole:
        facts["lt"] = INT64
    return facts if is_whole else {**facts, "allow_inf_nan": False}


def require_remote(name: str, annotation: Any, value: Any) -> None:
    """Raise InvalidInput for a text that only local callers may give, also in a dataclass."""
    local = declaration_of(annotation).local_prefix
    if local is not None and isinstance(value, str) and value.startswith(local.prefix):
        raise InvalidInput(name, f"{local.prefix}PATH {local.reason}")
    if is_dataclass(value):
        for field, hint in annotated_hints(type(value)).items():
            require_remote(field, hint, getattr(value, field))
