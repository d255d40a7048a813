"""Tenants: what rows are partitioned by, so that who may see one source has only its partition looked at."""

import hashlib

from conspectus.index.milvus.connection import PARTITIONS
from conspectus.model.filter import And, Eq, Filter, In, Or

_WORTH_NAMING = 2 * PARTITIONS


def tenant(source: object) -> str:
    """The tenant of a row: its source, in letters that mean nothing in an expression."""
    return hashlib.blake2b(str(source).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def within(where: Filter) -> str | None:
    """An expression that all rows satisfy that the filter admits; None where they may be anywhere.

    Beyond so many sources every partition would have to be looked at anyhow.
    """
    sources = _sources(where)
    if sources is None or not 0 < len(sources) <= _WORTH_NAMING:
        return None
    listed = ",".join(sorted(f'"{tenant(source)}"' for source in sources))
    return f"tenant in [{listed}]"


def _sources(where: Filter) -> frozenset[str] | None:
    """The sources outside of which a filter leaves nothing; None where it does not bound them."""
    match where:
        case Eq("source", str(value)):
            return frozenset({value})
        case In("source", values):
            texts = frozenset(value for value in values if isinstance(value, str))
            return texts if len(texts) == len(set(values)) else None
        case And(inner):
            bounds = [found for found in map(_sources, inner) if found is not None]
            return frozenset.intersection(*bounds) if bounds else None
        case Or(inner):
            known = [found for found in map(_sources, inner) if found is not None]
            return frozenset[str]().union(*known) if len(known) == len(inner) else None
    return None
