/** A page of one person: their roles and who gave them, groups, keys, sessions, identities; each can be taken away. */
import { Link } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { ifAllowed, inCollections } from "../../api/lists";
import { ConfirmButton, Failure, useAction } from "../../ui/action";
import { counted, day, instant } from "../../ui/format";
import { Show, State, useLoad } from "../../ui/load";
import { KeyRows, lastUse } from "./keys";
import { Sessions } from "./logins";

type User = Schemas["User"];
type Group = Schemas["Group"];

/** A grant with the names of what it is on, and the group by which the person has it. */
interface NamedGrant {
  grant: Schemas["Grant"];
  collection: string;
  /** undefined: the whole collection. */
  source: string | undefined;
  /** undefined: the person's own. */
  group: Group | undefined;
}

interface Account {
  user: User;
  users: readonly User[];
  groups: readonly Group[];
  grants: readonly NamedGrant[];
  keys: readonly Schemas["Key"][];
  sessions: readonly Schemas["Session"][];
  identities: readonly Schemas["Identity"][];
}

/** The address of the page of a person. */
export const personPath = (user: string): string => `/operations?part=people&person=${encodeURIComponent(user)}`;

async function readAccount(id: string, signal: AbortSignal): Promise<Account | undefined> {
  const [users, groups, keys, sessions, identities] = await Promise.all([
    api.listUsers({}, { signal }),
    api.listGroups({}, { signal }),
    api.listKeys({ user: id }, { signal }),
    api.listSessions({ user: id }, { signal }),
    api.listIdentities({ user: id }, { signal }),
  ]);
  const user = users.find((account) => account.id === id);
  if (user === undefined) return undefined;
  const memberships = await Promise.all(
    groups.map(async (group) => {
      const members = await api.listMembers({ group: group.id }, { signal });
      return members.some((member) => member.id === id) ? [group] : [];
    }),
  );
  const ownGroups = memberships.flat();
  return { user, users, groups: ownGroups, grants: await readGrants(id, ownGroups, signal), keys, sessions, identities };
}

/** The grants of a person and of their groups, on all collections. */
function readGrants(user: string, groups: readonly Group[], signal: AbortSignal): Promise<NamedGrant[]> {
  return inCollections(signal, async (collection) => {
    const grants = await ifAllowed(api.listGrants({ collection }, { signal }));
    const ofPerson = grants.filter(({ grantee }) => grantee.id === user || groups.some((group) => group.id === grantee.id));
    if (ofPerson.length === 0) return [];
    const sources = new Map((await api.listSources({ collection }, { signal })).map((source) => [source.id, source.name]));
    return ofPerson.map((grant) => ({
      grant,
      collection,
      source: grant.source === null ? undefined : (sources.get(grant.source) ?? grant.source),
      group: groups.find((group) => group.id === grant.grantee.id),
    }));
  });
}

export function PersonPage({ id }: { id: string }) {
  const loaded = useLoad((signal) => readAccount(id, signal), [id]);
  return (
    <Show of={{ ...loaded, data: loaded.data ?? (loaded.busy || loaded.error !== undefined ? undefined : null) }} what="the person">
      {(account) =>
        account === null ? (
          <State title="There is no such person">
            <Link class="link" href="/operations?part=people">
              All users
            </Link>
          </State>
        ) : (
          <Sections account={account} onChanged={loaded.reload} />
        )
      }
    </Show>
  );
}

function Sections({ account, onChanged }: { account: Account; onChanged: () => void }) {
  const { user, users, keys, sessions, identities } = account;
  const lastSeen = lastUse([...keys, ...sessions]);
  return (
    <>
      <nav class="small crumbs" aria-label="Place">
        <Link class="link" href="/operations?part=people">
          All users
        </Link>
      </nav>
      <h1>
        {user.name} {user.owner && <span class="tag">owner</span>} {user.disabled && <span class="tag bad">disabled</span>}
      </h1>
      <p class="sub">
        Here since {day(user.created)}, {lastSeen === undefined ? "and never seen" : `last seen ${instant(lastSeen)}`}
      </p>
      <Roles account={account} onChanged={onChanged} />
      <Memberships account={account} onChanged={onChanged} />
      <section aria-label="API keys">
        <h2>{counted(keys.length, "API key")}</h2>
        <KeyRows keys={keys} names={new Map()} onChanged={onChanged} />
      </section>
      <Sessions sessions={sessions} users={users} onChanged={onChanged} />
      {identities.length > 0 && <Identities account={account} onChanged={onChanged} />}
    </>
  );
}

