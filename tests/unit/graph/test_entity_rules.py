import pytest

from conspectus.graph.entity_rules import RuleExtractor, names_in, phrases, with_gazetteer
from conspectus.graph.gazetteer import Gazetteer


def list_names(text, **options):
    return [name.text for name in names_in(text, **options)]


def map_types(text):
    return {name.text: name.type for name in names_in(text)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        (" \n\t ", []),
        ("nothing is a name here.", []),
        ("He met Barack Obama in New York.", ["Barack Obama", "New York"]),
        ("After London she saw Paris.", ["London", "Paris"]),
        ("The University of California, Berkeley", ["University of California", "Berkeley"]),
        ("Ludwig van Beethoven's house", ["Ludwig van Beethoven"]),
        ("Then Bob and Alice left.", ["Bob", "Alice"]),
        (
            "by the Department of Housing and Urban Development",
            ["Department of Housing and Urban Development"],
        ),
        ("with Germany's Angela Merkel", ["Germany", "Angela Merkel"]),
        ("by J. K. Rowling and J.R.R. Tolkien", ["J. K. Rowling", "J.R.R. Tolkien"]),
        ("the World Health Organization (WHO) met", ["World Health Organization", "WHO"]),
        ("won the 2002 Winter Olympics", ["2002 Winter Olympics"]),
        ("In 2007 Grigorie left", ["2007", "Grigorie"]),
        ("a trip to St. Louis", ["St. Louis"]),
        ("at AT&T or O'Reilly", ["AT&T", "O'Reilly"]),
        ("from the U.S. Because of that", ["U.S."]),
        ("I think I am OK", []),
        ("Construction began. Many people came.", []),
        ("Schneider won. Then Schneider left.", ["Schneider", "Schneider"]),
        ("Élodie Durand and Łukasz from Kraków", ["Élodie Durand", "Łukasz", "Kraków"]),
    ],
)
def test_capitals_are_names_but_not_where_a_sentence_begins(text, names):
    assert list_names(text) == names


@pytest.mark.parametrize(
    "text",
    ["HOW TO WRITE THE BEST CODE EVER", "How To Build Your Own Website Today With This", "NOT MUST NEVER"],
)
def test_words_of_headlines_are_no_names(text):
    assert list_names(text) == []


def test_how_the_rest_of_a_text_writes_a_word_decides_at_the_start_of_a_sentence():
    assert list_names("Rimutaka is high. We love Rimutaka.") == ["Rimutaka", "Rimutaka"]
    assert list_names("Frobnication is hard, and frobnication hurts.") == []


def test_a_title_before_a_name_makes_it_a_person_and_is_no_part_of_it():
    assert map_types("Dr. Ann Smith and President Obama") == {"Ann Smith": "person", "Obama": "person"}


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("see https://example.com/a?b=c.", "https://example.com/a?b=c", "address"),
        ("to ann.smith@example.org, please", "ann.smith@example.org", "address"),
        ("at 192.168.0.1:80", "192.168.0.1:80", "address"),
        ("in ~/code/main.py", "~/code/main.py", "file"),
        ("the config.yaml file", "config.yaml", "file"),
        ("call os.path.join() now", "os.path.join()", "code"),
        ("set max_file_bytes to 1", "max_file_bytes", "code"),
        ("with getValue here", "getValue", "code"),
        ("run `make test` first", "make test", "code"),
        ("in v2.3 of it", "v2.3", "version"),
        ("since 1.2.3rc1 only", "1.2.3rc1", "version"),
        ("with Python 3.11 only", "3.11", "version"),
        ("on 13 March 1963 in", "13 March 1963", "date"),
        ("on April 6, 1936 in", "April 6, 1936", "date"),
        ("on 2024-02-29T10:00:00Z sharp", "2024-02-29T10:00:00Z", "date"),
        ("during the 1950s he", "the 1950s", "date"),
        ("it cost $4.86 million then", "$4.86 million", "number"),
        ("some 65 km away", "65 km", "number"),
        ("it grew 2.4% again", "2.4%", "number"),
        ('he read "The Old Man and the Sea" twice', "The Old Man and the Sea", "title"),
        ('so-called "dark matter" exists', "dark matter", "quoted"),
        ("ask @bob_smith there", "bob_smith", "person"),
        ("the Bank of England said", "Bank of England", "organisation"),
        ("at Lake Victoria now", "Lake Victoria", "place"),
    ],
)
def test_forms_have_their_types(text, name, kind):
    assert map_types(text).get(name) == kind


@pytest.mark.parametrize(
    "text", ["e.g. this, i.e. that", "and/or", "it ended.Next one", "well -- yes", '"Go," he said']
)
def test_what_only_looks_like_a_form_is_none(text):
    assert [
        name for name, kind in map_types(text).items() if kind in ("code", "file", "quoted", "title")
    ] == []


def test_plain_numbers_are_names_only_where_they_are_asked_for():
    assert list_names("three of 23,000 cats") == []
    assert list_names("three of 23,000 cats", with_numbers=True) == ["three", "23,000"]


def test_known_names_are_found_beside_the_others_and_the_longest_wins():
    gazetteer = Gazetteer({"sea": ["dead sea scrolls"], "paris": ["Paris"]}, {"paris": "place"})
    assert list_names("the dead sea scrolls in Paris Texas", gazetteer=gazetteer) == [
        "dead sea scrolls",
        "Paris Texas",
    ]
    assert names_in("to Paris", gazetteer)[0].type == "place"


def test_known_names_join_what_another_extractor_found():
    mentions = names_in("Ann likes ice hockey")
    assert [
        mention.text
        for mention in with_gazetteer("Ann likes ice hockey", mentions, Gazetteer({"h": ["ice hockey"]}))
    ] == [
        "Ann",
        "ice hockey",
    ]


def test_phrases_are_every_run_of_words_that_may_be_a_name():
    assert phrases("the red fox", maximum=2) == ["red", "red fox", "fox"]


async def test_the_extractor_answers_for_each_text_by_itself():
    extractor = RuleExtractor()
    texts = ["Rimutaka is high.", "We love Rimutaka.", ""]
    together = await extractor.extract(texts)
    assert together == [(await extractor.extract([text]))[0] for text in texts]
    assert extractor.name == "rules"
    await extractor.close()
