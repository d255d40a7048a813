"""Users, groups, API keys and grants."""

from functools import partial

from conspectus.model.ids import UserId
from conspectus.records.accounts.acquaintances import list_acquaintances
from conspectus.records.accounts.audit import Change, add_audit, audit_page, note_change
from conspectus.records.accounts.grants import (
    grants_of,
    grants_on,
    hide_sources,
    list_hidden_sources,
    locks_of_grant,
    put_grant,
    revoke,
)
from conspectus.records.accounts.identities import (
    add_group_claim,
    add_identity,
    change_directory_members,
    find_signed_in,
    list_directory_members,
    list_group_claims,
    list_identities,
    list_refused_sign_ins,
    note_refused_sign_in,
    note_sign_in,
    remove_group_claim,
    remove_identity,
)
from conspectus.records.accounts.invitations import (
    accept_invitation,
    add_invitation,
    find_invitation,
    list_invitations,
    withdraw_invitation,
)
from conspectus.records.accounts.keys import add_key, find_key, keys_of, revoke_key, set_key_used
from conspectus.records.accounts.provisioning import (
    add_provisioned_group,
    add_provisioned_user,
    list_provisioned_groups,
    list_provisioned_users,
    put_provisioned_group,
    put_provisioned_user,
    remove_provisioned_user,
)
from conspectus.records.accounts.sessions import (
    add_session,
    end_session,
    find_issuer_sessions,
    find_session,
    list_sessions,
    session_used,
)
from conspectus.records.accounts.user_deletion import find_for_deletion
from conspectus.records.accounts.users import (
    add_group,
    add_member,
    add_user,
    all_groups,
    all_users,
    delete_group,
    find_user,
    members_of,
    remove_member,
    set_user_disabled,
)
from conspectus.records.accounts.viewers import (
    forget_remote,
    list_mirrored_sources,
    list_remote_names,
    list_remote_people,
    list_unreadable_sources,
    map_remote_person,
    mirror_source,
    put_remote_members,
)
from conspectus.records.core.collections import viewers_version
from conspectus.records.core.lock_names import name_lock, row_lock
from conspectus.records.core.store_methods import SqlStore, cached, reading, writing
from conspectus.records.tables.core import (
    account_changes,
    collections,
    group_claims,
    groups,
    identities,
    invitations,
    keys,
    provisioned_users,
    refused_sign_ins,
    remote_members,
    remote_people,
    sessions,
    sources,
    users,
)


