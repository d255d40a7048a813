"""People, keys, access, jobs, connections, files and maintenance, blocking."""

from conspectus.bridge.blocking_methods import blocking
from conspectus.engine.access import AccessService
from conspectus.engine.connections import ConnectionService
from conspectus.engine.files import FileService
from conspectus.engine.identities import IdentityService
from conspectus.engine.jobs import JobService
from conspectus.engine.keys import KeyService
from conspectus.engine.logins import LoginService
from conspectus.engine.maintenance import MaintenanceService
from conspectus.engine.people import PeopleService
from conspectus.sync.blocking_service import BlockingService


class BlockingPeople(BlockingService[PeopleService]):
    """Users and groups."""

    whoami = blocking(PeopleService.whoami)
    create_user = blocking(PeopleService.create_user)
    list_users = blocking(PeopleService.list_users)
    get_user = blocking(PeopleService.get_user)
    set_user_disabled = blocking(PeopleService.set_user_disabled)
    delete_user = blocking(PeopleService.delete_user)
    create_group = blocking(PeopleService.create_group)
    list_groups = blocking(PeopleService.list_groups)
    delete_group = blocking(PeopleService.delete_group)
    list_members = blocking(PeopleService.list_members)
    add_member = blocking(PeopleService.add_member)
    remove_member = blocking(PeopleService.remove_member)


class BlockingKeys(BlockingService[KeyService]):
    """API keys."""

    create = blocking(KeyService.create)
    list = blocking(KeyService.list)
    revoke = blocking(KeyService.revoke)
    rotate = blocking(KeyService.rotate)
    authenticate = blocking(KeyService.authenticate)
    create_first = blocking(KeyService.create_first)


class BlockingLogins(BlockingService[LoginService]):
    """Sessions of browsers, and invitations with which users without a key log in."""

    list_sessions = blocking(LoginService.list_sessions)
    end_session = blocking(LoginService.end_session)
    create_invitation = blocking(LoginService.create_invitation)
    list_invitations = blocking(LoginService.list_invitations)
    withdraw_invitation = blocking(LoginService.withdraw_invitation)
    accept_invitation = blocking(LoginService.accept_invitation)


class BlockingIdentities(BlockingService[IdentityService]):
    """Identities of users at an issuer of tokens, and the claims that lead to groups."""

    list_identities = blocking(IdentityService.list_identities)
    map_identity = blocking(IdentityService.map_identity)
    unmap_identity = blocking(IdentityService.unmap_identity)
    list_refused_sign_ins = blocking(IdentityService.list_refused_sign_ins)
    list_group_claims = blocking(IdentityService.list_group_claims)
    map_group_claim = blocking(IdentityService.map_group_claim)
    sync_groups = blocking(IdentityService.sync_groups)
    unmap_group_claim = blocking(IdentityService.unmap_group_claim)
    start = blocking(IdentityService.start)


class BlockingAccess(BlockingService[AccessService]):
    """Grants, the roles that they give, and the audit log."""

    grant = blocking(AccessService.grant)
    revoke = blocking(AccessService.revoke)
    list_grants = blocking(AccessService.list_grants)
    effective_roles = blocking(AccessService.effective_roles)
    list_readers = blocking(AccessService.list_readers)
    list_audit = blocking(AccessService.list_audit)


class BlockingJobs(BlockingService[JobService]):
    """Jobs: ingestion of pages and files in the background, and job status."""

    ingest_url = blocking(JobService.ingest_url)
    ingest_files = blocking(JobService.ingest_files)
    preview_files = blocking(JobService.preview_files)
    get = blocking(JobService.get)
    list = blocking(JobService.list)
    cancel = blocking(JobService.cancel)
    retry = blocking(JobService.retry)
    wait = blocking(JobService.wait)
    report = blocking(JobService.report)
    list_requests = blocking(JobService.list_requests)
    request_totals = blocking(JobService.request_totals)
    start = blocking(JobService.start)


class BlockingConnections(BlockingService[ConnectionService]):
    """Connections of collections to wikis, repositories and folders."""

    create = blocking(ConnectionService.create)
    set_credentials = blocking(ConnectionService.set_credentials)
    list_people = blocking(ConnectionService.list_people)
    map_person = blocking(ConnectionService.map_person)
    list_connectors = blocking(ConnectionService.list_connectors)
    list = blocking(ConnectionService.list)
    delete = blocking(ConnectionService.delete)
    sync = blocking(ConnectionService.sync)
    watch = blocking(ConnectionService.watch)
    start = blocking(ConnectionService.start)


class BlockingFiles(BlockingService[FileService]):
    """Documents as files: list, read, find, and search lines for a pattern."""

    list = blocking(FileService.list)
    read = blocking(FileService.read)
    find = blocking(FileService.find)
    grep = blocking(FileService.grep)


class BlockingMaintenance(BlockingService[MaintenanceService]):
    """Status, consistency checks, and rebuilding."""

    status = blocking(MaintenanceService.status)
    scan = blocking(MaintenanceService.scan)
    check = blocking(MaintenanceService.check)
    reindex = blocking(MaintenanceService.reindex)
    reembed = blocking(MaintenanceService.reembed)
    resume = blocking(MaintenanceService.resume)
    finish_purges = blocking(MaintenanceService.finish_purges)
