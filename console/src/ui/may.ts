/** What the person may do, as the server says: their roles, and what their key is for. */
import { api, type Schemas } from "../api/client";
import { ifAllowed } from "../api/lists";
import { person } from "../session";
import { useLoad } from "./load";

export type Role = NonNullable<Schemas["EffectiveRole"]["role"]>;

const ROLES: readonly Role[] = ["viewer", "editor", "manager", "owner"];

/** Says whether the person has a role on a collection, or on a source of it by id. */
export type May = (role: Role, source?: string) => boolean;

/** Buttons wait for the answer: none is there that would be refused. */
export function useMay(collection: string): May {
  const who = person.value;
  const isOwner = who == null || who.owner;
  const roles = useLoad(
    (signal) => (isOwner ? undefined : ifAllowed(api.effectiveRoles({ user: who.id, collection }, { signal }))),
    [who?.id, collection],
  );
  return (role, source) => {
    if (who != null && !who.scopes.includes("write")) return false;
    if (isOwner) return true;
    const rows = roles.data?.filter((row) => row.source === null || row.source === source) ?? [];
    return rows.some((row) => row.role !== null && ROLES.indexOf(row.role) >= ROLES.indexOf(role));
  };
}