/** The roles of a person: each grant with its giver and time. Those by a group end with the membership. */
function Roles({ account: { user, users, grants }, onChanged }: { account: Account; onChanged: () => void }) {
  const names = new Map(users.map(({ id, name }) => [id, name]));
  return (
    <section aria-label="Grants">
      <h2>{counted(grants.length, "grant")}</h2>
      {grants.length === 0 && (
        <p class="sub">{user.owner ? "The owner account needs none." : `Nobody granted ${user.name} or a group of theirs a role.`}</p>
      )}
      <ul class="list after">
        {grants.map(({ grant, collection, source, group }) => {
          const on = source === undefined ? collection : `${source} of ${collection}`;
          const giver = grant.granted_by === null ? undefined : (names.get(grant.granted_by) ?? grant.granted_by_name ?? grant.granted_by);
          return (
            <li key={`${collection}/${grant.source}/${grant.grantee.id}`} class="grant-row">
              <span class="operations-title">
                <b>{grant.role}</b> on {on} {group !== undefined && <span class="tag">by the group {group.name}</span>}
              </span>
              <span class="small dim">
                {giver === undefined ? "giver not noted" : `granted by ${giver}`}, {instant(grant.created)}
              </span>
              {group === undefined && (
                <ConfirmButton
                  label="Revoke"
                  name={`Revoke ${grant.role} on ${on}`}
                  title={`Revoke ${grant.role} of ${user.name}?`}
                  run={() => api.revokeGrant({ collection, kind: "user", id: user.id, ...(grant.source === null ? {} : { source: grant.source }) })}
                  onDone={onChanged}
                >
                  <p>
                    From the next request on, {user.name} has no role on {on} by this grant.
                  </p>
                </ConfirmButton>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Memberships({ account: { user, groups }, onChanged }: { account: Account; onChanged: () => void }) {
  const { act, failure } = useAction();
  if (groups.length === 0) return null;
  return (
    <section aria-label="Groups of the person">
      <h2>Member of {counted(groups.length, "group")}</h2>
      <p class="cluster after">
        {groups.map((group) => (
          <button
            key={group.id}
            class="chip"
            type="button"
            aria-label={`Remove ${user.name} from ${group.name}`}
            onClick={() => act(() => api.removeMember({ group: group.id, user: user.id }), onChanged)}
          >
            <span class="ellipsis">{group.name}</span> <span aria-hidden="true">×</span>
          </button>
        ))}
      </p>
      <Failure text={failure} />
    </section>
  );
}

/** Accounts of an identity provider that sign in as the person. */
function Identities({ account: { user, identities }, onChanged }: { account: Account; onChanged: () => void }) {
  return (
    <section aria-label="Identities">
      <h2>{counted(identities.length, "identity", "identities")}</h2>
      <ul class="list after">
        {identities.map((identity) => (
          <li key={identity.id} class="grant-row">
            <span class="operations-title">
              <b>{identity.subject}</b> <span class="tiny dim block-line">{identity.issuer}</span>
            </span>
            <span class="small dim">
              {identity.mapped_by_name === null ? "giver not noted" : `mapped by ${identity.mapped_by_name}`}, {instant(identity.created)}
            </span>
            <ConfirmButton
              label="Unmap"
              name={`Unmap ${identity.subject}`}
              title={`Unmap ${identity.subject} from ${user.name}?`}
              run={() => api.unmapIdentity({ identity: identity.id })}
              onDone={onChanged}
            >
              <p>Who signs in as it is no longer {user.name}.</p>
            </ConfirmButton>
          </li>
        ))}
      </ul>
    </section>
  );
}
