"""Answers that have to be objects of a JSON Schema."""

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import jsonschema_rs
import regex

from conspectus.errors import InvalidInput
from conspectus.model.records import Metadata

MOST_SAID: Final = 300
_FENCED: Final = regex.compile(r"```[\w-]*[^\S\n]*\n(.*?)\n[^\S\n]*```", regex.DOTALL)


class Unsatisfied(ValueError):
    """An answer is not what the schema asks for; the message says how, for whoever is to answer again."""


class JsonSchemaOutput:
    """A JSON Schema, ready to check answers; nothing is fetched for it, and no pattern takes long."""

    def __init__(self, schema: Metadata) -> None:
        """Raises InvalidInput for what is no schema, or refers to one elsewhere."""
        self.text = json.dumps(dict(schema), ensure_ascii=False, sort_keys=True)
        try:
            self._validator = jsonschema_rs.validator_for(
                json.loads(self.text), retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
            )
        except ValueError as fault:
            raise InvalidInput("schema", f"is no JSON Schema: {_brief(fault)}") from fault

    def read(self, answer: str) -> Metadata:
        """The object that an answer is, alone or as its only block of code. Raises Unsatisfied."""
        found = _parsed(answer)
        if not isinstance(found, Mapping):
            raise Unsatisfied("the answer is not a JSON object")
        fault = next(iter(self._validator.iter_errors(dict(found))), None)
        if fault is not None:
            place = "/".join(str(step) for step in fault.instance_path)
            raise Unsatisfied(f"at /{place}: {_brief(fault)}")
        return found


def _parsed(answer: str) -> Any:
    blocks = _FENCED.findall(answer)
    text = blocks[0] if len(blocks) == 1 else answer
    try:
        return json.loads(text.strip(), parse_constant=_no_number)
    except (ValueError, RecursionError) as fault:
        raise Unsatisfied(f"the answer is not JSON: {_brief(fault)}") from fault


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is another schema, and none is fetched")


def _brief(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0][:MOST_SAID]
