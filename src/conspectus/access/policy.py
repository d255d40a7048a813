"""The only place that turns a person into a filter."""

from conspectus.model.access import Person
from conspectus.model.filter import EVERYTHING, And, Filter, Or


def visible(person: Person) -> Filter:
    """The filter of everything the person may see; nothing at all for someone without any grant."""
    return EVERYTHING if person.owner else Or()


def narrowed(person: Person, where: Filter) -> Filter:
    """What the person asked for, within what the person may see."""
    allowed = visible(person)
    return where if allowed == EVERYTHING else And((allowed, where))
