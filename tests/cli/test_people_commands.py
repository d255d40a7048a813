"""users, groups, keys and grants on a real store: tables, JSON, secrets that are shown once, exit codes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.conftest import Shell


@pytest.fixture
def peopled(filled: Shell) -> Shell:
    for name in ("alice", "bob"):
        assert filled("users", "add", name).code == 0
    return filled


def list_names(shell: Shell, *arguments: str) -> list[str]:
    return [row["name"] for row in shell(*arguments, "--json").json]


def test_users_are_made_shut_out_let_in_and_deleted(peopled: Shell) -> None:
    assert list_names(peopled, "users", "list") == ["alice", "bob", "owner"]
    assert peopled("users", "disable", "alice", "--json").json["disabled"] is True
    assert "yes" in peopled("users", "list").out
    assert peopled("users", "enable", "alice", "--json").json["disabled"] is False
    assert peopled("users", "delete", "alice", typed="n\n").code == 1
    assert peopled("users", "delete", "alice", "--yes").code == 0
    assert list_names(peopled, "users", "list") == ["bob", "owner"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("users", "add", "alice"), 1),
        (("users", "add", "a/b"), 2),
        (("users", "add", ""), 2),
        (("users", "delete", "nobody", "--yes"), 3),
        (("users", "delete", "owner", "--yes"), 1),
        (("users", "disable", "owner"), 1),
        (("groups", "members", "nothing"), 3),
        (("groups", "add-member", "nothing", "alice"), 3),
        (("keys", "create", "nobody"), 3),
        (("keys", "create", "alice", "--scope", "everything"), 2),
        (("keys", "create", "alice", "--expires", "2001-01-01T00:00:00Z"), 2),
        (("keys", "revoke", "nothing"), 3),
        (("keys", "rotate", "nothing"), 3),
        (("grants", "add", "viewer"), 2),
        (("grants", "add", "viewer", "--user", "alice", "--group", "x"), 2),
        (("grants", "add", "king", "--user", "alice"), 2),
        (("grants", "add", "viewer", "--user", "nobody"), 3),
        (("grants", "add", "viewer", "--user", "alice", "--source", "nothing"), 3),
        (("grants", "list", "--collection", "nothing"), 3),
        (("grants", "remove", "--user", "alice"), 3),
    ],
)
def test_what_cannot_be_done_says_so(peopled: Shell, arguments: tuple[str, ...], code: int) -> None:
    done = peopled(*arguments)
    assert (done.code, bool(done.err)) == (code, code != 3 or "remove" not in arguments)


def test_groups_have_members(peopled: Shell) -> None:
    assert peopled("groups", "add", "team").code == 0
    assert peopled("groups", "add-member", "team", "bob").code == 0
    assert list_names(peopled, "groups", "members", "team") == ["bob"]
    assert "team" in peopled("groups", "list").out
    assert peopled("groups", "remove-member", "team", "bob").code == 0
    assert list_names(peopled, "groups", "members", "team") == []
    assert peopled("groups", "delete", "team").code == 0
    assert list_names(peopled, "groups", "list") == []


def test_a_secret_is_shown_once(peopled: Shell) -> None:
    outcome = peopled("keys", "create", "alice", "--label", "laptop", "--scope", "read")
    secret = outcome.out.strip()
    number = secret.split("_")[1]
    assert secret.startswith("csp_")
    assert number in outcome.err
    assert secret not in outcome.err
    for listing in (peopled("keys", "list"), peopled("keys", "list", "alice", "--json")):
        assert number in listing.out
        assert secret.split("_")[2] not in listing.out
    [key] = peopled("keys", "list", "alice", "--json").json
    assert (key["label"], key["scopes"], "revoked" in key) == ("laptop", ["read"], False)
    assert peopled("keys", "create", "alice", "--origin", "tool").code == 0
    [laptop, tool] = peopled("keys", "list", "alice", "--json").json
    assert ("origin" in laptop, tool["origin"]) == (False, "tool")
    assert peopled("keys", "create", "alice", "--origin", "heaven").code == 2


def test_keys_are_replaced_and_revoked(peopled: Shell) -> None:
    ends = (datetime.now(UTC) + timedelta(days=9)).isoformat()
    first = peopled("keys", "create", "--expires", ends, "--json").json
    second = peopled("keys", "rotate", first["key"]["id"], "--json").json
    assert second["key"]["expires"] == first["key"]["expires"]
    assert second["secret"] != first["secret"]
    assert peopled("keys", "revoke", second["key"]["id"]).code == 0
    assert all(key["revoked"] for key in peopled("keys", "list", "owner", "--json").json)


def test_roles_are_given_and_taken(peopled: Shell) -> None:
    [source] = {document["source"] for document in peopled("list", "--json").json["documents"]}
    assert peopled("groups", "add", "team").code == 0
    assert peopled("grants", "add", "viewer", "--user", "alice").code == 0
    assert peopled("grants", "add", "editor", "--user", "alice").code == 0
    assert peopled("grants", "add", "manager", "--group", "team", "--source", source).code == 0
    listed = peopled("grants", "list")
    assert [line.split()[:3] for line in listed.out.splitlines()[1:]] == [
        ["editor", "user", "alice"],
        ["manager", "group", "team"],
    ]
    assert len(peopled("grants", "list", "--source", source, "--json").json) == 1
    assert peopled("grants", "remove", "--user", "alice").code == 0
    assert len(peopled("grants", "list", "--json").json) == 1


def test_identities_and_claims_of_groups_are_mapped_and_unmapped(peopled: Shell) -> None:
    issuer = ("--issuer", "https://login.example.org")
    assert peopled("identities", "list").code == 3
    assert peopled("identities", "map", "alice", "subject-1").code == 2, "no issuer is set"
    assert (
        peopled("identities", "map", "alice", "subject-1", "--issuer", "http://login.example.org").code == 2
    )
    assert (
        peopled("identities", "map", "alice", "subject-1", *issuer).out.strip()
        == "alice signs in as subject-1"
    )
    for account, subject in (("bob", "subject-1"), ("alice", "subject-2")):
        assert peopled("identities", "map", account, subject, *issuer).code == 1
    assert peopled("identities", "map", "nobody", "subject-3", *issuer).code == 3
    [identity] = peopled("identities", "list", "--json").json
    assert "alice" in peopled("identities", "list").out
    assert peopled("groups", "add", "team").code == 0
    assert peopled("identities", "map-group", "staff", "team", *issuer).code == 0
    assert peopled("identities", "map-group", "staff", "team", *issuer).code == 1
    [group_claim] = peopled("identities", "groups", "--json").json
    assert "team" in peopled("identities", "groups").out
    for _ in range(2):
        codes = (
            peopled("identities", "unmap", identity["id"]).code,
            peopled("identities", "unmap-group", group_claim["id"]).code,
        )
    assert codes == (3, 3)
    assert peopled("identities", "groups").code == 3


def test_nothing_is_made_where_there_is_no_store(shell: Shell) -> None:
    for arguments in (("users", "list"), ("keys", "list"), ("grants", "list"), ("sessions", "list")):
        assert shell(*arguments).code == 3
    assert not (shell.folder / "data").exists()


def test_the_first_key_of_the_owner_makes_the_folder(shell: Shell, tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert shell("keys", "create", "ann", "--data-dir", new).code == 3
    assert not new.exists()
    assert shell("keys", "create", "--label", "me", "--data-dir", new).out.startswith("csp_")
    assert [key["label"] for key in shell("keys", "list", "--data-dir", new, "--json").json] == ["me"]


def test_roles_readers_and_looks_as_others_are_listed(peopled: Shell) -> None:
    [document, *_] = peopled("list", "--json").json["documents"]
    source = document["source"]
    assert peopled("groups", "add", "team").code == 0
    assert peopled("groups", "add-member", "team", "bob").code == 0
    assert peopled("grants", "add", "viewer", "--group", "team", "--source", source).code == 0
    roles = peopled("grants", "effective", "bob")
    assert [line.split()[2:] for line in roles.out.splitlines()[1:]] == [
        ["-", "-"],
        ["viewer", "group", "team"],
    ]
    assert peopled("grants", "effective", "bob", "--all", "--json").json[-1]["role"] == "viewer"
    readers = peopled("grants", "readers", document["id"], "--json").json
    assert [reader["name"] for reader in readers] == ["bob", "owner"]
    entries = peopled("grants", "audit", "--json").json["entries"]
    assert [entry["action"] for entry in entries[:3]] == ["put_grant", "add_member", "create_group"]
    explanation = peopled("explain", "backup", "--as", "alice", "--json")
    assert [grant["role"] for grant in explanation.json["missing_grants"]] == ["viewer"]
    assert "missing role" in peopled("explain", "backup", "--as", "alice").out
    log = peopled("grants", "audit").out
    assert "backup" in log and "add_member" in log and "group team" in log
    assert len(peopled("grants", "audit", "--json").json["entries"]) == len(entries) + 2
    assert peopled("explain", "backup", "--as", "alice", "--fits-from").code == 2
    assert peopled("explain", "backup", "--as", "nobody").code == 3


def test_an_invitation_is_a_link_that_is_shown_once(peopled: Shell) -> None:
    created = peopled("invitations", "create", "alice", "--scope", "read")
    assert created.code == 0 and "not shown again" in created.err
    link = created.out.strip()
    assert link.startswith("http://localhost:8642/console/#invitation=csi_")
    [invitation] = peopled("invitations", "list", "--json").json
    assert invitation["scopes"] == ["read"]
    listed = peopled("invitations", "list").out
    assert "alice" in listed and link.rpartition("_")[2] not in listed
    assert peopled("invitations", "withdraw", invitation["id"]).code == 0
    assert peopled("invitations", "withdraw", invitation["id"]).code == 3
    assert peopled("invitations", "create", "nobody").code == 3
    assert peopled("invitations", "create", "alice", "--expires", "2001-01-01T00:00:00Z").code == 2
