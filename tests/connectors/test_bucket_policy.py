"""Who may read by a policy of a bucket. What cannot be decided lets nobody read."""

import json
from typing import Any

import pytest

from conspectus.connectors import EVERYONE
from conspectus_connectors.bucket_policy import parse_policy

ANN, BEN = "arn:aws:iam::1:user/ann", "arn:aws:iam::1:user/ben"


def statement(effect: str = "Allow", **fields: Any) -> dict[str, Any]:
    usual = {"Principal": {"AWS": ANN}, "Action": "s3:GetObject", "Resource": "arn:aws:s3:::office/docs/*"}
    return {"Effect": effect, **usual, **fields}


def without(name: str, **fields: Any) -> dict[str, Any]:
    return {key: member for key, member in statement(**fields).items() if key != name}


def viewers(*statements: dict[str, Any], key: str = "docs/plan.md") -> list[str]:
    return list(parse_policy(json.dumps({"Statement": list(statements)})).viewers_of("office", key))


@pytest.mark.parametrize(
    ("fields", "readers"),
    [
        ({}, [ANN]),
        ({"Principal": {"AWS": [ANN, BEN]}}, [ANN, BEN]),
        ({"Principal": "*"}, [EVERYONE]),
        ({"Principal": {"AWS": "*"}}, [EVERYONE]),
        ({"Action": ["s3:PutObject", "s3:get*"]}, [ANN]),
        ({"Action": "*"}, [ANN]),
        ({"Resource": ["arn:aws:s3:::other/*", "arn:aws:s3:::office/????/pl*n.md"]}, [ANN]),
        ({"Action": "s3:GetObjectAcl"}, []),
        ({"Resource": "arn:aws:s3:::office/docs"}, []),
        ({"Resource": "arn:aws:s3:::office/docs.plan.md"}, []),
        ({"Condition": {"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}}, []),
        ({"Principal": {"Service": "logs.amazonaws.com"}}, []),
        ({"Principal": {"AWS": ANN, "Federated": "idp"}}, [ANN]),
        ({"Principal": ANN}, []),
        ({"Resource": "arn:aws:s3:::office/${aws:username}/*"}, []),
    ],
)
def test_an_allow_counts_if_it_is_clear(fields: dict[str, Any], readers: list[str]) -> None:
    assert viewers(statement(**fields)) == readers


@pytest.mark.parametrize("name", ["Principal", "Action", "Resource"])
def test_an_allow_that_names_what_it_is_not_about_lets_nobody_read(name: str) -> None:
    assert viewers({**without(name), f"Not{name}": "arn:aws:s3:::other"}) == []


@pytest.mark.parametrize(
    ("fields", "readers"),
    [
        ({"Principal": {"AWS": BEN}}, [ANN]),
        ({"Principal": {"AWS": BEN}, "Condition": {"Bool": {"aws:SecureTransport": "false"}}}, [ANN]),
        ({"Principal": "*"}, []),
        ({"Principal": {"AWS": [BEN, "*"]}}, []),
        ({"Principal": {"CanonicalUser": "79a5"}}, []),
        ({"Principal": {"AWS": BEN}, "Resource": "arn:aws:s3:::office/${aws:username}/*"}, [ANN]),
        ({"Principal": "*", "Resource": "arn:aws:s3:::office/other/*"}, [ANN, BEN]),
        ({"Principal": "*", "Action": "s3:PutObject"}, [ANN, BEN]),
    ],
)
def test_a_deny_counts_whatever_its_condition(fields: dict[str, Any], readers: list[str]) -> None:
    both = statement(Principal={"AWS": [ANN, BEN]})
    assert viewers(both, statement("Deny", **fields)) == readers


@pytest.mark.parametrize("name", ["Principal", "Action", "Resource"])
def test_a_deny_that_names_what_it_is_not_about_is_about_all_else(name: str) -> None:
    denied = {**without(name, effect="Deny", Principal={"AWS": ANN}), f"Not{name}": "arn:aws:s3:::other"}
    assert viewers(statement(), denied) == []


def test_everyone_but_some_is_nobody() -> None:
    denied = statement("Deny", Principal={"AWS": BEN})
    assert viewers(statement(Principal={"AWS": [ANN, "*"]}), denied) == [ANN]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"Statement": ["Allow"]}', '{"Statement": {"Effect": "May"}}']
)
def test_what_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_policy(text)


def test_an_empty_policy_lets_nobody_read() -> None:
    assert viewers() == []
