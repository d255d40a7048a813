"""sessions and invitations: manage the logins of browsers."""

from collections.abc import Sequence
from typing import Final

from conspectus.cli.command import Arguments, Command
from conspectus.cli.output import rows_table
from conspectus.cli.people import account_names
from conspectus.cli.session import Session
from conspectus.model.access import Invitation, NewInvitation
from conspectus.model.access import Session as BrowserSession


def _show_sessions(session: Session, browser_sessions: Sequence[BrowserSession], _: Arguments) -> None:
    names = account_names(session)
    columns = ("id", "user", "key", "scopes", "created", "expires", "last used")
    rows = (
        (
            browser_session.id,
            names.get(browser_session.user, browser_session.user),
            browser_session.key or "-",
            " ".join(browser_session.scopes),
            browser_session.created,
            browser_session.expires,
            browser_session.last_used,
        )
        for browser_session in browser_sessions
    )
    session.show_or_exit(browser_sessions, rows_table(columns, rows), "no open sessions")


def _show_invitations(session: Session, invitations: Sequence[Invitation], _: Arguments) -> None:
    names = account_names(session)
    columns = ("id", "user", "scopes", "created", "expires")
    rows = (
        (
            invitation.id,
            names.get(invitation.user, invitation.user),
            " ".join(invitation.scopes),
            invitation.created,
            invitation.expires,
        )
        for invitation in invitations
    )
    session.show_or_exit(invitations, rows_table(columns, rows), "no open invitations")


def _show_link(session: Session, created: NewInvitation, arguments: Arguments) -> None:
    expires = f"{created.invitation.expires:%Y-%m-%d %H:%M} UTC"
    session.note(f"{arguments['user']} logs in with this link, once, until {expires}; it is not shown again")
    session.show(created, created.link)


SESSIONS_COMMANDS: Final = {
    "list": Command(
        "logins:LoginService.list_sessions", "List the open sessions of browsers.",
        arguments={"user": "USER"}, defaults={"user": "*"}, show=_show_sessions, limit=100,
    ),
    "end": Command("logins:LoginService.end_session", "End a session.", "ended the session {session}"),
}  # fmt: skip

INVITATIONS_COMMANDS: Final = {
    "list": Command(
        "logins:LoginService.list_invitations", "List the invitations that nobody has accepted.",
        show=_show_invitations, limit=100,
    ),
    "create": Command(
        "logins:LoginService.create_invitation",
        "Create a link that logs a user in to the console, once.",
        options={"scopes": "--scope"}, show=_show_link,
    ),
    "withdraw": Command(
        "logins:LoginService.withdraw_invitation", "Withdraw an invitation.",
        "withdrew the invitation {invitation}",
    ),
}  # fmt: skip
