"""Users, groups, API keys and grants of a server."""

from conspectus.client.operations import remote
from conspectus.client.upkeep import Upkeep
from conspectus.engine import Engine


class People(Upkeep):
    """Who may see and do what."""

    whoami = remote(Engine.whoami)
    create_user = remote(Engine.create_user)
    users = remote(Engine.users)
    find_user = remote(Engine.find_user)
    disable_user = remote(Engine.disable_user)
    delete_user = remote(Engine.delete_user)
    create_group = remote(Engine.create_group)
    groups = remote(Engine.groups)
    delete_group = remote(Engine.delete_group)
    members = remote(Engine.members)
    join = remote(Engine.join)
    leave = remote(Engine.leave)
    create_key = remote(Engine.create_key)
    keys = remote(Engine.keys)
    revoke_key = remote(Engine.revoke_key)
    rotate_key = remote(Engine.rotate_key)
    grant = remote(Engine.grant)
    revoke = remote(Engine.revoke)
    grants = remote(Engine.grants)
