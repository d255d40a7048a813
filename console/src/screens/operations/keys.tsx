import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { person } from "../../session";
import { ConfirmButton, Failure, useAction } from "../../ui/action";
import { day } from "../../ui/format";

type Key = Schemas["Key"];
type User = Schemas["User"];
type Scope = Key["scopes"][number];
type Origin = NonNullable<Key["origin"]>;

/** Whose texts a key writes at most, and so how far they are trusted. */
const ORIGINS: readonly (readonly [Origin, string])[] = [
  ["user", "a person"],
  ["agent", "a model"],
  ["import", "an import"],
  ["tool", "a tool"],
  ["web", "the web"],
];

const SCOPES: readonly (readonly [Scope, string])[] = [
  ["read", "read"],
  ["write", "write"],
  ["admin", "users, keys and grants"],
];

/** API keys, and a form for a new one. */
export function Keys({
  keys,
  users,
  onSecret,
  onChanged,
}: {
  keys: readonly Key[];
  users: readonly User[];
  onSecret: (secret: string) => void;
  onChanged: () => void;
}) {
  const { act, failure } = useAction();
  const onKey = ({ secret }: Schemas["NewKey"]) => (onSecret(secret), onChanged());
  const names = new Map(users.map((user) => [user.id, user.name]));
  return (
    <section aria-label="API keys">
      <h2>API keys</h2>
      <NewKey users={users} onCreate={(body) => act(() => api.createKey(body), onKey)} />
      <Failure text={failure} />
      <KeyRows keys={keys} names={names} onKey={onKey} onChanged={onChanged} />
    </section>
  );
}

/** API keys with their last use; each can be revoked, and replaced where the new one can be shown. */
export function KeyRows({
  keys,
  names,
  onKey,
  onChanged,
}: {
  keys: readonly Key[];
  /** The names of their users, by id; those of others are left out. */
  names: ReadonlyMap<string, string>;
  /** Gets the key that replaces one. */
  onKey?: (key: Schemas["NewKey"]) => void;
  onChanged: () => void;
}) {
  return (
    <ul class="list after">
      {keys.map((key) => (
        <li key={key.id} class="operations-key">
          <span class="operations-title">
            <b>{key.label || "no label"}</b> <span class="small dim">{names.get(key.user)}</span>
            <span class="tiny dim mono block-line">{key.id}</span>
          </span>
          <span class="small dim">
            {key.scopes.join(", ")}
            {key.origin !== null && <span class="block-line">writes as {new Map(ORIGINS).get(key.origin)}</span>}
          </span>
          <span class="small dim">{lastUseOf(key)}</span>
          {key.revoked === null ? <Change of={key} onKey={onKey} onChanged={onChanged} /> : <span class="tag">revoked</span>}
        </li>
      ))}
    </ul>
  );
}

/** When any of several keys or sessions was last used; undefined if none ever was. */
export function lastUse(logins: readonly { last_used: string | null }[]): string | undefined {
  const uses = logins.flatMap((login) => login.last_used ?? []);
  return uses.sort().at(-1);
}

function lastUseOf(key: Key): string {
  const last = key.last_used === null ? "never used" : `used ${day(key.last_used)}`;
  if (key.expires === null) return last;
  return `${last}, ${new Date(key.expires) < new Date() ? "expired" : "expires"} ${day(key.expires)}`;
}

/** Replaces or revokes a key, once it is confirmed. */
function Change({ of, onKey, onChanged }: { of: Key; onKey: ((key: Schemas["NewKey"]) => void) | undefined; onChanged: () => void }) {
  const name = of.label || of.id;
  return (
    <span class="cluster">
      {onKey !== undefined && (
        <ConfirmButton
          label="Rotate"
          name={`Rotate ${name}`}
          title={`Replace the key ${name}?`}
          confirm="Replace the key"
          run={() => api.rotateKey({ key: of.id }).then(onKey)}
          onDone={onChanged}
        >
          <p>A new key takes its place; sessions and programs with the old one end, yours too if you logged in with it.</p>
        </ConfirmButton>
      )}
      <ConfirmButton
        label="Revoke"
        name={`Revoke ${name}`}
        title={`Revoke the key ${name}?`}
        run={() => api.revokeKey({ key: of.id })}
        onDone={onChanged}
      >
        <p>Sessions and programs with it end, yours too if you logged in with it. This cannot be undone.</p>
      </ConfirmButton>
    </span>
  );
}

function NewKey({ users, onCreate }: { users: readonly User[]; onCreate: (body: Schemas["CreateKeyBody"]) => void }) {
  const [label, type] = useState("");
  const [user, choose] = useState(person.value?.name ?? "");
  const [scopes, allow] = useState<readonly Scope[]>(["read", "write"]);
  const [expires, until] = useState("");
  const [origin, setOrigin] = useState<Origin | "">("");
  const toggle = (scope: Scope) =>
    allow(scopes.includes(scope) ? scopes.filter((other) => other !== scope) : [...scopes, scope]);
  return (
    <form
      class="cluster after"
      onSubmit={(event) => {
        event.preventDefault();
        onCreate({
          label,
          scopes: [...scopes],
          expires: expires === "" ? null : new Date(`${expires}T00:00:00`).toISOString(),
          origin: origin === "" ? null : origin,
          ...(users.length > 0 ? { user } : {}),
        });
      }}
    >
      {users.length > 0 && (
        <label class="small dim">
          for{" "}
          <select class="pick" value={user} onChange={(event) => choose(event.currentTarget.value)}>
            {users.map((user) => (
              <option key={user.id}>{user.name}</option>
            ))}
          </select>
        </label>
      )}
      <input
        class="field operations-name"
        aria-label="Label of a new key"
        placeholder="Label of a new key"
        value={label}
        onInput={(event) => type(event.currentTarget.value)}
      />
      <span class="cluster" role="group" aria-label="Scopes of a new key">
        {SCOPES.map(([scope, name]) => (
          <label key={scope} class="small">
            <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} /> {name}
          </label>
        ))}
      </span>
      <label class="small dim cluster">
        Writes as
        <select
          class="pick"
          value={origin}
          onChange={(event) => setOrigin(event.currentTarget.value as Origin | "")}
        >
          <option value="">its user</option>
          {ORIGINS.slice(1).map(([origin, name]) => (
            <option key={origin} value={origin}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label class="small dim cluster">
        Expires on
        <input
          class="field operations-date"
          type="date"
          title="Empty: after the days that the server's settings say"
          value={expires}
          onInput={(event) => until(event.currentTarget.value)}
        />
      </label>
      <button class="btn" type="submit" disabled={scopes.length === 0}>
        Create the key
      </button>
    </form>
  );
}
