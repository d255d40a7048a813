"""`dataclass` of the standard library, whose methods are compiled when they are first used.

The standard decorator compiles six methods of each frozen class, which was half of the time of importing this
package. A process uses few of its classes.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

Class = type[Any]

NO_METHODS: Final = {"init": False, "repr": False, "eq": False}
OPTIONS: Final[Mapping[str, Mapping[str, bool]]] = {
    "__init__": {"init": True, "frozen": True},
    "__repr__": {"repr": True},
    "__eq__": {"eq": True},
    "__hash__": {"eq": True, "unsafe_hash": True},
}
"""The options with which the standard decorator makes each method."""


class DeferredMethod:
    """A method that the standard decorator makes when it is first looked up, in a class or an instance."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Class, name: str) -> None:
        """Take the class and the name of its method."""
        self.owner, self.name = owner, name

    def __get__(self, instance: object, kind: Class | None = None) -> Any:
        """Return the method, which has taken the place of this one."""
        if vars(self.owner)[self.name] is self:
            setattr(self.owner, self.name, _compiled(self.owner, self.name))
        return vars(self.owner)[self.name].__get__(instance, kind)


def _compiled(owner: Class, name: str) -> Any:
    """Return a method as the standard decorator makes it for a class with the same fields."""
    fields = dataclasses.fields(owner)
    body: dict[str, Any] = {field.name: field for field in fields}
    body["__annotations__"] = {field.name: field.type for field in fields}
    special_names = ("__module__", "__qualname__", "__doc__", "__post_init__")
    body |= {attribute: getattr(owner, attribute) for attribute in special_names if hasattr(owner, attribute)}
    make: Any = dataclasses.dataclass
    return vars(make(**{**NO_METHODS, **OPTIONS[name]})(type(owner.__name__, (), body)))[name]


def _frozen(cls: Class) -> Class:
    """Make a class a frozen dataclass with slots."""
    attributes = vars(cls)
    defined_names = {name for name in attributes if name != "__hash__" or attributes[name] is not None}
    frozen: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    # Subclasses must be frozen as well; the standard decorator looks here.
    frozen.__dataclass_params__.frozen = True
    methods = {name: DeferredMethod(frozen, name) for name in OPTIONS} | _guards(frozen)
    for name, method in methods.items():
        if name not in defined_names:
            setattr(frozen, name, method)
    decorated: Class = frozen
    return decorated


def _guards(owner: Class) -> dict[str, Callable[..., Any]]:
    """Return the methods that keep the fields of instances as they are, and those that pickle them."""
    names = [field.name for field in dataclasses.fields(owner)]

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is owner or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is owner or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    def state(self: object) -> list[object]:
        return [getattr(self, name) for name in names]

    def set_state(self: object, values: list[object]) -> None:
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    return {
        "__setattr__": set_attribute,
        "__delattr__": delete_attribute,
        "__getstate__": state,
        "__setstate__": set_state,
    }


def _decorator(cls: Class | None = None, /, **options: bool) -> Any:
    """Do what the standard decorator does; defer what it compiles for a frozen class with slots."""
    standard: Any = dataclasses.dataclass
    if options != {"frozen": True, "slots": True}:
        return standard(cls, **options)
    return lambda cls: (standard(**options) if dataclasses.is_dataclass(cls) else _frozen)(cls)


if not TYPE_CHECKING:
    dataclass = _decorator
