"""The calendar words of other languages than English: days, weeks, months and years, but no positions."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from conspectus.time_expressions.vocabulary import (
    DAY,
    CalendarUnit,
    Language,
    Relation,
    number_words,
    phrases_of,
    words_of,
)


class CalendarLanguage(Language):
    """A language with some tables of its own; the others are empty.

    `evidence` are words of no other language here, as `hier` is yesterday in French only. `unmistakable` are
    days and months that are neither names nor words of other languages, so that no evidence is needed.
    """

    def __init__(
        self, relations: Mapping[Relation, str], evidence: str, unmistakable: str, **tables: Any
    ) -> None:
        for name, table in vars(Language).items():
            if not name.startswith("_"):
                empty = MappingProxyType({}) if isinstance(table, Mapping) else type(table)()
                setattr(self, name, tables.get(name, empty))
        self.relations = phrases_of(relations)
        self.prepositions = MappingProxyType(
            {words[0]: meaning for words, meaning in self.relations.items() if len(words) == 1}
        )
        self.relation_openers = frozenset(words[0] for words in self.relations)
        self.evidence = words_of(evidence)
        self.unmistakable = words_of(unmistakable)
        self.empties = self.evidence | self.articles
        self.openers = self.relation_openers.union(
            self.articles, self.these, self.latest, self.period_offsets, self.numbers, self.days,
            self.weekdays, self.months, self.units, self.calendar_units, self.ago,
        )  # fmt: skip


def _offsets(last: str, this: str, following: str) -> dict[str, int]:
    return {
        word: offset for offset, words in ((-1, last), (0, this), (1, following)) for word in words.split()
    }


def _units(
    week: str, weekend: str, month: str, year: str
) -> tuple[dict[str, CalendarUnit], dict[str, float]]:
    """Return the calendar units by word, and the words of weeks as a length."""
    names: tuple[tuple[CalendarUnit, str], ...] = (
        ("week", week), ("weekend", weekend), ("month", month), ("year", year),
    )  # fmt: skip
    calendar_units = {word: unit for unit, words in names for word in words.split()}
    return calendar_units, dict.fromkeys(week.split(), 7 * DAY)


_GERMAN_UNITS, _GERMAN_WEEKS = _units(
    "woche wochen", "wochenende", "monat monats monate monaten", "jahr jahres jahre jahren"
)
GERMAN: Final = CalendarLanguage(
    {
        "in": "im/in/in der/in dem/während", "on": "am/an/an dem", "since": "seit/ab", "until": "bis",
        "after": "nach",
    },
    evidence="was wer wann wo wie warum wir ich ist war sind waren wurde wurden hat haben hatte der das und "
    "nicht gab passierte passiert geschah über mit von im am seit",
    unmistakable="heute gestern vorgestern januar jänner februar oktober dezember",
    numbers=number_words(
        "null ein/eine/einem/einer/einen zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
    ),
    articles=words_of("der die das den dem des"),
    ago=words_of("vor"),
    of=words_of("."),
    these=words_of("diese diesen diesem dieser dieses letzte letzten letztem letzter letztes"),
    latest=words_of("letzte letzten letztem letzter letztes vorige vorigen vergangene vergangenen"),
    days={"heute": 0, "gestern": -1, "vorgestern": -2},
    weekdays=number_words("montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag"),
    months=number_words(
        "januar/jänner februar märz/maerz april mai juni juli august september oktober november dezember", 1
    ),
    period_offsets=_offsets(
        "letzte letzten letztem letzter letztes vorige vorigen voriges vergangene vergangenen vergangenes",
        "diese diesen diesem dieser dieses", "nächste nächsten nächstem nächster nächstes",
    ),
    calendar_units=_GERMAN_UNITS,
    units=_GERMAN_WEEKS | dict.fromkeys(["tag", "tage", "tagen"], DAY),
    before_amounts=(("vor",),),
    unread_periods=words_of(
        "minute minuten stunde stunden tag tage tagen woche wochen wochenende monat monate monaten quartal "
        "quartale quartalen jahr jahre jahren jahrzehnt jahrzehnte jahrzehnten jahrhundert jahrhunderte "
        "jahrhunderten frühling frühjahr sommer herbst winter weihnachten ostern silvester morgen "
        "vormittag nachmittag abend nacht"
    ),
    singular=words_of("tag woche"),
)  # fmt: skip
_FRENCH_UNITS, _FRENCH_WEEKS = _units("semaine semaines", "weekend", "mois", "an ans année années")
FRENCH: Final = CalendarLanguage(
    {
        "in": "en/pendant/durant/au mois de/au cours de", "since": "depuis", "until": "jusqu'à/jusqu'en",
        "before": "avant", "after": "après", "on": "le",
    },
    evidence="qui que quoi quand où est sont était avons avez ont nous je il elle dit le la les une été pas "
    "avec dans qu'est s'est qu'avons pourquoi comment",
    unmistakable="aujourd'hui avant-hier janvier février fevrier juillet août septembre octobre décembre",
    numbers=number_words("zéro un/une deux trois quatre cinq six sept huit neuf dix onze douze"),
    articles=words_of("le la les ce cet cette"),
    ordinal_endings=words_of("er"),
    these=words_of("ce cette dernier dernière"),
    latest=words_of("dernier dernière derniers dernières"),
    days={"aujourd'hui": 0, "hier": -1, "avant-hier": -2},
    weekdays=number_words("lundi mardi mercredi jeudi vendredi samedi dimanche"),
    months=number_words(
        "janvier février/fevrier mars avril mai juin juillet août/aout septembre octobre novembre "
        "décembre/decembre", 1,
    ),
    period_offsets=_offsets(
        "dernier dernière derniere passé passée", "ce cet cette", "prochain prochaine"
    ),
    calendar_units=_FRENCH_UNITS,
    units=_FRENCH_WEEKS | dict.fromkeys(["jour", "jours"], DAY),
    before_amounts=(("il", "y", "a"),),
    unread_periods=words_of(
        "minute minutes heure heures jour jours semaine semaines weekend mois trimestre trimestres an ans "
        "année années décennie décennies siècle siècles printemps été automne hiver noël pâques matin "
        "après-midi soir nuit"
    ),
    singular=words_of("jour semaine"),
)  # fmt: skip
_SPANISH_UNITS, _SPANISH_WEEKS = _units("semana semanas", "finde", "mes meses", "año años")
SPANISH: Final = CalendarLanguage(
    {"in": "en/durante", "since": "desde/desde el", "until": "hasta/hasta el", "before": "antes de/antes del",
     "after": "después de/después del", "on": "el"},
    evidence="qué que quién cuándo dónde cómo por es fue son era hemos ha han nos yo el los las una no con "
    "sobre pasó dijo hizo en hace",
    unmistakable="ayer anteayer enero febrero septiembre setiembre octubre noviembre diciembre",
    numbers=number_words("cero un/una/uno dos tres cuatro cinco seis siete ocho nueve diez once doce"),
    articles=words_of("el la los las este esta"),
    ago=words_of("hace"),
    of=words_of("de"),
    these=words_of("este esta"),
    latest=words_of("último última últimos últimas"),
    days={"hoy": 0, "ayer": -1, "anteayer": -2},
    weekdays=number_words("lunes martes miércoles/miercoles jueves viernes sábado/sabado domingo"),
    months=number_words(
        "enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre "
        "diciembre", 1,
    ),
    period_offsets=_offsets(
        "pasado pasada último última", "este esta", "próximo próxima proximo proxima"
    ),
    calendar_units=_SPANISH_UNITS,
    units=_SPANISH_WEEKS | dict.fromkeys(["día", "días", "dia", "dias"], DAY),
    before_amounts=(("hace",),),
    unread_periods=words_of(
        "minuto minutos hora horas día días dia dias semana semanas finde mes meses trimestre trimestres año "
        "años década décadas siglo siglos primavera verano otoño invierno navidad pascua mañana tarde noche"
    ),
    singular=words_of("día semana"),
)  # fmt: skip
OTHER_LANGUAGES: Final = (GERMAN, FRENCH, SPANISH)
"""Tried in this order for queries in which English names no time."""
