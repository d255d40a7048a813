"""A clock that tests set by hand."""

from dataclasses import dataclass
from datetime import datetime

from tests.support.samples import NOON


@dataclass
class HandClock:
    """A clock that is set by hand."""

    at: datetime = NOON

    def __call__(self) -> datetime:
        return self.at
