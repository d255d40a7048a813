"""The calls of DokuWiki's XML-RPC interface that a connector sends, and which pages its rules concern."""

import base64
import xmlrpc.client
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.parsers.expat import ExpatError

from conspectus.connectors import Fetcher
from conspectus.errors import FetchFailed, NotFound

MISSING_PAGE: Final = 121
BUSY: Final = frozenset({429, 500, 502, 503, 504})
READ: Final = 1
"""The lowest level of rights that lets somebody read."""
ALL_BELOW: Final = "*"


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page of a listing: its id, such as `team:plan`, and a digest of its text."""

    id: str
    digest: str


@dataclass(frozen=True, slots=True)
class PageRules:
    """The scopes that the rules of a wiki name: pages, and namespaces with all that is below them."""

    scopes: frozenset[str]

    def chain_of(self, page: str) -> tuple[str, ...] | None:
        """Return the scopes that concern a page. Pages of one chain are read by the same people.

        None if a scope names its reader (`%USER%`), so that nobody else can ask for it.
        """
        candidates = (page, *_namespaces_above(page))
        if any(_may_match(scope, candidate) for scope in self.scopes for candidate in candidates):
            return None
        return tuple(candidate for candidate in candidates if candidate in self.scopes)


class DokuWiki:
    """A wiki, asked as one user. `address` is that of `xmlrpc.php`.

    Versions differ in how they tell an error: as a fault, or as an answer without members.
    """

    def __init__(self, fetcher: Fetcher, address: str, user: str, password: str) -> None:
        self._fetcher = fetcher
        self._address = address
        self._user = user
        self._password = password
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {pair}", "Content-Type": "text/xml"}

    async def list_pages(self, namespace: str) -> list[WikiPage]:
        """Return all pages of a namespace and those below that the user may read."""
        rows = await self._call("dokuwiki.getPagelist", namespace, {"depth": 0, "hash": True})
        await self._require_sign_in()
        if not isinstance(rows, list):
            raise FetchFailed(self._address, "lists no pages")
        return [WikiPage(str(row["id"]), str(row["hash"])) for row in rows]

    async def _require_sign_in(self) -> None:
        """Raise FetchFailed for a wrong password: the wiki would answer as it does to visitors."""
        if await self._call("dokuwiki.login", self._user, self._password) is not True:
            raise FetchFailed(self._address, "refused the login", status=401)

    async def read_page(self, page: str) -> str:
        """Return the source of a page. Raises NotFound if there is none."""
        information = await self._call("wiki.getPageInfo", page)
        if not information:  # The text of a page that is missing would be that of a template.
            raise NotFound("page", page)
        return str(await self._call("wiki.getPage", page))

    async def list_rules(self) -> PageRules:
        """Return the scopes of all rules. Raises FetchFailed unless the user is a superuser."""
        rules = await self._call("plugin.acl.listAcls")
        if not isinstance(rules, dict) or not rules:
            raise FetchFailed(self._address, "lists no rules; is access control on (useacl)?")
        return PageRules(frozenset(map(str, rules)))

    async def list_readers(self, pages: Sequence[str], users: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return who of the users may read each page, as the wiki itself answers."""
        return {page: tuple([user for user in users if await self._may_read(page, user)]) for page in pages}

    async def _may_read(self, page: str, user: str) -> bool:
        """Return whether the wiki lets a user read a page, with the groups that it knows of the user."""
        level = await self._call("wiki.aclCheck", page, user)
        return isinstance(level, int) and level >= READ

    async def _call(self, method: str, *parameters: Any) -> Any:
        body = xmlrpc.client.dumps(parameters, method).encode()
        fetched = await self._fetcher.fetch(self._address, method="POST", headers=self._headers, body=body)
        if fetched.status != 200:
            reason = f"responded with HTTP {fetched.status}"
            is_passing = fetched.status in BUSY
            raise FetchFailed(self._address, reason, status=fetched.status, passing=is_passing)
        if b"<!" in fetched.body.partition(b"<methodResponse")[0]:
            raise FetchFailed(self._address, "declares entities, which is not safe to read")
        try:
            return xmlrpc.client.loads(fetched.body)[0][0]
        except xmlrpc.client.Fault as fault:
            if fault.faultCode == MISSING_PAGE:
                raise NotFound("page", str(parameters[0])) from fault
            raise FetchFailed(self._address, f"answered: {fault.faultString}") from fault
        except (ExpatError, ValueError, LookupError, TypeError) as fault:
            raise FetchFailed(self._address, f"answered in another format: {fault}") from fault


def viewers_by_page(
    pages: Sequence[str], rules: PageRules, readers: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the readers of each page: those of the page of its chain that was asked for."""
    examples = example_pages(pages, rules)
    chains = {page: rules.chain_of(page) for page in pages}
    return {page: () if chain is None else readers.get(examples[chain], ()) for page, chain in chains.items()}


def example_pages(pages: Sequence[str], rules: PageRules) -> dict[tuple[str, ...], str]:
    """Return a page of each chain of rules."""
    examples: dict[tuple[str, ...], str] = {}
    for page in pages:
        chain = rules.chain_of(page)
        if chain is not None:
            examples.setdefault(chain, page)
    return examples


def _namespaces_above(page: str) -> Iterator[str]:
    parts = page.split(":")[:-1]
    while parts:
        yield ":".join([*parts, ALL_BELOW])
        parts.pop()
    yield ALL_BELOW


def _may_match(scope: str, candidate: str) -> bool:
    """Whether a scope with the name of its reader may be that of a page or a namespace."""
    if "%" not in scope:
        return False
    beginning, _, rest = scope.partition("%")
    ending = rest.rpartition("%")[2]
    return candidate.startswith(beginning) and candidate.endswith(ending)
