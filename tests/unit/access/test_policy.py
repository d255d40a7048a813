"""Rules of access: what grants add up to, what they show, and what is refused with which reason."""

from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.access.account_names import MAX_NAME_LENGTH, account_name, label_text
from conspectus.access.policy import (
    GRANTS_UP_TO,
    access_of,
    among,
    can_see,
    can_see_job,
    can_see_source,
    highest,
    includes_role,
    origins_of,
    require_account,
    require_embedder,
    require_grantor,
    require_owner,
    require_role,
    require_scope,
    require_scopes,
    restrict_filter,
    role_on,
    select_counted_sources,
    visible,
    visible_jobs,
    without_hidden,
)
from conspectus.errors import InvalidInput, PermissionDenied
from conspectus.model.access import ROLES, Access, Grant, Person, Principal, Role, RoleOrigin, User
from conspectus.model.filter import EVERYTHING, And, Eq, Filter, In, Not, Or, matches
from conspectus.model.ids import CollectionId, JobId, SourceId, UserId
from conspectus.model.jobs import Job
from conspectus.model.records import Collection
from conspectus.ports.jobs import JobPlace

NOW = datetime(2026, 1, 5, tzinfo=UTC)
ANN, BOB = UserId("ann"), UserId("bob")
HERE, THERE = CollectionId("here"), CollectionId("there")
A, B, C = map(SourceId, "abc")
COLLECTION = Collection(HERE, "here", None, None, NOW, owner=BOB)
PERSON = Person("ann", id=ANN)
STORE_OWNER = Person("root", owner=True, id=UserId("root"))
SOURCES = st.none() | st.sampled_from([A, B, C])


def build_grant(role: Role, source: SourceId | None = None, collection: CollectionId = HERE) -> Grant:
    return Grant(collection, source, Principal("user", ANN), role, NOW)


GRANTS = st.lists(
    st.builds(build_grant, st.sampled_from(ROLES), SOURCES, st.sampled_from([HERE, THERE])), max_size=6
)
FILTERS: st.SearchStrategy[Filter] = st.recursive(
    st.one_of(
        st.sampled_from("abc").map(lambda name: Eq("source", name)),
        st.lists(st.sampled_from("abc"), max_size=3).map(lambda names: In("source", tuple(names))),
        st.just(Eq("kind", "page")),
    ),
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, max_size=2).map(lambda parts: And(tuple(parts))),
        st.lists(inner, max_size=2).map(lambda parts: Or(tuple(parts))),
    ),
    max_leaves=4,
)


def build_job(owner: UserId, source: SourceId | None) -> Job:
    return Job(JobId("j"), "sync", owner, HERE, source, "t", NOW)


@given(GRANTS)
def test_the_role_on_a_source_is_the_highest_grant_on_it_or_on_all(grants: list[Grant]) -> None:
    access = access_of(PERSON, COLLECTION, grants)
    here = [grant for grant in grants if grant.collection == HERE]
    for source in (None, A, B, C):
        roles = [grant.role for grant in here if grant.source in {None, source}]
        assert role_on(access, source) == max(roles, key=ROLES.index, default=None)
    assert can_see(access) is bool(here)


@given(GRANTS, FILTERS)
def test_a_filter_shows_no_source_without_a_role(grants: list[Grant], where: Filter) -> None:
    access = access_of(PERSON, COLLECTION, grants)
    for source, kind in product((A, B, C), ("page", "task")):
        row = {"source": source, "kind": kind}
        readable = role_on(access, source) is not None
        assert matches(visible(access), row) is readable
        assert can_see_source(access, source) is readable
        assert matches(restrict_filter(access, where), row) is (readable and matches(where, row))


@given(GRANTS, FILTERS)
def test_terms_count_only_in_sources_that_are_named_and_readable(grants: list[Grant], where: Filter) -> None:
    access = access_of(PERSON, COLLECTION, grants)
    counted = select_counted_sources(access, where)
    assert list(counted) == sorted(set(counted))
    assert all(role_on(access, source) is not None for source in counted)
    if not isinstance(where, In):
        return
    named = {SourceId(str(name)) for name in where.values}
    assert set(counted) == {source for source in named if role_on(access, source) is not None}


