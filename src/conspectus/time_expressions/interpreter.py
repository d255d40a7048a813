"""Interpreter of grammar tables: parsing expression grammars over the tokens of a query.

A rule has one or more rows; the first row that matches at a token gives its value. A pattern is a sequence of

    name            a rule, or else a word class: a table of the vocabulary. A class that maps words has their
                    meaning as value; one that maps tuples of words matches several tokens
    name(a b)       a word class, if the meaning is one of these
    'word'          this word
    CLOCK           a kind of token (see _TOKEN_CLASSES), or a border such as END, which has no length
    ^name           the letters directly after the number before are in the word class
    <name           the token before is of this word class or kind
    @name           the guard of this name, a condition on the captures so far, holds
    (a | b)         alternatives, tried in order
    x?  !x  &x      optional; not followed by; followed by, without consuming it
    key=x           capture the value of x under a key; None if an optional x is absent

`build` makes the value of a row from a context and the captures; without it, the value is the first capture,
or that of the last element. A row whose value is None does not match. Values are remembered by rule and
token, so the time is linear in the length of a query.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from conspectus.deferred import dataclass
from conspectus.time_expressions.tokens import Token, TokenKind
from conspectus.time_expressions.vocabulary import Language

Match = tuple[Any, int] | None
"""The value of what was read, and the position after it."""
Captures = dict[str, Any]
Matcher = Callable[["Parse", int, Captures], Match]
Guard = Callable[[Any, Captures], bool]

_ELEMENT: Final = re.compile(
    r"\s*(?:(?P<key>\w+)=)?(?P<prefix>[!&]?)(?:(?P<open>\()|(?P<atom>'[^']+'|[\^<@]?\w+(?:\([\w ]+\))?))"
)
_ATOM: Final = re.compile(r"(?P<mark>[\^<@]?)(?P<name>\w+)(?:\((?P<meanings>[\w ]+)\))?")


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of a grammar: what a pattern at a token means."""

    name: str
    pattern: str
    build: Callable[..., Any] | None = None


_TOKEN_CLASSES: Final[Mapping[str, tuple[TokenKind, Callable[[Token], bool]]]] = {
    "CLOCK": ("clock", lambda token: True),
    "BARE_CLOCK": ("clock", lambda token: not token.ending),
    "LONG_CLOCK": ("clock", lambda token: token.text.count(":") == 2),
    "COMPACT": ("amount", lambda token: True),
    "DASH": ("dash", lambda token: True),
    "DATE": ("date", lambda token: True),
    "NUMBER": ("number", lambda token: True),
    "DIGITS": ("number", lambda token: not token.ending),
}
"""Kinds of tokens with a condition; the value is the text. Nothing adjoins BARE_CLOCK and DIGITS."""

_BORDER: Final = Token("mark", "", "", 0, 0)
"""Stands before the first token and after the last one."""


@dataclass(frozen=True, slots=True)
class _Openings:
    """How a pattern may begin: with words, with kinds of tokens, or with any token."""

    words: frozenset[str] = frozenset()
    kinds: frozenset[TokenKind] = frozenset()
    unlimited: bool = False

    def allow(self, token: Token) -> bool:
        """Return whether a pattern may begin at a token."""
        return self.unlimited or token.text in self.words or token.kind in self.kinds


_ANYWHERE: Final = _Openings(unlimited=True)


