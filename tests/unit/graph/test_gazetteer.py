import pytest
from benchmarks.entities import acronyms

from conspectus.graph.gazetteer import Gazetteer


def find_names(gazetteer, text):
    return [(text[match.start : match.end], match.spelling.names) for match in gazetteer.find(text)]


def test_nothing_known_is_nothing_found():
    assert Gazetteer({}).find("Ann") == []
    assert len(Gazetteer({"x": ["", "  ", "!?", "a" * 500]})) == 0


@pytest.mark.parametrize("text", ["start", "arty", "cart", "art_gallery", "smart-ish", "\u03b1art"])
def test_a_name_is_never_part_of_a_word(text):
    assert find_names(Gazetteer({"art": ["art"]}), text) == []


@pytest.mark.parametrize("text", ["art", "Art", "ART", "(art)", "art-house", "arts"])
def test_a_common_thing_is_found_in_any_case_and_in_the_plural(text):
    assert len(find_names(Gazetteer({"art": ["art"]}), text)) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Python", "i use python daily"),
        ("Redis", "redis is down again"),
        ("API", "the api"),
        ("Hope", "hope"),
    ],
)
def test_an_exact_name_is_found_in_any_case(name, text):
    assert len(find_names(Gazetteer({"node": [name]}), text)) == 1


@pytest.mark.parametrize("name", ["Will", "May", "WHO", "IT", "Us"])
def test_a_function_word_is_no_name(name):
    assert find_names(Gazetteer({"node": [name]}), f"so {name.lower()} it be") == []


def test_a_person_whose_name_is_also_a_common_word_needs_the_capital():
    gazetteer = Gazetteer({"hope": ["Hope"]}, {"hope": "person"})
    assert [name for name, _ in find_names(gazetteer, "I hope that Hope is here. HOPE!")] == ["Hope", "HOPE"]


def test_an_acronym_needs_its_capitals():
    gazetteer = Gazetteer({"who": ["WHO"]})
    assert [name for name, _ in find_names(gazetteer, "who said WHO or Who?")] == ["WHO"]


@pytest.mark.parametrize(
    "written", ["New York City", "new york city", "NEW YORK CITY", "New York\nCity", "New-York City"]
)
def test_names_of_several_words_are_found_however_they_are_joined(written):
    assert find_names(Gazetteer({"nyc": ["New York City"]}), f"in {written}, then") == [(written, ("nyc",))]


@pytest.mark.parametrize(
    "text",
    [
        "New York. City",
        "New York\n\nCity",
        "New York .\nCity",
        "New. York; City",
        "New York, City",
        "new york (city)",
    ],
)
def test_a_name_does_not_go_over_other_marks(text):
    assert find_names(Gazetteer({"nyc": ["New York City"]}), text) == []


def test_the_longest_name_wins_and_the_next_begins_after_it():
    gazetteer = Gazetteer({"ny": ["New York"], "nyc": ["New York City"], "city": ["city hall"]})
    assert [names for _, names in find_names(gazetteer, "new york city hall")] == [("nyc",)]


def test_an_article_is_no_part_of_a_name_unless_the_rest_is_a_common_word():
    gazetteer = Gazetteer({"beatles": ["The Beatles"], "voice": ["The Voice"]})
    assert [name for name, _ in find_names(gazetteer, "the Beatles, a song, The Voice")] == [
        "Beatles",
        "The Voice",
    ]


@pytest.mark.parametrize("text", ["McDonald's", "mcdonald\u2019s", "McDonalds"])
def test_apostrophes_may_be_left_out(text):
    assert find_names(Gazetteer({"mc": ["McDonald's"]}), f"at {text} now")[0][1] == ("mc",)


def test_marks_that_tell_names_apart_have_to_be_there():
    gazetteer = Gazetteer({"c": ["C"], "c++": ["C++"], "att": ["AT&T"]})
    assert find_names(gazetteer, "C++ and C, AT&T not AT T") == [
        ("C++", ("c++",)),
        ("C", ("c",)),
        ("AT&T", ("att",)),
    ]


def test_a_thing_is_not_found_where_it_is_a_verb():
    gazetteer = Gazetteer({"love": ["love"], "cook": ["cook"]})
    assert [name for name, _ in find_names(gazetteer, "I love to cook. Love is all; the cook agrees")] == [
        "Love",
        "cook",
    ]


def test_one_spelling_of_several_names_gives_them_all():
    assert find_names(Gazetteer({"uk": ["London"], "ca": ["London"]}), "London") == [("London", ("uk", "ca"))]


def test_words_that_are_to_be_skipped_are():
    assert find_names(Gazetteer({"it": ["it"], "food": ["food"]}, skip={"it", "food"}), "it is food") == []


def test_initials_are_those_of_one_name_only():
    names = {"w": "World Health Organization", "a": "Big Cat", "b": "Blue Car", "one": "Paris"}
    assert acronyms(names) == {"WHO": "w"}