@given(GRANTS, FILTERS, st.sets(st.sampled_from((A, B, C))))
def test_hidden_sources_are_read_by_their_managers_only(
    grants: list[Grant], where: Filter, hidden: set[SourceId]
) -> None:
    before = access_of(PERSON, COLLECTION, grants)
    access = without_hidden(before, (A, B, C), hidden)
    assert role_on(access, None) == role_on(before, None)
    for source in (A, B, C):
        role = role_on(before, source)
        is_readable = includes_role(role, "viewer") and (
            source not in hidden or includes_role(role, "manager")
        )
        assert role_on(access, source) == (role if is_readable else None)
        assert matches(visible(access), {"source": source, "kind": "page"}) is is_readable
        assert can_see_job(access, PERSON, build_job(UserId("other"), source)) is is_readable
    assert all(role_on(access, source) is not None for source in select_counted_sources(access, where))


def test_an_owner_has_all_of_the_collection_whatever_was_granted() -> None:
    assert access_of(STORE_OWNER, COLLECTION, []) == Access("owner")
    assert access_of(Person("bob", id=BOB), COLLECTION, [build_grant("viewer", A)]) == Access("owner")
    assert access_of(PERSON, COLLECTION, []) == Access(None)
    assert visible(Access("viewer")) == EVERYTHING
    assert visible(Access(None, {B: "viewer", A: "owner"})) == In("source", (A, B))
    assert highest(["editor", "owner", "viewer"]) == "owner"
    assert restrict_filter(Access("viewer"), Eq("kind", "page")) == Eq("kind", "page")
    assert among([B, A]) == In("source", (A, B))
    assert select_counted_sources(Access("viewer"), EVERYTHING) == ()


def test_each_reason_of_a_role_is_told() -> None:
    user = User(BOB, "bob", NOW, owner=True)
    group = Grant(HERE, A, Principal("group", "g"), "editor", NOW)
    grants = [build_grant("viewer"), group, build_grant("owner", collection=THERE)]
    assert origins_of(user, COLLECTION, grants, {"g": "Team"}) == {
        None: [
            RoleOrigin("store_owner", "owner"),
            RoleOrigin("collection_owner", "owner"),
            RoleOrigin("user", "viewer"),
        ],
        A: [RoleOrigin("group", "editor", A, "Team")],
    }
    assert origins_of(User(ANN, "ann", NOW), COLLECTION, [], {}) == {None: []}


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        (Access("viewer"), JobPlace(HERE)),
        (Access("viewer", {A: "owner"}), JobPlace(HERE)),
        (Access(None, {B: "viewer", A: "owner"}), JobPlace(HERE, (A, B), ANN)),
        (Access(None), JobPlace(HERE, (), None)),
    ],
)
def test_jobs_are_listed_by_the_rule_that_shows_each(access: Access, expected: JobPlace) -> None:
    assert visible_jobs(access, PERSON, HERE) == expected
    for owner, source in product((ANN, BOB), (None, A, C)):
        listed = expected.sources is None or source in expected.sources or owner == expected.owner
        assert can_see_job(access, PERSON, build_job(owner, source)) is listed


def test_an_own_job_is_not_shown_once_the_collection_is_not() -> None:
    assert not can_see_job(Access(None), PERSON, build_job(ANN, A))
    assert can_see_job(Access(None, {B: "viewer"}), PERSON, build_job(ANN, A))
    assert not can_see_job(Access(None, {B: "owner"}), PERSON, build_job(BOB, A))


@pytest.mark.parametrize(("role", "needed"), [*product((None, *ROLES), ROLES)])
def test_a_role_includes_those_below_it(role: Role | None, needed: Role) -> None:
    expected = role is not None and ROLES.index(role) >= ROLES.index(needed)
    assert includes_role(role, needed) is expected
    if expected:
        require_role(role, needed, "do it")
        return
    with pytest.raises(PermissionDenied, match=f"do it.*the role {needed}"):
        require_role(role, needed, "do it")


