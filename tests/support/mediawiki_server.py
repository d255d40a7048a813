"""A wiki that speaks as much of MediaWiki's API as a reader needs: pages, revisions, logs, continuation.

    wiki = WikiSite()
    async with ScriptedServer({"/api.php": wiki.answer}) as server:
        await wiki.put("Main", "Page", "== Heading ==")

Titles are kept as they are written. As with the real one, a move keeps the page's id and makes a new
revision, a deletion leaves only an event of the log, and lists come in portions of `portion`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.support.web_server import Answer, Request

Fields = Mapping[str, Any]
FORMAT = "%Y-%m-%dT%H:%M:%SZ"
MAIN = "Main"
MAX_VALUES = 50


@dataclass(slots=True)
class WikiPage:
    """A page with the text of its newest revision."""

    id: int
    namespace: int
    title: str
    text: str
    revision: int

    @property
    def redirect(self) -> bool:
        """Whether the page only leads to another."""
        return self.text.upper().startswith("#REDIRECT")


@dataclass(slots=True)
class Namespace:
    """A namespace; names of the special ones differ by language."""

    id: int
    name: str
    content: bool = True
    subpages: bool = True

    def fields(self) -> Fields:
        """As `siteinfo` shows it."""
        names = {"name": self.name, "canonical": self.name}
        return {"id": self.id, "content": self.content, "subpages": self.subpages, **names}


def wall_clock() -> datetime:
    """The current instant."""
    return datetime.now(UTC)


@dataclass(slots=True)
class WikiSite:
    """The wiki and its server. `delays` are answers to give first, as a server does that is behind."""

    clock: Callable[[], datetime] = wall_clock
    portion: int = 2
    leaves_redirects: bool = True
    pages: dict[int, WikiPage] = field(default_factory=dict)
    namespaces: dict[int, Namespace] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    delays: list[Answer] = field(default_factory=list)
    numbers: int = 0

    def __post_init__(self) -> None:
        for special in (Namespace(0, ""), Namespace(1, "Talk", False), Namespace(6, "File", False)):
            self.namespaces[special.id] = special

    async def put(self, space: str, name: str, text: str) -> None:
        """Make or change a page; a namespace that is not known is made."""
        title, namespace = self._title(space, name), self._namespace(space)
        page = self._find(title)
        kind = "new" if page is None else "edit"
        if page is None:
            page = WikiPage(self._next(), namespace.id, title, text, 0)
            self.pages[page.id] = page
        page.text, page.revision = text, self._next()
        about = {"ns": page.namespace, "title": title, "pageid": page.id, "timestamp": self._now()}
        self.changes.append({"type": kind, "rcid": self._next(), "revid": page.revision, **about})

    async def delete(self, space: str, name: str) -> None:
        """Delete a page; only the log knows of it."""
        page = self._existing(space, name)
        del self.pages[page.id]
        self.changes = [change for change in self.changes if change["pageid"] != page.id]
        self._log("delete", page.title, page, {})

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        """Give a page another title, be it in another namespace; a redirect there makes way."""
        page = self._existing(space, name)
        old, there = page.title, self._namespace(to_space)
        target = {"target_ns": there.id, "target_title": self._title(to_space, to_name)}
        if replaced := self._find(str(target["target_title"])):
            del self.pages[replaced.id]
        self._log("move", old, page, target)
        if self.leaves_redirects:
            text = f"#REDIRECT [[{target['target_title']}]]"
            left = WikiPage(self._next(), page.namespace, old, text, self._next())
            self.pages[left.id] = left
        page.namespace, page.title = there.id, str(target["target_title"])
        page.revision = self._next()

    async def remove_space(self, space: str) -> None:
        """Take a namespace out of the settings, with its pages."""
        gone = self._namespace(space).id
        del self.namespaces[gone]
        self.pages = {id: page for id, page in self.pages.items() if page.namespace != gone}

    def answer(self, request: Request) -> Answer:
        """The answer to a request of `api.php`."""
        if self.delays:
            return self.delays.pop(0)
        parameters = request.query
        if parameters.get("action") != "query" or parameters.get("format") != "json":
            return _json({"error": {"code": "badvalue", "info": "only queries are understood"}})
        values = parameters.get("pageids", parameters.get("titles", "")).split("|")
        if len(values) > MAX_VALUES:
            return _json({"error": {"code": "toomanyvalues", "info": f"the limit is {MAX_VALUES}"}})
        answer: dict[str, Any] = {"batchcomplete": True, "query": {}}
        for name in self._asked_for(parameters):
            fields, following = self._questions()[name](parameters)
            answer["query"] |= fields
            if following:
                answer["continue"] = {**following, "continue": "-||"}
        return _json(answer)

    def _asked_for(self, parameters: Mapping[str, str]) -> set[str]:
        named = {parameters[name] for name in ("meta", "list", "generator") if name in parameters}
        named |= {"pages"} if {"pageids", "titles"} & parameters.keys() else set()
        return named & self._questions().keys()

    def _questions(self) -> Mapping[str, Callable[[Mapping[str, str]], tuple[Fields, Fields]]]:
        return {
            "siteinfo": self._site_info,
            "allpages": self._all_pages,
            "recentchanges": self._recent_changes,
            "logevents": self._log_events,
            "pages": self._some_pages,
        }

    def _site_info(self, parameters: Mapping[str, str]) -> tuple[Fields, Fields]:
        namespaces = {str(namespace.id): namespace.fields() for namespace in self.namespaces.values()}
        special = {"-1": {"id": -1, "name": "Special", "content": False}}
        return {"general": {"time": self._now()}, "namespaces": {**special, **namespaces}}, {}

    def _all_pages(self, parameters: Mapping[str, str]) -> tuple[Fields, Fields]:
        begin = parameters.get("gapcontinue", "")
        matching_pages = [
            page
            for page in sorted(self.pages.values(), key=lambda page: page.title)
            if page.namespace == int(parameters["gapnamespace"]) and page.title >= begin
            if not (page.redirect and parameters.get("gapfilterredir") == "nonredirects")
        ]
        some, rest = matching_pages[: self.portion], matching_pages[self.portion :]
        pages = [self._fields(page, parameters) for page in some]
        return {"pages": pages} if pages else {}, {"gapcontinue": rest[0].title} if rest else {}

    def _recent_changes(self, parameters: Mapping[str, str]) -> tuple[Fields, Fields]:
        namespaces = {int(number) for number in parameters["rcnamespace"].split("|")}
        kinds = set(parameters["rctype"].split("|"))
        rows = [change for change in self.changes if change["ns"] in namespaces and change["type"] in kinds]
        return self._portion("recentchanges", rows, parameters, "rc")

    def _log_events(self, parameters: Mapping[str, str]) -> tuple[Fields, Fields]:
        return self._portion("logevents", self.events, parameters, "le")

    def _portion(
        self, name: str, rows: Iterable[Fields], parameters: Mapping[str, str], prefix: str
    ) -> tuple[Fields, Fields]:
        """Rows from a time on, oldest first, as `dir=newer` asks for."""
        since = [row for row in rows if row["timestamp"] >= parameters[f"{prefix}start"]]
        begin = int(parameters.get(f"{prefix}continue", "0|0").partition("|")[2])
        some, rest = since[begin : begin + self.portion], since[begin + self.portion :]
        more = {f"{prefix}continue": f"{row['timestamp']}|{begin + self.portion}" for row in rest[:1]}
        return {name: some}, more

    def _some_pages(self, parameters: Mapping[str, str]) -> tuple[Fields, Fields]:
        pages = []
        for value in filter(None, parameters.get("pageids", "").split("|")):
            page = self.pages.get(int(value))
            pages.append(self._fields(page, parameters) if page else {"pageid": int(value), "missing": True})
        for title in filter(None, parameters.get("titles", "").split("|")):
            page = self._find(title)
            pages.append(
                self._fields(page, parameters) if page else {"ns": 0, "title": title, "missing": True}
            )
        return {"pages": pages}, {}

    def _fields(self, page: WikiPage, parameters: Mapping[str, str]) -> Fields:
        properties = parameters.get("prop", "").split("|")
        fields: dict[str, Any] = {"pageid": page.id, "ns": page.namespace, "title": page.title}
        if "info" in properties:
            address = f"https://wiki.example.org/wiki/{page.title}"
            fields |= {"lastrevid": page.revision, "fullurl": address}
            fields |= {"redirect": True} if page.redirect else {}
        if "revisions" in properties:
            slot = {"contentmodel": "wikitext", "content": page.text}
            fields["revisions"] = [{"revid": page.revision, "slots": {"main": slot}}]
        return fields

    def _log(self, kind: str, title: str, page: WikiPage, target: Fields) -> None:
        current = self._find(title)
        self.events.append(
            {
                "logid": self._next(),
                "type": kind,
                "action": kind,
                "ns": page.namespace,
                "title": title,
                "pageid": current.id if current else 0,
                "logpage": page.id,
                "params": dict(target),
                "timestamp": self._now(),
            }
        )

    def _namespace(self, space: str) -> Namespace:
        title = "" if space == MAIN else space
        for namespace in self.namespaces.values():
            if namespace.name == title:
                return namespace
        created = Namespace(100 + 2 * self._next(), title)
        self.namespaces[created.id] = created
        return created

    def _title(self, space: str, name: str) -> str:
        return name if space == MAIN else f"{space}:{name}"

    def _find(self, title: str) -> WikiPage | None:
        return next((page for page in self.pages.values() if page.title == title), None)

    def _existing(self, space: str, name: str) -> WikiPage:
        page = self._find(self._title(space, name))
        if page is None:
            raise KeyError(f"{space}:{name}")
        return page

    def _now(self) -> str:
        return self.clock().strftime(FORMAT)

    def _next(self) -> int:
        self.numbers += 1
        return self.numbers


def busy(*, retry_after: int = 5, status: int = 200) -> Answer:
    """What a wiki says whose copies are behind, or that is asked too often."""
    error = {"code": "maxlag", "info": "Waiting for a database server: 9 seconds lagged."}
    body = json.dumps({"error": error}).encode() if status == 200 else b"Too many requests"
    return Answer(body, status, "application/json", headers={"Retry-After": str(retry_after)})


def _json(fields: Fields) -> Answer:
    return Answer(json.dumps(fields).encode(), type="application/json")
