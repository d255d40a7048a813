"""The operations on identities of users at issuers, and on claims of groups, each declared once."""

from typing import Final

from conspectus.engine.identities import IdentityService
from conspectus.operations.operation import Operation

IDENTITY_OPERATIONS: Final = (
    Operation(IdentityService.list_identities, "GET", "/identities", for_models="never"),
    Operation(
        IdentityService.map_identity, "POST", "/identities", status=201, for_models="never", audited=True
    ),
    Operation(
        IdentityService.unmap_identity,
        "DELETE",
        "/identities/{identity}",
        status=204,
        for_models="never",
        audited=True,
    ),
    Operation(IdentityService.list_refused_sign_ins, "GET", "/refused-sign-ins", for_models="never"),
    Operation(IdentityService.list_group_claims, "GET", "/group-claims", for_models="never"),
    Operation(
        IdentityService.map_group_claim, "POST", "/group-claims", status=201, for_models="never", audited=True
    ),
    Operation(IdentityService.sync_groups, "POST", "/group-claims/sync", for_models="never"),
    Operation(
        IdentityService.unmap_group_claim,
        "DELETE",
        "/group-claims/{group_claim}",
        status=204,
        for_models="never",
        audited=True,
    ),
)