@pytest.mark.parametrize(("role", "granted"), [*product((None, *ROLES), ROLES)])
def test_nobody_grants_a_role_above_the_limit_of_their_own(role: Role | None, granted: Role) -> None:
    allowed = role == "owner" or (role == "manager" and granted in {"viewer", "editor"})
    if allowed:
        require_grantor(role, granted)
        assert GRANTS_UP_TO[role] in ROLES  # type: ignore[index]
        return
    needed = "owner" if role == "manager" else "manager"
    with pytest.raises(PermissionDenied, match=f"grant or revoke the role {granted}.*the role {needed}"):
        require_grantor(role, granted)


def test_a_key_needs_each_scope() -> None:
    reader = Person("ann", id=ANN, scopes=("read",))
    require_scope(reader, "read", "look")
    require_scopes(reader, (), "look")
    for check in (
        lambda: require_scope(reader, "write", "keep it"),
        lambda: require_scopes(reader, ("read", "write"), "keep it"),
    ):
        with pytest.raises(PermissionDenied, match=r"keep it.*a key with the scope write"):
            check()


@pytest.mark.parametrize(
    ("person", "account", "store"),
    [
        (STORE_OWNER, True, True),
        (Person("bob", id=BOB), True, False),
        (PERSON, False, False),
        (Person("root", owner=True, id=ANN, scopes=("read", "write")), True, False),
    ],
)
def test_some_things_are_for_the_account_and_some_for_the_store(
    person: Person, account: bool, store: bool
) -> None:
    for allowed, check in (
        (account, lambda: require_account(person, COLLECTION, "move it")),
        (store, lambda: require_owner(person, "move it")),
    ):
        if allowed:
            check()
            continue
        with pytest.raises(PermissionDenied, match="move it"):
            check()


@pytest.mark.parametrize(
    ("embedder", "usual", "allowed"),
    [
        ("openai:large", "openai:large@256", True),
        ("openai:large@64", "openai:large@256", True),
        ("openai:large@256", "openai:large", True),
        ("openai:small", "openai:large", False),
        ("openai:large2", "openai:large", False),
        ("minilm", "openai:large", True),
        ("minilm@128", "openai:large", True),
        ("multilingual", "none", True),
        ("none", "minilm", True),
        ("vectors:300", "minilm", True),
        ("vectors", "minilm", False),
        ("onnx:/etc/passwd", "minilm", False),
        ("", "minilm", False),
        ("@", "minilm", False),
    ],
)
def test_only_the_owner_chooses_an_embedder_that_reads_files_or_costs_money(
    embedder: str, usual: str, allowed: bool
) -> None:
    require_embedder(STORE_OWNER, embedder, usual)
    if allowed:
        require_embedder(PERSON, embedder, usual)
        return
    with pytest.raises(PermissionDenied, match="the owner account"):
        require_embedder(PERSON, embedder, usual)


@pytest.mark.parametrize("name", ["a", "x" * MAX_NAME_LENGTH, "Ann O'Brien", "ä🎉", "a b", "...", "12345678"])
def test_a_name_of_visible_characters_is_one(name: str) -> None:
    assert account_name(name) == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "1 to 100 visible"),
        ("x" * (MAX_NAME_LENGTH + 1), "1 to 100 visible"),
        ("a ", "1 to 100 visible"),
        ("a\ud800", "1 to 100 visible"),
        ("a/b", "no slash"),
        ("0B9E7A3C-1f2d-5c5e-9a7b-3d2f1e0c9b8a", "form of an id"),
        ("local", "reserved"),
        ("*", "reserved"),
        ("..", "reserved"),
    ],
)
def test_a_name_that_is_none_says_why(name: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason) as refused:
        account_name(name)
    assert refused.value.field == "name"


def test_a_label_has_visible_characters_or_none() -> None:
    assert label_text("") == ""
    assert label_text("x" * MAX_NAME_LENGTH) == "x" * MAX_NAME_LENGTH
    for label in ("x" * (MAX_NAME_LENGTH + 1), "a\n", "\x1b[2J", "\u202e"):
        with pytest.raises(InvalidInput, match="at most 100 visible") as refused:
            label_text(label)
        assert refused.value.field == "label"
    assert label_text("a\0b") == "a\ufffdb"
