"""Who may read what in a Redmine, as it answers in the names of its people."""

from collections.abc import Sequence

from conspectus_connectors.redmine_api import Member, Project, Redmine


class RedmineRights:
    """The rights of people. Memberships and roles are those of the time when it was loaded.

    Issues are asked for in the name of each person: trackers, authors and assignees count. Wikis and news are
    a matter of roles in a project, so one person answers for all who have the same.
    """

    def __init__(self, redmine: Redmine, members: Sequence[Member], noted_roles: frozenset[int]) -> None:
        self._redmine = redmine
        self._members = members
        self._noted_roles = noted_roles
        self._answers: dict[tuple[str, bool, frozenset[int]], bool] = {}

    @classmethod
    async def load(cls, redmine: Redmine, logins: Sequence[str]) -> "RedmineRights":
        """Return the rights of people by their logins; without any, of all who are not locked."""
        answers = [await redmine.read_member(login) for login in logins or await redmine.list_logins()]
        members = [member for member in answers if member is not None]
        roles = {role for member in members for held in member.roles.values() for role in held}
        noted_roles = [role for role in sorted(roles) if await redmine.shows_private_notes(role)]
        return cls(redmine, members, frozenset(noted_roles))

    async def list_issue_viewers(self, numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Return the viewers of issues, by their numbers."""
        viewers: dict[int, list[str]] = {number: [] for number in numbers}
        if not numbers:
            return {}
        for member in self._members:
            for number in await self._redmine.list_readable_issues(numbers, member.login):
                viewers[number].append(_viewer(member))
        return {number: tuple(names) for number, names in viewers.items()}

    def select_note_viewers(self, project: int, viewers: Sequence[str]) -> tuple[str, ...]:
        """Return the viewers of an issue who read its private notes: administrators, and members by role."""
        permitted = {
            _viewer(member)
            for member in self._members
            if member.is_admin or self._noted_roles & member.roles.get(project, frozenset())
        }
        return tuple(viewer for viewer in viewers if viewer in permitted)

    async def list_page_viewers(self, project: Project, path: str) -> tuple[str, ...]:
        """Return those to whom Redmine shows a page of a project that is open by role."""
        viewers: list[str] = []
        for member in self._members:
            question = (path, member.is_admin, member.roles.get(project.id, frozenset()))
            if question not in self._answers:
                self._answers[question] = await self._redmine.may_open(path, member.login)
            if self._answers[question]:
                viewers.append(_viewer(member))
        return tuple(viewers)


def _viewer(member: Member) -> str:
    return f"user:{member.login}"