class SqlAccounts(SqlStore):
    """The methods of the port `Accounts`, each as one transaction; see the port for their docs."""

    add_user = writing(add_user, locks=lambda user, change=None: {name_lock(users, user.name)})
    set_user_disabled = writing(set_user_disabled, locks=lambda user, **_: {row_lock(users, user)})
    users = reading(all_users)
    user = cached(find_user, single=True)
    list_acquaintances = reading(list_acquaintances)
    add_group = writing(add_group, locks=lambda group, change=None: {name_lock(groups, group.name)})
    delete_group = writing(delete_group, locks=lambda group, change=None: {row_lock(groups, group)})
    groups = reading(all_groups)
    members = reading(members_of)
    join = writing(
        add_member, locks=lambda group, user, change=None: {row_lock(groups, group), row_lock(users, user)}
    )
    leave = writing(remove_member, locks=lambda group, user, change=None: {row_lock(groups, group)})
    add_key = writing(add_key, locks=lambda key, secret_hash, change=None: {row_lock(users, key.user)})
    key = cached(find_key, single=True)
    keys = reading(keys_of)
    revoke_key = writing(revoke_key, locks=lambda key, at, change=None: {row_lock(keys, key)})
    note_key_use = writing(set_key_used, locks=lambda key, at: {row_lock(keys, key)})
    put_grant = writing(put_grant, locks=lambda grant, change=None: locks_of_grant(grant))
    revoke = writing(revoke, locks=lambda collection, *_: {row_lock(collections, collection)})
    grants = reading(grants_on)
    grants_of = cached(grants_of, single=True)
    list_hidden_sources = cached(list_hidden_sources, single=True)
    hide_sources = writing(hide_sources, locks=lambda names, **_: {row_lock(sources, name) for name in names})
    mirror_source = writing(mirror_source, rows=sources, locks=lambda source, *_: {row_lock(sources, source)})
    viewers_version = cached(viewers_version, single=True)
    list_mirrored_sources = reading(list_mirrored_sources)
    list_unreadable_sources = cached(list_unreadable_sources, single=True)
    put_remote_members = writing(
        put_remote_members, locks=lambda remote, members, **_: {row_lock(remote_members, remote)}
    )
    list_remote_names = reading(list_remote_names)
    list_remote_people = reading(list_remote_people)
    map_remote_person = writing(
        map_remote_person, locks=lambda remote, person, **_: {row_lock(remote_people, remote)}
    )
    forget_remote = writing(
        forget_remote,
        locks=lambda remote: {row_lock(remote_members, remote), row_lock(remote_people, remote)},
    )
    add_audit = writing(add_audit, locks=lambda entry: {row_lock(collections, entry.collection)})
    add_change = writing(
        note_change, locks=lambda change: {row_lock(account_changes, change.id if change else "")}
    )
    audit = reading(audit_page)
    add_session = writing(
        add_session, locks=lambda session, secret_hash, change=None: {row_lock(users, session.user)}
    )
    session = cached(find_session, single=True)
    sessions = reading(list_sessions)
    find_issuer_sessions = reading(find_issuer_sessions)
    session_used = writing(session_used, locks=lambda session, at: {row_lock(sessions, session)})
    end_session = writing(end_session, locks=lambda session, change=None: {row_lock(sessions, session)})
    add_invitation = writing(
        add_invitation, locks=lambda invitation, secret_hash, change=None: {row_lock(users, invitation.user)}
    )
    invitation = reading(find_invitation)
    invitations = reading(list_invitations)
    withdraw_invitation = writing(
        withdraw_invitation, locks=lambda invitation, change=None: {row_lock(invitations, invitation)}
    )
    accept_invitation = writing(
        accept_invitation,
        locks=lambda invitation, session, *_: {
            row_lock(invitations, invitation),
            row_lock(users, session.user),
        },
    )

    add_identity = writing(
        add_identity,
        locks=lambda identity, change=None, *, new_user=None: {
            row_lock(identities, identity.id),
            row_lock(users, identity.user),
            *(() if new_user is None else (name_lock(users, new_user.name),)),
        },
    )
    find_sign_in = cached(find_signed_in, single=True)
    identities = reading(list_identities)
    remove_identity = writing(
        remove_identity,
        locks=lambda identity, change=None: {
            row_lock(identities, identity.id),
            row_lock(users, identity.user),
        },
    )
    note_sign_in = writing(
        note_sign_in,
        locks=lambda identity, issued, *, first, joined, left: {
            row_lock(identities, identity.id),
            row_lock(users, identity.user),
            *(row_lock(groups, group) for group in (*joined, *left)),
        },
    )
    add_group_claim = writing(
        add_group_claim, locks=lambda group_claim, change=None: {row_lock(groups, group_claim.group)}
    )
    group_claims = cached(list_group_claims)
    remove_group_claim = writing(
        remove_group_claim,
        locks=lambda group_claim, change=None: {
            row_lock(group_claims, group_claim.id),
            row_lock(groups, group_claim.group),
        },
    )

    note_refused_sign_in = writing(
        note_refused_sign_in, locks=lambda refused: {row_lock(refused_sign_ins, refused.id)}
    )
    list_refused_sign_ins = reading(list_refused_sign_ins)
    list_directory_members = reading(list_directory_members)
    change_directory_members = writing(
        change_directory_members,
        locks=lambda issuer, *, joined, left: {
            *(row_lock(groups, membership.group) for membership in (*joined, *left)),
            *(row_lock(users, membership.user) for membership in (*joined, *left)),
        },
    )

    add_provisioned_user = writing(
        add_provisioned_user,
        locks=lambda provisioned, change=None, *, identity=None, is_new=True: {
            row_lock(users, provisioned.user.id),
            name_lock(users, provisioned.user.name),
            name_lock(provisioned_users, provisioned.user_name.casefold()),
            *(() if identity is None else (row_lock(identities, identity.id),)),
        },
    )
    provisioned_users = reading(list_provisioned_users)
    put_provisioned_user = writing(
        put_provisioned_user,
        locks=lambda provisioned, change=None: {
            row_lock(users, provisioned.user.id),
            name_lock(provisioned_users, provisioned.user_name.casefold()),
        },
    )
    remove_provisioned_user = writing(
        remove_provisioned_user, locks=lambda user, change=None: {row_lock(users, user)}
    )
    add_provisioned_group = writing(
        add_provisioned_group,
        locks=lambda provisioned, change=None: {name_lock(groups, provisioned.group.name)},
    )
    provisioned_groups = reading(list_provisioned_groups)
    put_provisioned_group = writing(
        put_provisioned_group,
        locks=lambda provisioned, change=None, *, joined, left: {
            row_lock(groups, provisioned.group.id),
            *(row_lock(users, user) for user in (*joined, *left)),
        },
    )

    async def delete_user(
        self, user: UserId, *, transfer_to: UserId | None = None, change: Change = None, purge: bool = False
    ) -> None:
        find = partial(find_for_deletion, user=user, transfer_to=transfer_to, change=change, purge=purge)
        await self.transactions.write_with_found_locks(find, long=True)
