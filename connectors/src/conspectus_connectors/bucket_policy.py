"""Who may read the objects of a bucket, by its policy. What cannot be decided lets nobody read.

An Allow counts if it names its principals, actions and resources, and has no condition. A Deny counts always,
whatever its conditions are, and for everybody and everything that it does not name clearly.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from conspectus.connectors import EVERYONE

READ_ACTION: Final = "s3:getobject"
ANYBODY: Final = "*"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement about reading: whom it names, and which resources. None is everybody, or everything."""

    allows: bool
    principals: frozenset[str] | None
    resources: re.Pattern[str] | None


@dataclass(frozen=True, slots=True)
class BucketPolicy:
    """The statements of a policy about reading."""

    statements: tuple[Statement, ...] = ()

    def viewers_of(self, bucket: str, key: str) -> tuple[str, ...]:
        """Return who may read an object: principals by their names, and `EVERYONE` for `*`."""
        resource = f"arn:aws:s3:::{bucket}/{key}"
        allowed: set[str] = set()
        denied: set[str] = set()
        for statement in self.statements:
            if statement.resources is not None and not statement.resources.fullmatch(resource):
                continue
            if statement.allows:
                allowed |= statement.principals or set()
            elif statement.principals is None:
                return ()
            else:
                denied |= statement.principals
        if denied:  # Nobody can say who is everyone but some.
            allowed -= {EVERYONE}
        return tuple(sorted(allowed - denied))


def parse_policy(text: str) -> BucketPolicy:
    """Return the statements of a policy. Raises ValueError if it is none."""
    policy = json.loads(text)
    if not isinstance(policy, dict):
        raise ValueError("the policy is no JSON object")
    statements = _list_of(policy.get("Statement", []))
    return BucketPolicy(tuple(_parse_statements(statements)))


def _parse_statements(statements: Iterable[Any]) -> Iterable[Statement]:
    for fields in statements:
        if not isinstance(fields, dict) or fields.get("Effect") not in {"Allow", "Deny"}:
            raise ValueError("a statement has no effect")
        allows = fields["Effect"] == "Allow"
        if not _is_about_reading(fields, allows=allows):
            continue
        principals = _principals(fields, allows=allows)
        resources = _resources(fields)
        is_clear = principals is not None and resources is not None and not fields.get("Condition")
        if is_clear or not allows:
            yield Statement(allows, principals, resources)


def _is_about_reading(fields: Mapping[str, Any], *, allows: bool) -> bool:
    if "Action" not in fields:  # NotAction
        return not allows
    patterns = [str(action).lower() for action in _list_of(fields["Action"])]
    return any(_pattern([pattern]).fullmatch(READ_ACTION) for pattern in patterns)


def _principals(fields: Mapping[str, Any], *, allows: bool) -> frozenset[str] | None:
    """Return who is named; None for everybody in a Deny, and for nobody that is clear in an Allow."""
    principal = fields.get("Principal")
    if isinstance(principal, dict):
        names = {str(name) for name in _list_of(principal.get("AWS", []))}
        is_clear = bool(names) and principal.keys() == {"AWS"}
    else:
        names, is_clear = {str(principal)}, principal == ANYBODY
    if not allows:
        return frozenset(names) if is_clear and ANYBODY not in names else None
    if not names or principal is None:
        return None
    if isinstance(principal, str) and principal != ANYBODY:
        return None
    return frozenset(EVERYONE if name == ANYBODY else name for name in names)


def _resources(fields: Mapping[str, Any]) -> re.Pattern[str] | None:
    """Return the pattern of the resources; None if there are others or variables in it."""
    patterns = [str(resource) for resource in _list_of(fields.get("Resource", []))]
    if not patterns or any("${" in pattern for pattern in patterns):
        return None
    return _pattern(patterns)


def _pattern(wildcards: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of texts with `*` and `?`."""
    escaped = [
        "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in text) for text in wildcards
    ]
    return re.compile("|".join(escaped), re.DOTALL)


def _list_of(member: Any) -> list[Any]:
    return member if isinstance(member, list) else [member]
