"""A real Redmine on a database of its own, whose people and roles stand in it before it starts."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from tests.support.source_servers import ROOT, answers, choose_port, open_folder, path_inside, run_server

EMPTY_DATABASE: Final = "var/lib/dbconfig-common/sqlite3/redmine/instances/default/redmine_default"
ADMINISTRATOR: Final = "admin"
PEOPLE: Final = {"ann": 11, "ben": 12, "cy": 13, "dee": 14}
"""The logins of people, with their ids."""
GROUPS: Final = {"a": 21, "b": 22}
MANAGER, DEVELOPER, REPORTER, OWNER_OF_ISSUES, FEATURE_READER, NEWCOMER = 3, 4, 5, 6, 7, 8
"""Ids of roles: Manager sees all issues and private notes, Developer private notes, Reporter neither.

The next three see their own issues, those of the tracker Feature, and nothing.
"""
BUG, FEATURE = 1, 2
"""Ids of trackers."""
TRACKERS_READ: Final = f"""---
permissions_all_trackers:
  view_issues: '0'
permissions_tracker_ids:
  view_issues:
  - '{FEATURE}'
"""
ROLES: Final = (
    (OWNER_OF_ISSUES, "Owner of issues", "own", ("view_issues", "view_wiki_pages"), None),
    (FEATURE_READER, "Reader of features", "all", ("view_issues", "view_news"), TRACKERS_READ),
    (NEWCOMER, "Newcomer", "all", (), None),
)
COPY_WORKFLOW: Final = """
    INSERT INTO workflows (tracker_id, old_status_id, new_status_id, role_id, type)
    SELECT tracker_id, old_status_id, new_status_id, ?, type FROM workflows WHERE role_id = ?
"""
"""Only those whose role may do something with an issue can be its assignees."""
SETTINGS: Final = ("rest_api_enabled", "issue_group_assignment")
NOW: Final = "2026-01-01 00:00:00"


@dataclass
class RedmineServer:
    """The server: its port, and requests as one of its users, with a key of their own."""

    port: int
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60))

    def send(
        self, method: str, path: str, content: Any = None, *, user: str = ADMINISTRATOR
    ) -> httpx.Response:
        """Send a request as a user."""
        headers = {"X-Redmine-API-Key": key_of(user)}
        return self.client.request(
            method, f"http://127.0.0.1:{self.port}{path}", json=content, headers=headers
        )

    def call(self, method: str, path: str, content: Any = None, *, user: str = ADMINISTRATOR) -> Any:
        """Send a request that must succeed, and return its answer."""
        response = self.send(method, path, content, user=user)
        assert response.is_success, (method, path, content, response.status_code, response.text)
        return response.json() if response.content.strip() else None

    def upload(self, name: str, body: bytes) -> str:
        """Upload a file, and return the token that attaches it."""
        headers = {"X-Redmine-API-Key": key_of(ADMINISTRATOR), "Content-Type": "application/octet-stream"}
        address = f"http://127.0.0.1:{self.port}/uploads.json?filename={name}"
        token: str = self.client.post(address, content=body, headers=headers).json()["upload"]["token"]
        return token

    def may_open(self, user: str, path: str) -> bool:
        """Whether a user may open a page that exists."""
        return self.send("GET", path, user=user).status_code == 200

    def empty(self) -> None:
        """Delete all projects, and let no group have members."""
        for project in self.call("GET", "/projects.json?limit=100&status=1|5")["projects"]:
            self.send("DELETE", f"/projects/{project['id']}.json")
        for group in GROUPS.values():
            self.call("PUT", f"/groups/{group}.json", {"group": {"user_ids": [""]}})


def key_of(user: str) -> str:
    """The key of a user for the interface."""
    return f"keyof{user}".ljust(40, "0")


@contextmanager
def run_redmine() -> Iterator[RedmineServer]:
    """A running Redmine without projects."""
    with open_folder("redmine") as folder:
        database = folder / "database"
        shutil.copyfile(ROOT / EMPTY_DATABASE, database)
        write_people(database)
        port = choose_port()
        server = RedmineServer(port)
        command = ("puma", "--dir", "/usr/share/redmine", "-e", "production", "-b", f"tcp://127.0.0.1:{port}")
        environment = {"DATABASE_URL": f"sqlite3:{path_inside(database)}", "RAILS_ENV": "production"}
        with (
            run_server(*command, folder=folder, is_ready=lambda: answers(port), environment=environment),
            server.client,
        ):
            yield server


def write_people(database: Path) -> None:
    """Write the people, groups and roles that tests need, and let programs ask."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for setting in SETTINGS:
            insert(connection, "settings", name=setting, value="1", updated_on=NOW)
        times = {"created_on": NOW, "updated_on": NOW}
        for login, number in PEOPLE.items():
            names = {"login": login, "firstname": login.title(), "lastname": "Lee"}
            insert(connection, "users", id=number, type="User", **names, **times)
            address = f"{login}@office.example"
            insert(connection, "email_addresses", user_id=number, address=address, is_default=1, **times)
        for name, number in GROUPS.items():
            insert(connection, "users", id=number, type="Group", lastname=name, **times)
        for login, number in {ADMINISTRATOR: 1, **PEOPLE}.items():
            insert(connection, "tokens", user_id=number, action="api", value=key_of(login), **times)
        for number, name, visibility, permissions, settings in ROLES:
            lines = "".join(f"- :{permission}\n" for permission in permissions) or "[]\n"
            rights = {"issues_visibility": visibility, "permissions": f"--- \n{lines}", "settings": settings}
            insert(connection, "roles", id=number, name=name, position=number, **rights)
            connection.execute(COPY_WORKFLOW, (number, REPORTER))


def insert(connection: sqlite3.Connection, table: str, **columns: Any) -> None:
    """Insert a row."""
    names, marks = ", ".join(columns), ", ".join("?" for _ in columns)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(columns.values()))
