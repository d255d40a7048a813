"""Responses of a model that satisfy a JSON Schema."""

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import regex

from conspectus.errors import InvalidInput, optional
from conspectus.model.records import Metadata
from conspectus.text.late_patterns import regex_pattern

MAX_REASON_LENGTH: Final = 300
_FENCED: Final = regex_pattern(r"```[\w-]*[^\S\n]*\n(.*?)\n[^\S\n]*```", regex.DOTALL)


class Unsatisfied(ValueError):
    """A response that does not satisfy the schema. The message gives the reason for the next attempt."""


class JsonSchemaOutput:
    """A compiled JSON Schema for responses. References are not fetched; patterns run in linear time."""

    def __init__(self, schema: Metadata) -> None:
        """Compile a schema. Raises MissingExtra, or InvalidInput for an invalid one or remote references."""
        library = optional("jsonschema_rs", "json-schema", "jsonschema-rs")
        self.text = json.dumps(dict(schema), ensure_ascii=False, sort_keys=True)
        try:
            self._validator = library.validator_for(
                json.loads(self.text), retriever=_refuse, pattern_options=library.RegexOptions()
            )
        except ValueError as fault:
            raise InvalidInput("schema", f"is not a JSON Schema: {_brief(fault)}") from fault

    def read(self, answer: str) -> Metadata:
        """Parse a response that is an object, or has it as its only code block. Raises Unsatisfied."""
        answer_object = answer_json(answer)
        if not isinstance(answer_object, Mapping):
            raise Unsatisfied("the answer is not a JSON object")
        fault = next(iter(self._validator.iter_errors(dict(answer_object))), None)
        if fault is not None:
            location = "/".join(str(step) for step in fault.instance_path)
            raise Unsatisfied(f"at /{location}: {_brief(fault)}")
        return answer_object


def answer_json(answer: str) -> Any:
    """Return the JSON of a response, or of its only code block. Raises Unsatisfied."""
    blocks = _FENCED.findall(answer)
    text = blocks[0] if len(blocks) == 1 else answer
    try:
        return json.loads(text.strip(), parse_constant=_no_number)
    except (ValueError, RecursionError) as fault:
        raise Unsatisfied(f"the answer is not JSON: {_brief(fault)}") from fault


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is another schema; only references inside the schema are supported")


def _brief(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0][:MAX_REASON_LENGTH]
