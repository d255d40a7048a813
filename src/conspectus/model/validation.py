"""Validation of arguments and fields from outside; filters and other values may be mappings."""

import inspect
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeVar

from conspectus.model.checks import Checked, How, add_checks
from conspectus.model.filter import Eq
from conspectus.model.filter_json import filter_from_mapping

F = TypeVar("F", bound=Callable[..., Any])
HOW: Final = How(MappingProxyType({Eq: filter_from_mapping}))


class Validated(Checked):
    """A checked dataclass that also accepts filters as mappings."""

    __slots__ = ()
    how: ClassVar[How] = HOW


def check_methods(cls: type[Any], settings: Callable[[Any], object] | None = None) -> None:
    """Make the public methods of a class raise InvalidInput for what their annotations do not allow.

    `settings` returns the settings that bounds name, of an instance.
    """
    for name, method in list(vars(cls).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(cls, name, add_checks(method, HOW._replace(settings=settings)))


def checked_arguments(function: F) -> F:
    """Return the function with a check of its arguments before each call."""
    return add_checks(function, HOW)
