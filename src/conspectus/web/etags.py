"""ETags, as headers hold and compare them."""


def quoted(tag: str) -> str:
    """A tag as headers hold it."""
    return f'"{tag}"'


def tags_in(header: str | None) -> list[str]:
    """The tags of a header, `*` among them; with weak ones as they are."""
    return [tag.strip() for tag in (header or "").split(",") if tag.strip()]


def is_not_modified(tag: str, header: str | None) -> bool:
    """Whether If-None-Match says that the client has this representation already."""
    return any(client_tag.removeprefix("W/") in {tag, "*"} for client_tag in tags_in(header))
