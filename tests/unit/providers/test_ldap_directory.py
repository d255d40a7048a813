"""Groups of a real directory: who is in them, and when nobody can say."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.slapd_server import BASE, PASSWORD, READER, SlapdServer, group, person, run_slapd

from conspectus.errors import FetchFailed, InvalidInput
from conspectus.providers.ldap_directory import DirectoryOptions, LdapDirectory

pytestmark = pytest.mark.sources
TEAM, OTHERS = group("team"), group("others")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SlapdServer]:
    with run_slapd(tmp_path) as server:
        server.fill(6, {"team": [person(0), person(1)], "others": [person(1), person(2)]})
        yield server


@pytest.fixture
def options(server: SlapdServer) -> DirectoryOptions:
    return DirectoryOptions(
        url=server.url,
        name=READER,
        password=PASSWORD,
        ca_file=server.ca_file,
        subject="employeeNumber",
        timeout_seconds=5,
        max_nesting=2,
        max_members=20,
    )


async def test_members_are_read_by_ldaps_and_by_starttls(
    server: SlapdServer, options: DirectoryOptions
) -> None:
    for url in (server.url, server.plain_url):
        directory = LdapDirectory(replace(options, url=url))
        assert await directory.find_problems() == []
        members = await directory.read_members([TEAM, OTHERS.upper().replace(",", ", ")])
        assert list(members.values()) == [{"e0", "e1"}, {"e1", "e2"}]


async def test_groups_in_groups_are_read_to_a_depth_and_a_ring_ends(
    server: SlapdServer, options: DirectoryOptions
) -> None:
    server.fill_groups({"below": [person(3), TEAM], "deeper": [person(4)], "deepest": [person(5)]})
    server.add_members(TEAM, group("below"))
    server.add_members(group("below"), group("deeper"))
    server.add_members(group("deeper"), group("deepest"))
    members_by_depth = {0: {"e0", "e1"}, 1: {"e0", "e1", "e3"}, 2: {"e0", "e1", "e3", "e4"}}
    for depth, members in members_by_depth.items():
        directory = LdapDirectory(replace(options, max_nesting=depth))
        assert await directory.read_members([TEAM]) == {TEAM: members}


async def test_people_without_the_attribute_and_deleted_ones_are_nobody(
    server: SlapdServer, options: DirectoryOptions
) -> None:
    server.delete(person(0))
    server.add(person(9), ["inetOrgPerson"], {"cn": "Nine", "sn": "Nine"})
    server.add_members(TEAM, person(9))
    assert await LdapDirectory(options).read_members([TEAM]) == {TEAM: {"e1"}}


async def test_an_attribute_that_nobody_has_or_that_is_withheld_is_an_error(
    server: SlapdServer, options: DirectoryOptions
) -> None:
    """Otherwise everybody would leave every group."""
    reason = "none of 2 people has the attribute {}; correct CONSPECTUS_LDAP_SUBJECT"
    with pytest.raises(FetchFailed, match=reason.format("objectGUID")):
        await LdapDirectory(replace(options, subject="objectGUID")).read_members([TEAM])
    server.stop()
    server.start("access to attrs=employeeNumber by * none")
    with pytest.raises(FetchFailed, match=reason.format("employeeNumber")):
        await LdapDirectory(options).read_members([TEAM])


async def test_a_deleted_group_is_told_from_one_that_is_withheld(
    server: SlapdServer, options: DirectoryOptions
) -> None:
    server.delete(TEAM)
    assert await LdapDirectory(options).read_members([TEAM, OTHERS]) == {TEAM: None, OTHERS: {"e1", "e2"}}
    server.stop()
    server.start(f'access to dn.subtree="ou=groups,{BASE}" by * none')
    with pytest.raises(FetchFailed, match="can be read; check its name and the rights of cn=reader"):
        await LdapDirectory(options).read_members([OTHERS])


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("access to attrs=member by * none", "withholds its members"),
        (f'access to dn.exact="{TEAM}" by * search', "withheld|can be read"),
    ],
)
async def test_members_that_are_withheld_are_an_error(
    rule: str, reason: str, server: SlapdServer, options: DirectoryOptions
) -> None:
    server.stop()
    server.start(rule)
    with pytest.raises(FetchFailed, match=reason):
        await LdapDirectory(options).read_members([TEAM])


async def test_an_entry_that_is_no_group_and_too_many_members_are_errors(
    server: SlapdServer, options: DirectoryOptions
) -> None:
    with pytest.raises(FetchFailed, match="is no group"):
        await LdapDirectory(options).read_members([person(0)])
    with pytest.raises(FetchFailed, match="CONSPECTUS_LDAP_MAX_MEMBERS"):
        await LdapDirectory(replace(options, max_members=2)).read_members([TEAM, OTHERS])
    with pytest.raises(InvalidInput, match="no name of a group"):
        await LdapDirectory(options).read_members(["team"])


async def test_a_connection_that_is_not_safe_is_not_used(
    server: SlapdServer, options: DirectoryOptions
) -> None:
    """A certificate of a stranger or for another name ends it before the password is sent."""
    for url in (server.url, server.plain_url):
        for unsafe in (
            replace(options, url=url, ca_file=""),
            replace(options, url=url.replace("127.0.0.1", "localhost")),
        ):
            with pytest.raises(FetchFailed, match=r": certificate verify failed: .*; CONSPECTUS_LDAP_URL"):
                await LdapDirectory(unsafe).read_members([TEAM])
    for wrong_port in (
        server.plain_url.replace("ldap:", "ldaps:"),
        server.url.replace("ldaps:", "ldap:"),
    ):
        with pytest.raises(FetchFailed, match="; ldaps:// needs a port with TLS, and ldap:// one with"):
            await LdapDirectory(replace(options, url=wrong_port)).read_members([TEAM])


async def test_faults_say_what_is_wrong_and_not_the_password(
    server: SlapdServer, options: DirectoryOptions
) -> None:
    [problem] = await LdapDirectory(replace(options, password="wrong secret")).find_problems()
    assert problem == (
        f"groups of the directory cannot be read: {server.url}: the directory refuses the name or the"
        " password; correct CONSPECTUS_LDAP_BIND_DN and CONSPECTUS_LDAP_BIND_PASSWORD"
    )
    [problem] = await LdapDirectory(replace(options, name="reader")).find_problems()
    assert "refuses a name; correct CONSPECTUS_LDAP_BIND_DN" in problem
    server.stop()
    with pytest.raises(FetchFailed, match="refused"):
        await LdapDirectory(options).read_members([TEAM])
