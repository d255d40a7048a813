"""The requests to Redmine's REST interface that a connector sends, as the reader or as somebody else."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from conspectus.connectors import Fetched, Fetcher
from conspectus.errors import FetchFailed, NotFound

PAGE_SIZE: Final = 100
"""The most rows that Redmine returns at once."""
COUNTED_AT_ONCE: Final = 500
"""Issues that one request asks for by their numbers: the address stays below 4,000 letters."""
BUSY: Final = frozenset({429, 500, 502, 503, 504})
LOCKED: Final = 412
"""The answer to a request in the name of somebody who is locked or gone."""
REFUSED: Final = frozenset({401, 403, 404})
OPEN_OR_CLOSED: Final = "1|5"
"""Projects that are not archived."""
VIEW_PRIVATE_NOTES: Final = "view_private_notes"


@dataclass(frozen=True, slots=True)
class Project:
    """A project: its number, its name in addresses, and the modules that it uses."""

    id: int
    identifier: str
    modules: frozenset[str]


@dataclass(frozen=True, slots=True)
class Member:
    """A person: their login, and their roles by the number of the project. `is_admin` needs none."""

    login: str
    is_admin: bool
    roles: Mapping[int, frozenset[int]]


class Redmine:
    """A Redmine, asked with the key of one user. An administrator may ask in the name of others.

    Redmine answers a wrong key as it does visitors, so `require_reader` belongs at the end of each listing.
    """

    def __init__(self, fetcher: Fetcher, address: str, key: str) -> None:
        self._fetcher = fetcher
        self._address = address.rstrip("/")
        self._key = key

    async def require_reader(self, *, is_admin: bool = False) -> None:
        """Raise FetchFailed unless the key is somebody's, or that of an administrator."""
        user = await self._get("/users/current.json", "user")
        if is_admin and user.get("admin") is not True:
            raise FetchFailed(self._address, "mirrors for an administrator's key alone", status=403)

    async def list_projects(self) -> list[Project]:
        """Return the projects that are not archived."""
        parameters = {"include": "enabled_modules", "status": OPEN_OR_CLOSED}
        return [
            Project(
                row["id"], row["identifier"], frozenset(module["name"] for module in row["enabled_modules"])
            )
            for row in await self._list_pages("/projects.json", "projects", parameters)
        ]

    async def iterate_issues(self, projects: Sequence[int]) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield pages of issues of projects (empty: all) by their numbers, so that none is left out."""
        fields = {"status_id": ("*", ()), "project_id": ("=", projects)}
        following = 0
        while True:
            filters = _filters({**fields, "issue_id": (">=", (following,))})
            path = f"/issues.json?{filters}&sort=id&limit={PAGE_SIZE}&include=attachments"
            issues: list[dict[str, Any]] = await self._get(path, "issues")
            if issues and issues[0]["id"] < following:
                raise FetchFailed(self._address, "continues without progress")
            yield issues
            if len(issues) < PAGE_SIZE:
                return
            following = issues[-1]["id"] + 1

    async def read_newest_time(self) -> str:
        """Return when the issue that was changed last was changed; an empty text if there is none."""
        issues = await self._get("/issues.json?status_id=*&sort=updated_on:desc&limit=1", "issues")
        return str(issues[0]["updated_on"]) if issues else ""

    async def read_issue(self, number: int) -> dict[str, Any]:
        """Return an issue with its notes and attachments. Raises NotFound if it is gone."""
        path = f"/issues/{number}.json?include=journals,attachments"
        issue: dict[str, Any] = await self._get(path, "issue")
        return issue

    async def list_wiki_pages(self, project: str) -> list[dict[str, Any]]:
        """Return the pages of a wiki without their texts; none if the reader may not see it."""
        fetched = await self._ask(wiki_index(project))
        if fetched.status in {403, 404}:
            return []
        pages: list[dict[str, Any]] = self._parse(self._check(fetched), "wiki_pages")["wiki_pages"]
        return pages

    async def read_wiki_page(self, project: str, title: str) -> dict[str, Any]:
        """Return a page of a wiki. Raises NotFound if it is gone."""
        path = f"/projects/{project}/wiki/{quote(title, safe='')}.json"
        page: dict[str, Any] = await self._get(path, "wiki_page")
        return page

    async def list_news(self) -> list[dict[str, Any]]:
        """Return all news."""
        return await self._list_pages("/news.json", "news", {})

    async def read_news(self, number: int) -> dict[str, Any]:
        """Return a piece of news. Raises NotFound if it is gone."""
        news: dict[str, Any] = await self._get(f"/news/{number}.json", "news")
        return news

    async def read_attachment(self, number: int) -> tuple[str, Fetched]:
        """Return the name of a file, and its bytes. Raises NotFound if it is gone, and TooLarge."""
        attachment = await self._get(f"/attachments/{number}.json", "attachment")
        return attachment["filename"], self._check(await self._ask(f"/attachments/download/{number}"))

    async def list_logins(self) -> list[str]:
        """Return the logins of all people who are not locked."""
        rows = await self._list_pages("/users.json", "users", {"status": "1"})
        return [row["login"] for row in rows]

    async def read_member(self, login: str) -> Member | None:
        """Return a person as Redmine sees them now; None for somebody who is locked or gone."""
        fetched = await self._ask("/users/current.json?include=memberships", login=login)
        if fetched.status == LOCKED:
            return None
        user = self._parse(self._check(fetched), "user")["user"]
        if user["login"].lower() != login.lower():
            raise FetchFailed(self._address, "does not answer in the name of others")
        roles = {
            membership["project"]["id"]: frozenset(role["id"] for role in membership["roles"])
            for membership in user["memberships"]
        }
        return Member(user["login"], user.get("admin") is True, roles)

    async def shows_private_notes(self, role: int) -> bool:
        """Return whether the members with a role read private notes."""
        permissions = (await self._get(f"/roles/{role}.json", "role"))["permissions"]
        return VIEW_PRIVATE_NOTES in permissions

    async def list_readable_issues(
        self, numbers: Sequence[int], login: str, *, counted: int = COUNTED_AT_ONCE, listed: int = PAGE_SIZE
    ) -> set[int]:
        """Return which of the issues a person may read, as Redmine answers in their name.

        A count tells it for `counted` issues, of which they may read all or none. Others are asked for in
        halves, and `listed` of them by their numbers.
        """
        readable: set[int] = set()
        batches = [numbers[start : start + counted] for start in range(0, len(numbers), counted)]
        while batches:
            batch = batches.pop()
            is_listed = len(batch) <= listed
            ids = ",".join(map(str, batch))
            path = f"/issues.json?status_id=*&issue_id={ids}&limit={listed if is_listed else 1}"
            fetched = await self._ask(path, login=login)
            if fetched.status == LOCKED or fetched.status == 403:
                return set()
            answer = self._parse(self._check(fetched), "issues")
            if is_listed:
                readable |= {issue["id"] for issue in answer["issues"]}
            elif answer["total_count"] == len(batch):
                readable |= set(batch)
            elif answer["total_count"]:
                middle = len(batch) // 2
                batches += [batch[:middle], batch[middle:]]
        return readable

    async def may_open(self, path: str, login: str) -> bool:
        """Return whether Redmine shows a page to a person."""
        fetched = await self._ask(path, login=login)
        if fetched.status == LOCKED or fetched.status in REFUSED:
            return False
        self._check(fetched)
        return True

    async def _list_pages(self, path: str, name: str, parameters: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return all rows of a list that Redmine counts. Raises FetchFailed if it changed meanwhile."""
        rows: dict[int, dict[str, Any]] = {}
        offset, total = 0, 1
        while offset < total:
            query = urlencode({**parameters, "limit": str(PAGE_SIZE), "offset": str(offset)})
            answer = self._parse(self._check(await self._ask(f"{path}?{query}")), name)
            rows |= {row["id"]: row for row in answer[name]}
            offset, total = offset + PAGE_SIZE, int(answer["total_count"])
        if len(rows) != total:
            raise FetchFailed(self._address, f"changed its {name} while they were listed", passing=True)
        return list(rows.values())

    async def _get(self, path: str, name: str) -> Any:
        """Return what an answer has by a name."""
        fetched = await self._ask(path)
        if fetched.status == 404:
            raise NotFound("page", path.partition("?")[0])
        return self._parse(self._check(fetched), name)[name]

    async def _ask(self, path: str, *, login: str | None = None) -> Fetched:
        headers = {"X-Redmine-API-Key": self._key}
        if login is not None:
            headers["X-Redmine-Switch-User"] = login
        return await self._fetcher.fetch(f"{self._address}{path}", headers=headers)

    def _check(self, fetched: Fetched) -> Fetched:
        if fetched.status == 200:
            return fetched
        reason = f"responded with HTTP {fetched.status}"
        raise FetchFailed(self._address, reason, status=fetched.status, passing=fetched.status in BUSY)

    def _parse(self, fetched: Fetched, name: str) -> dict[str, Any]:
        try:
            content = json.loads(fetched.body)
        except ValueError as fault:
            raise FetchFailed(self._address, "answered in another format than JSON") from fault
        if not isinstance(content, dict) or name not in content:
            raise FetchFailed(self._address, f"answered without {name}")
        return content


def wiki_index(project: str) -> str:
    """Return the path of the list of a wiki's pages."""
    return f"/projects/{project}/wiki/index.json"


def news_index(project: str) -> str:
    """Return the path of the list of a project's news."""
    return f"/projects/{project}/news.json?limit=1"


def _filters(fields: Mapping[str, tuple[str, Iterable[int]]]) -> str:
    """Return the filters of a query: an operator and values by field. An empty list filters nothing."""
    pairs = [("set_filter", "1")]
    for name, (operator, values) in fields.items():
        numbers = [str(value) for value in values]
        if numbers or operator == "*":
            pairs += [("f[]", name), (f"op[{name}]", operator)]
            pairs += [(f"v[{name}][]", number) for number in numbers]
    return urlencode(pairs)
