"""A real DokuWiki, served by PHP, with users and rules that its administrator writes into its files."""

import base64
import hashlib
import xmlrpc.client
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from tests.support.source_servers import answers, choose_port, open_folder, path_inside, run_server

ADMINISTRATOR: Final = "reader"
PASSWORD: Final = "hunter2-correct-horse"
PATH: Final = "/lib/exe/xmlrpc.php"
FOLDERS: Final = (
    *("pages", "attic", "media", "media_attic", "meta", "media_meta"),
    *("cache", "index", "locks", "tmp", "log"),
)
SETTINGS: Final = """<?php
$conf['savedir'] = '{data}';
$conf['useacl'] = 1;
$conf['superuser'] = '{administrator}';
$conf['remote'] = 1;
$conf['remoteuser'] = '';
"""


@dataclass
class DokuWikiServer:
    """The wiki: its port, the folder of its settings, its rules, and the groups of its users."""

    port: int
    settings: Path
    rules: dict[tuple[str, str], int] = field(default_factory=lambda: {("*", "@ALL"): 0})
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60))

    def call(self, user: str, method: str, *parameters: Any) -> Any:
        """Call a method as a user. This version answers a call that it refuses with nothing."""
        pair = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
        headers = {"Authorization": f"Basic {pair}", "Content-Type": "text/xml"}
        body = xmlrpc.client.dumps(parameters, method)
        self.client.cookies.clear()  # They would sign in whoever called last.
        response = self.client.post(f"http://127.0.0.1:{self.port}{PATH}", content=body, headers=headers)
        return xmlrpc.client.loads(response.text)[0][0]

    def write_users(self, groups: Mapping[str, frozenset[str]]) -> None:
        """Write the users with their groups. All have the same password."""
        digest = hashlib.md5(PASSWORD.encode(), usedforsecurity=False).hexdigest()
        people = {ADMINISTRATOR: frozenset[str](), **groups}
        lines = [
            f"{user}:{digest}:{user}:{user}@example.org:{','.join(sorted({'user', *names}))}\n"
            for user, names in people.items()
        ]
        (self.settings / "users.auth.php").write_text("".join(lines))

    def write_rules(self) -> None:
        """Write the rules: who reads or does not read a page."""
        lines = [f"{scope}\t{who}\t{level}\n" for (scope, who), level in self.rules.items()]
        (self.settings / "acl.auth.php").write_text("".join(lines))

    def may_read(self, user: str, page: str) -> bool:
        """Whether a user may read a page that exists."""
        return "name" in self.call(user, "wiki.getPageInfo", page)


@contextmanager
def run_dokuwiki() -> Iterator[DokuWikiServer]:
    """A running wiki without pages."""
    with open_folder("dokuwiki") as folder:
        settings = folder / "settings"
        settings.mkdir()
        for name in FOLDERS:
            (folder / "data" / name).mkdir(parents=True)
        data = path_inside(folder / "data")
        (settings / "local.php").write_text(SETTINGS.format(data=data, administrator=ADMINISTRATOR))
        prepended = f"<?php define('DOKU_CONF', '{path_inside(settings)}/');"
        (folder / "prepended.php").write_text(prepended)
        port = choose_port()
        server = DokuWikiServer(port, settings)
        server.write_rules()
        prepend = f"auto_prepend_file={path_inside(folder)}/prepended.php"
        command = ("php", "-d", prepend, "-S", f"127.0.0.1:{port}", "-t", "/usr/share/dokuwiki")
        with run_server(*command, folder=folder, is_ready=lambda: answers(port)), server.client:
            yield server
