"""The two kinds of schema, and the types of their values."""

import re
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict

from conspectus.model import parameters
from conspectus.model.filter import DocumentFilter
from conspectus.operations.declared import INT64, facts_of

NUMBER = re.compile(r"\s*[-+]?[0-9.]+\s*")


def _no_number(value: object) -> object:
    """Return the value. Raises ValueError for one that Pydantic would read as seconds since 1970."""
    if isinstance(value, int | float) or (isinstance(value, str) and NUMBER.fullmatch(value)):
        raise ValueError("must be a date with a time and a zone, such as 2026-01-31T12:00:00Z")
    return value


Name = Annotated[str, Field(**facts_of(parameters.Name))]
Identifier = Annotated[str, Field(**facts_of(parameters.Identifier))]
Text = Annotated[str, Field(**facts_of(parameters.Text))]
Question = Annotated[str, Field(**facts_of(parameters.QueryText))]
Label = Annotated[str, Field(**facts_of(parameters.Label))]
Int64 = Annotated[int, Field(ge=-INT64, lt=INT64)]
Count = Annotated[int, Field(ge=0)]
MinConfidence = Annotated[float, Field(**facts_of(parameters.MinConfidence))]
MinSimilarity = Annotated[float, Field(**facts_of(parameters.MinSimilarity))]
Tokens = Annotated[int, Field(**facts_of(parameters.TokenLimit))]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Instant = Annotated[AwareDatetime, Strict(False), BeforeValidator(_no_number)]
Span = Annotated[tuple[Int64, Int64], Strict(False)]
JsonObject = dict[str, Any]
Where = Annotated[JsonObject, Field(**facts_of(DocumentFilter))]


class ResponseModel(BaseModel):
    """A result of the engine, read from the attributes of its types."""

    model_config = ConfigDict(from_attributes=True)


class RequestModel(BaseModel):
    """A part of a request: unknown fields and values of other types than the schema's are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ImportedAnswer(ResponseModel):
    """The result of an import of lines."""

    added: Count
    replaced: Count
    updated: Count
    unchanged: Count