def _join(alternatives: Iterable[_Openings]) -> _Openings:
    every = tuple(alternatives)
    return _Openings(
        frozenset[str]().union(*(openings.words for openings in every)),
        frozenset[TokenKind]().union(*(openings.kinds for openings in every)),
        any(openings.unlimited for openings in every),
    )


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A compiled pattern. `openings` are computed when they are needed, as rules may refer to themselves."""

    match: Matcher
    openings: Callable[[], _Openings]


@dataclass(frozen=True, slots=True)
class _Row:
    """A compiled row, and how its pattern may begin."""

    openings: _Openings
    match: Matcher
    build: Callable[..., Any] | None


@dataclass(frozen=True, slots=True)
class _CompiledRule:
    """The rows of a rule, and how they may begin."""

    openings: _Openings
    rows: Sequence[_Row]


class Grammar:
    """The rows of a grammar, compiled for a language as its rules are used."""

    def __init__(self, rows: Sequence[Rule], guards: Mapping[str, Guard], language: Language) -> None:
        self.language = language
        self._guards = guards
        self._rows: dict[str, list[Rule]] = {}
        for row in rows:
            self._rows.setdefault(row.name, []).append(row)
        self._rules: dict[str, _CompiledRule] = {}

    @property
    def names(self) -> Sequence[str]:
        """The names of the rules."""
        return tuple(self._rows)

    def rule(self, name: str) -> _CompiledRule:
        """Return a compiled rule."""
        rule = self._rules.get(name)
        if rule is None:
            patterns = [self._compile(row.pattern) for row in self._rows[name]]
            rows = [
                _Row(pattern.openings(), pattern.match, row.build)
                for pattern, row in zip(patterns, self._rows[name], strict=True)
            ]
            rule = self._rules[name] = _CompiledRule(_join(row.openings for row in rows), rows)
        return rule

    def _compile(self, text: str) -> _Pattern:
        pattern, end = self._alternatives(text, 0)
        if text[end:].strip():
            raise ValueError(f"{text!r}: cannot be read from character {end} on")
        return pattern

    def _alternatives(self, text: str, start: int) -> tuple[_Pattern, int]:
        sequences: list[_Pattern] = []
        while True:
            pattern, start = self._sequence(text, start)
            sequences.append(pattern)
            if text[start : start + 1] != "|":
                return (sequences[0] if len(sequences) == 1 else _first_of(sequences)), start
            start += 1

    def _sequence(self, text: str, start: int) -> tuple[_Pattern, int]:
        elements: list[tuple[str | None, _Pattern]] = []
        while (match := _ELEMENT.match(text, start)) is not None:
            start = match.end()
            if match["open"]:
                pattern, start = self._alternatives(text, start)
                if text[start : start + 1] != ")":
                    raise ValueError(f"{text!r}: cannot be read: `)` is missing at {start}")
                start += 1
            else:
                pattern = self._atom(match["atom"])
            if text[start : start + 1] == "?":
                pattern, start = _optional(pattern), start + 1
            if match["prefix"]:
                pattern = _match_before(pattern) if match["prefix"] == "&" else _not_followed_by(pattern)
            elements.append((match["key"], pattern))
        while text[start : start + 1].isspace():
            start += 1
        return _in_sequence(elements), start

    def _atom(self, text: str) -> _Pattern:
        if text.startswith("'"):
            return _word_of({(text.strip("'"),): True})
        match = _ATOM.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not an element of a pattern")
        mark, name = match["mark"], match["name"]
        if mark == "@":
            return _match_guard(self._guards[name])
        if mark == "^":
            return _match_ending(getattr(self.language, name))
        if mark == "<":
            return _behind(name) if name in _TOKEN_CLASSES else _match_after_word(self._words(match))
        if name in self._rows:
            return _Pattern(
                lambda parse, index, captures: parse.read(name, index), lambda: self.rule(name).openings
            )
        if name in _BORDERS:
            return _Pattern(_BORDERS[name], lambda: _ANYWHERE)
        return _match_token(name) if name in _TOKEN_CLASSES else _word_of(self._words(match))

    def _words(self, match: re.Match[str]) -> Mapping[tuple[str, ...], Any]:
        """Return a word class as a mapping of tuples of words to meanings."""
        words = getattr(self.language, match["name"])
        meanings = words if isinstance(words, Mapping) else dict.fromkeys(words, True)
        selected = match["meanings"].split() if match["meanings"] else None
        return {
            phrase if isinstance(phrase, tuple) else (phrase,): meaning
            for phrase, meaning in meanings.items()
            if selected is None or meaning in selected
        }


class Parse:
    """One reading of the tokens of a query with a grammar. `context` is the first argument of builders."""

    def __init__(self, grammar: Grammar, tokens: Sequence[Token], context: Any) -> None:
        self.grammar = grammar
        self.tokens = [*tokens, _BORDER]
        self.words = [token.text for token in self.tokens]
        self.context = context
        self._matches: dict[tuple[str, int], Match] = {}

    def read(self, name: str, index: int) -> Match:
        """Return the value of a rule at a token, and the position after it; None if no row matches."""
        rule = self.grammar.rule(name)
        if not rule.openings.allow(self.tokens[index]):
            return None
        key = (name, index)
        if key not in self._matches:
            self._matches[key] = self._first_row(rule, index)
        return self._matches[key]

    def _first_row(self, rule: _CompiledRule, index: int) -> Match:
        token = self.tokens[index]
        for row in rule.rows:
            if not row.openings.allow(token):
                continue
            captures: Captures = {}
            match = row.match(self, index, captures)
            if match is None:
                continue
            if row.build is None:
                return next(iter(captures.values()), match[0]), match[1]
            value = row.build(self.context, **captures)
            if value is not None:
                return value, match[1]
        return None


def _in_sequence(elements: Sequence[tuple[str | None, _Pattern]]) -> _Pattern:
    if len(elements) == 1 and elements[0][0] is None:
        return elements[0][1]
    matchers = [(key, pattern.match) for key, pattern in elements]

    def match_all(parse: Parse, index: int, captures: Captures) -> Match:
        value = None
        for key, matcher in matchers:
            match = matcher(parse, index, captures)
            if match is None:
                return None
            value, index = match
            if key is not None:
                captures[key] = value
        return value, index

    return _Pattern(match_all, lambda: _openings_of_sequence([pattern for _, pattern in elements]))


def _openings_of_sequence(patterns: Sequence[_Pattern]) -> _Openings:
    """Return the openings of the elements until the first that limits the token."""
    words, kinds = frozenset[str](), frozenset[TokenKind]()
    for pattern in patterns:
        openings = pattern.openings()
        words, kinds = words | openings.words, kinds | openings.kinds
        if not openings.unlimited:
            return _Openings(words, kinds)
    return _ANYWHERE


def _first_of(sequences: Sequence[_Pattern]) -> _Pattern:
    matchers = [pattern.match for pattern in sequences]

    def match_first(parse: Parse, index: int, captures: Captures) -> Match:
        for matcher in matchers:
            attempt = dict(captures)
            match = matcher(parse, index, attempt)
            if match is not None:
                captures.update(attempt)
                return match
        return None

    return _Pattern(match_first, lambda: _join(pattern.openings() for pattern in sequences))


def _optional(pattern: _Pattern) -> _Pattern:
    matcher = pattern.match
    return _Pattern(
        lambda parse, index, captures: matcher(parse, index, captures) or (None, index),
        lambda: _join([pattern.openings(), _ANYWHERE]),
    )


def _match_before(pattern: _Pattern) -> _Pattern:
    def look_ahead(parse: Parse, index: int, captures: Captures) -> Match:
        match = pattern.match(parse, index, captures)
        return None if match is None else (match[0], index)

    return _Pattern(look_ahead, pattern.openings)


def _not_followed_by(pattern: _Pattern) -> _Pattern:
    matcher = pattern.match
    return _Pattern(
        lambda parse, index, captures: None if matcher(parse, index, captures) else (True, index),
        lambda: _ANYWHERE,
    )


def _match_guard(guard: Guard) -> _Pattern:
    return _Pattern(
        lambda parse, index, captures: (True, index) if guard(parse.context, captures) else None,
        lambda: _ANYWHERE,
    )


def _word_of(meanings: Mapping[tuple[str, ...], Any]) -> _Pattern:
    words = {phrase[0]: meaning for phrase, meaning in meanings.items() if len(phrase) == 1}
    phrases = sorted((phrase for phrase in meanings if len(phrase) > 1), key=len, reverse=True)
    phrase_openers = frozenset(phrase[0] for phrase in phrases)

    def match_word(parse: Parse, index: int, captures: Captures) -> Match:
        word = parse.words[index]
        if word in phrase_openers:
            for phrase in phrases:
                end = index + len(phrase)
                if tuple(parse.words[index:end]) == phrase:
                    return meanings[phrase], end
        return (words[word], index + 1) if word in words else None

    return _Pattern(match_word, lambda: _Openings(phrase_openers.union(words)))


def _match_after_word(meanings: Mapping[tuple[str, ...], Any]) -> _Pattern:
    return _Pattern(
        lambda parse, index, captures: (True, index) if (parse.words[index - 1],) in meanings else None,
        lambda: _ANYWHERE,
    )


def _match_ending(words: Any) -> _Pattern:
    meanings = words if isinstance(words, Mapping) else dict.fromkeys(words, True)

    def match_ending(parse: Parse, index: int, captures: Captures) -> Match:
        ending = parse.tokens[index - 1].ending
        return (meanings[ending], index) if ending in meanings else None

    return _Pattern(match_ending, lambda: _ANYWHERE)


def _match_token(name: str) -> _Pattern:
    kind, accepts = _TOKEN_CLASSES[name]

    def match_token(parse: Parse, index: int, captures: Captures) -> Match:
        token = parse.tokens[index]
        return (token.text, index + 1) if token.kind == kind and accepts(token) else None

    return _Pattern(match_token, lambda: _Openings(kinds=frozenset({kind})))


def _behind(name: str) -> _Pattern:
    kind, accepts = _TOKEN_CLASSES[name]

    def look_behind(parse: Parse, index: int, captures: Captures) -> Match:
        token = parse.tokens[index - 1]
        return (True, index) if token.kind == kind and accepts(token) else None

    return _Pattern(look_behind, lambda: _ANYWHERE)


def _clause_end(parse: Parse, index: int, captures: Captures) -> Match:
    return (True, index) if parse.tokens[index].kind == "mark" else None


def _first_content(parse: Parse, index: int, captures: Captures) -> Match:
    return (True, index) if all(token.kind == "mark" for token in parse.tokens[:index]) else None


def _last_content(parse: Parse, index: int, captures: Captures) -> Match:
    return (True, index) if all(token.kind == "mark" for token in parse.tokens[index:]) else None


_BORDERS: Final[Mapping[str, Matcher]] = {
    "END": _clause_end,
    "FIRST": _first_content,
    "LAST": _last_content,
}
"""Borders: the end of a clause, no content before, and no content after."""
