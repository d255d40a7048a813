import { useState } from "preact/hooks";
import { api, take, type Schemas } from "../../api/client";
import { person } from "../../session";
import { CopyButton, Dialog } from "../../ui/controls";
import { counted, day } from "../../ui/format";
import { asProblem, Show, useLoad } from "../../ui/load";

type Key = Schemas["Key"];
type User = Schemas["User"];

const owner = (): boolean => person.value?.owner === true;

export function People() {
  const [secret, show] = useState("");
  const loaded = useLoad(async (signal) => {
    const query = owner() ? { user: "*" } : {};
    const keys = await take(api.GET("/api/v1/keys", { params: { query }, signal }));
    if (!owner()) return { keys, users: [], groups: [] };
    const [users, groups] = await Promise.all([
      take(api.GET("/api/v1/users", { signal })),
      take(api.GET("/api/v1/groups", { signal })),
    ]);
    return { keys, users, groups };
  }, []);
  return (
    <Show of={loaded} what="users and keys">
      {({ keys, users, groups }) => (
        <>
          <h1>
            {counted(keys.filter((each) => each.revoked === null).length, "API key")}
            {owner() && `, ${counted(users.length, "user")}, ${counted(groups.length, "group")}`}
          </h1>
          {owner() && <Users users={users} onChanged={loaded.reload} />}
          <Keys keys={keys} users={users} onSecret={show} onChanged={loaded.reload} />
          {owner() && <Groups groups={groups} />}
          {secret !== "" && (
            <Dialog title="The new API key" onClose={() => show("")}>
              <p class="sub">It is shown once. Copy it now.</p>
              <pre>{secret}</pre>
              <CopyButton text={secret} label="Copy the key" />
            </Dialog>
          )}
        </>
      )}
    </Show>
  );
}

function Users({ users, onChanged }: { users: readonly User[]; onChanged: () => void }) {
  const [name, type] = useState("");
  const [failure, fail] = useState("");
  const act = async (request: Promise<unknown>) => {
    try {
      await request;
      fail("");
      type("");
      onChanged();
    } catch (error) {
      fail(asProblem(error).message);
    }
  };
  return (
    <section>
      <h2>Users</h2>
      <form
        class="cluster after"
        onSubmit={(event) => {
          event.preventDefault();
          void act(take(api.POST("/api/v1/users", { body: { name } })));
        }}
      >
        <input
          class="field operations-name"
          required
          aria-label="Name of a new user"
          placeholder="Name of a new user"
          value={name}
          onInput={(event) => type(event.currentTarget.value)}
        />
        <button class="btn" type="submit">
          Create the user
        </button>
      </form>
      {failure !== "" && (
        <p class="failed" role="alert">
          {failure}
        </p>
      )}
      <ul class="list after">
        {users.map((each) => (
          <li key={each.id} class="row">
            <span>
              <b>{each.name}</b> {each.owner && <span class="tag">owner</span>}{" "}
              {each.disabled && <span class="tag bad">disabled</span>}
            </span>
            {!each.owner && (
              <button
                class="btn compact"
                type="button"
                aria-label={`${each.disabled ? "Enable" : "Disable"} ${each.name}`}
                onClick={() => {
                  const params = { path: { user: each.id } };
                  void act(take(api.PATCH("/api/v1/users/{user}", { params, body: { disabled: !each.disabled } })));
                }}
              >
                {each.disabled ? "Enable" : "Disable"}
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Keys({
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
  const [label, type] = useState("");
  const [user, choose] = useState(person.value?.name ?? "");
  const [failure, fail] = useState("");
  const names = new Map(users.map((each) => [each.id, each.name]));
  const act = async (request: Promise<{ secret?: string } | undefined>) => {
    try {
      const made = await request;
      fail("");
      if (made?.secret !== undefined) onSecret(made.secret);
      onChanged();
    } catch (error) {
      fail(asProblem(error).message);
    }
  };
  return (
    <section>
      <h2>API keys</h2>
      <form
        class="cluster after"
        onSubmit={(event) => {
          event.preventDefault();
          const body = { label, ...(users.length > 0 ? { user } : {}) } as Schemas["CreateKeyBody"];
          void act(take(api.POST("/api/v1/keys", { body })));
        }}
      >
        {users.length > 0 && (
          <label class="small dim">
            for{" "}
            <select class="pick" value={user} onChange={(event) => choose(event.currentTarget.value)}>
              {users.map((each) => (
                <option key={each.id}>{each.name}</option>
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
        <button class="btn" type="submit">
          Create the key
        </button>
      </form>
      {failure !== "" && (
        <p class="failed" role="alert">
          {failure}
        </p>
      )}
      <ul class="list after">
        {keys.map((each) => {
          const params = { path: { key: each.id } };
          return (
            <li key={each.id} class="operations-key">
              <span class="operations-title">
                <b>{each.label || "no label"}</b> <span class="small dim">{names.get(each.user)}</span>
                <span class="tiny dim mono block-line">{each.id}</span>
              </span>
              <span class="small dim">{each.scopes.join(", ")}</span>
              <span class="small dim">{used(each)}</span>
              {each.revoked === null ? (
                <span class="cluster">
                  <button
                    class="btn compact"
                    type="button"
                    onClick={() => void act(take(api.POST("/api/v1/keys/{key}/rotate", { params })))}
                  >
                    Rotate
                  </button>
                  <button
                    class="btn compact danger"
                    type="button"
                    onClick={() => void act(take(api.DELETE("/api/v1/keys/{key}", { params })).then(() => undefined))}
                  >
                    Revoke
                  </button>
                </span>
              ) : (
                <span class="tag">revoked</span>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function used(key: Key): string {
  const last = key.last_used === null ? "never used" : `used ${day(key.last_used)}`;
  return key.expires === null ? last : `${last}, expires ${day(key.expires)}`;
}

function Groups({ groups }: { groups: readonly Schemas["Group"][] }) {
  const members = useLoad(
    (signal) =>
      Promise.all(
        groups.map((each) =>
          take(api.GET("/api/v1/groups/{group}/members", { params: { path: { group: each.id } }, signal })),
        ),
      ),
    [groups],
  );
  if (groups.length === 0) return null;
  return (
    <section>
      <h2>Groups</h2>
      <ul class="list after">
        {groups.map((each, at) => (
          <li key={each.id} class="row">
            <b>{each.name}</b>
            <span class="small dim">{members.data?.[at]?.map((user) => user.name).join(", ") || "no members"}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
