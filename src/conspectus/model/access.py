"""Who asks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Person:
    """Someone the engine answers. The owner of an embedded store without accounts may see everything."""

    name: str
    owner: bool = False


LOCAL_OWNER = Person(name="local", owner=True)
