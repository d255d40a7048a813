"""People of a server: accounts, groups and keys."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from conspectus.client.catalog import given
from conspectus.client.granting import Granting
from conspectus.client.request import Request, get, path_of, post, remove
from conspectus.model.access import SCOPES, Group, Key, NewKey, Person, Scope, User


class People(Granting):
    """Who may come in."""

    async def whoami(self) -> Person:
        """Whom the server answers."""
        return await self._channel.one(Person, get("/me"))

    async def create_user(self, name: str) -> User:
        """Make an account. Only the owner account may. Raises InvalidInput or Conflict."""
        return await self._channel.one(User, post("/users", given(name=name)))

    async def users(self) -> Sequence[User]:
        """All accounts by name. Only the owner account may."""
        return await self._channel.several(User, get("/users"))

    async def find_user(self, user: str) -> User:
        """The account of that id or name. Only the owner account may. Raises NotFound."""
        return await self._channel.one(User, get(_user(user)))

    async def disable_user(self, user: str, *, disabled: bool = True) -> User:
        """Let an account do nothing from its next request on, or let it again. Raises NotFound."""
        request = Request("PATCH", _user(user), given(disabled=disabled), writes=True)
        return await self._channel.one(User, request)

    async def delete_user(self, user: str, *, heir: str | None = None) -> None:
        """Delete an account with its keys and grants; its collections and jobs go to the heir.

        Only the owner account may. Raises NotFound, or Conflict if it owns collections and there is no
        heir, or the heir has some of the same names.
        """
        await self._channel.answer(remove(_user(user), heir=heir))

    async def create_group(self, name: str) -> Group:
        """Make a group. Only the owner account may. Raises InvalidInput or Conflict."""
        return await self._channel.one(Group, post("/groups", given(name=name)))

    async def groups(self) -> Sequence[Group]:
        """All groups by name. Only the owner account may."""
        return await self._channel.several(Group, get("/groups"))

    async def delete_group(self, group: str) -> None:
        """Delete a group with what it was granted. Only the owner account may. Raises NotFound."""
        await self._channel.answer(remove(_group(group)))

    async def members(self, group: str) -> Sequence[User]:
        """The members of a group by name. Only the owner account may. Raises NotFound."""
        return await self._channel.several(User, get(_group(group, "members")))

    async def join(self, group: str, user: str) -> None:
        """Put a user into a group. Only the owner account may. Raises NotFound."""
        await self._channel.answer(Request("PUT", _group(group, "members", ("user", user)), writes=True))

    async def leave(self, group: str, user: str) -> None:
        """Take a user out of a group. Only the owner account may. Raises NotFound."""
        await self._channel.answer(remove(_group(group, "members", ("user", user))))

    async def create_key(
        self,
        user: str | None = None,
        *,
        label: str = "",
        scopes: Sequence[Scope] = SCOPES,
        expires: datetime | None = None,
    ) -> NewKey:
        """Make a key for oneself, or as the owner account for another user; its secret is shown only now.

        It cannot have more scopes than the key that one came with. Raises NotAllowed, NotFound or
        InvalidInput.
        """
        body = given(user=user, label=label, scopes=list(scopes), expires=expires)
        return await self._channel.one(NewKey, _secret(post("/keys", body)))

    async def keys(self, user: str | None = None) -> Sequence[Key]:
        """One's own keys, oldest first; for the owner account those of any user, or with `*` of all."""
        return await self._channel.several(Key, get("/keys", user=user))

    async def revoke_key(self, key: str) -> Key:
        """End a key's validity for the very next request. Raises NotFound."""
        return await self._channel.one(Key, remove(path_of("keys", ("key", key))))

    async def rotate_key(self, key: str) -> NewKey:
        """A new secret with the same label, scopes and expiry; the old one is revoked.

        Raises NotFound, NotAllowed if the key has more scopes than one's own, or Conflict if it is not
        valid any more.
        """
        return await self._channel.one(NewKey, _secret(post(path_of("keys", ("key", key), "rotate"))))


def _user(name: str) -> str:
    return path_of("users", ("user", name))


def _group(name: str, *parts: tuple[str, str] | str) -> str:
    return path_of("groups", ("group", name), *parts)


def _secret(request: Request) -> Request:
    """A request whose answer holds a secret, which the server must not keep to answer it once more."""
    return replace(request, once=True)
