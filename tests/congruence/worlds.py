"""Documents, people and questions by chance, the same ones for every store."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from conspectus import Engine, NewDocument
from conspectus.model.access import SCOPES, Principal
from conspectus.model.filter import And, Between, Eq, Exists, Filter, In, Not, Or, Overlaps
from conspectus.model.ids import SourceId
from conspectus.model.records import Period

OWNER = "owner"
SOURCES = tuple(f"shelf{number}" for number in range(12))
KINDS = ("page", "page", "page", "message", "task")
COLOURS = ("red", "green", "blue", 'a "quoted" one', "grün")
START = datetime(2024, 1, 1, tzinfo=UTC)
BATCH = 500
Placed = tuple[str, NewDocument]


@dataclass(frozen=True, slots=True)
class Question:
    """A question of someone; `sources` are named here, since each store has ids of its own."""

    person: str
    text: str
    where: Filter
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class World:
    """What is stored, who may see what of it (None: the whole collection), and what is asked."""

    documents: Sequence[Placed]
    people: dict[str, tuple[str, ...] | None]
    questions: Sequence[Question]


@dataclass(frozen=True, slots=True)
class PopulatedStore:
    """A store with a world in it, as each of its people may use it."""

    engines: dict[str, Engine]
    sources: dict[str, SourceId]

    def condition(self, question: Question) -> Filter:
        """The filter of a question with the ids of this store."""
        named = In("source", tuple(self.sources[name] for name in question.sources))
        return And((question.where, named)) if question.sources else question.where


def world_of(texts: Sequence[NewDocument], questions: int, *, seed: int) -> World:
    """A world made of texts: each gets a place, a time and properties by chance."""
    chance = random.Random(seed)
    documents = [_random_document(chance, number, text) for number, text in enumerate(texts)]
    people: dict[str, tuple[str, ...] | None] = {"ann": None, OWNER: None}
    for number, name in enumerate(("bo", "cy", "di", "eve", "fay", "gus")):
        people[name] = tuple(chance.sample(SOURCES, 1 + 2 * number))
    return World(documents, people, [_random_question(chance, documents, people) for _ in range(questions)])


async def populate(engine: Engine, world: World) -> PopulatedStore:
    """Store a world, with the vectors of all its documents."""
    await engine.keys.create_first()
    for start in range(0, len(world.documents), BATCH):
        for name in SOURCES:
            documents = [
                document
                for source_name, document in world.documents[start : start + BATCH]
                if source_name == name
            ]
            await engine.add(documents, source=name)
    await engine.add([], wait=True)
    engines = {OWNER: engine}
    for name, seen in world.people.items():
        if name == OWNER:
            continue
        person = await engine.people.create_user(name)
        for source in (None,) if seen is None else seen:
            await engine.access.grant("default", Principal("user", person.id), "viewer", source=source)
        key = await engine.keys.create(name, scopes=SCOPES)
        engines[name] = engine.as_person(await engine.keys.authenticate(key.secret))
    sources = {source.name: source.id for source in await engine.collections.list_sources()}
    return PopulatedStore(engines, sources)


def _random_document(chance: random.Random, number: int, text: NewDocument) -> Placed:
    begun = START + timedelta(hours=chance.randrange(9_000))
    document = replace(
        text,
        key=str(number),
        kind=chance.choice(KINDS),
        author=chance.choice((None, "ann", "bo")),
        occurred=chance.choice((None, Period(begun, begun + timedelta(hours=chance.randrange(1, 200))))),
        metadata={
            "number": chance.randrange(1_000),
            "colour": chance.choice(COLOURS),
            "tags": chance.sample(COLOURS, chance.randrange(3)),
            **({"rare": True} if chance.random() < 0.002 else {}),
        },
    )
    return chance.choice(SOURCES), document


def _random_question(
    chance: random.Random, documents: Sequence[Placed], people: dict[str, object]
) -> Question:
    words = chance.choice(documents)[1].text.split() or ["nothing"]
    first = chance.randrange(len(words))
    text = " ".join(words[first : first + chance.randint(1, 9)])
    named = chance.random() < 0.3
    sources = tuple(chance.sample(SOURCES, chance.randint(1, 4))) if named else ()
    return Question(chance.choice(list(people)), text, _filter(chance, depth=2), sources)


def _filter(chance: random.Random, depth: int) -> Filter:
    if depth and chance.random() < 0.5:
        inner = tuple(_filter(chance, depth - 1) for _ in range(chance.randint(1, 2)))
        return chance.choice((And(inner), Or(inner), And((Not(inner[0]), *inner[1:]))))
    low = chance.randrange(1_000)
    since = START + timedelta(hours=chance.randrange(9_000))
    return chance.choice(
        (
            And(),
            And(),
            Eq("kind", chance.choice(KINDS)),
            Eq("author", chance.choice(("ann", "bo"))),
            Exists("author"),
            Eq(("colour",), chance.choice(COLOURS)),
            In(("tags",), tuple(chance.sample(COLOURS, 2))),
            Between(("number",), low, low + chance.choice((1, 10, 100, 500))),
            Overlaps(since, since + timedelta(hours=chance.randrange(2_000))),
            Exists(("rare",)),
        )
    )
