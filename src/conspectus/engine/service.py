"""The base of services: a part of the engine with the permissions of one user."""

from operator import attrgetter
from typing import Any

from conspectus.engine.context import EngineContext
from conspectus.model.validation import check_methods


class Service:
    """A part of the engine on one store with the permissions of one user.

    Public methods raise InvalidInput for an argument of another type than is annotated, or out of the
    annotated range, unless the class is not `checked`: then only other services call it.
    """

    def __init_subclass__(cls, *, checked: bool = True, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if checked:
            check_methods(cls, settings=attrgetter("_parts.settings"))

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._core = context.core
        self._parts = context.parts
        self._person = context.person
        self._authorized = context.authorized
        self._directory = context.directory
        self._writer = context.writer
