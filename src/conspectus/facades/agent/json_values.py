"""Values that the agent API takes from callers and gives to them: everything is JSON."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np

from conspectus.text.times import canonical


def with_iso_times(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values whose instants are ISO 8601 texts, so that json.dumps takes them."""
    return {
        name: canonical(value) if isinstance(value, datetime) else value for name, value in values.items()
    }


def plain_value(value: Any) -> Any:
    """Return a value whose NumPy scalars and arrays are plain Python, at any depth."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: plain_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(part) for part in value]
    return value
