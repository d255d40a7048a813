import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { person } from "../../session";
import { ConfirmButton, Failure, useAction } from "../../ui/action";
import { useAddress } from "../../ui/address";
import { textField } from "../../ui/address-fields";
import { CopyButton, Dialog } from "../../ui/controls";
import { counted } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { Groups } from "./groups";
import { Keys } from "./keys";
import { Invitations, Sessions } from "./logins";
import { PersonPage, personPath } from "./person";

type User = Schemas["User"];

const FIELDS = { person: textField() };

const owner = (): boolean => person.value?.owner === true;
const mayAdminister = (): boolean => person.value?.scopes.includes("admin") === true;

/** Who the person is; users, keys and groups only with a key that may read them. */
export function People() {
  const [{ person: requested }] = useAddress(FIELDS);
  if (requested !== "" && owner()) return <PersonPage key={requested} id={requested} />;
  return (
    <>
      {mayAdminister() ? <Accounts /> : <OnlySelf />}
      <Self />
    </>
  );
}

function OnlySelf() {
  return (
    <>
      <h1>{person.value?.name}</h1>
      <p class="sub">Log in with a key that has the scope for users, keys and grants to see and change your API keys.</p>
    </>
  );
}

/** The id of the person, by which others can give them a role. */
function Self() {
  const id = person.value?.id ?? "";
  return (
    <section aria-label="Your id">
      <h2>Your id</h2>
      <p class="sub">
        Give it to somebody who grants roles but shares no group, collection or source with you: they cannot reach you by
        name.
      </p>
      <p class="cluster after">
        <span class="mono">{id}</span>
        <CopyButton text={id} label="Copy your id" />
      </p>
    </section>
  );
}

function Accounts() {
  const [secret, show] = useState("");
  const [link, showLink] = useState("");
  const loaded = useLoad(async (signal) => {
    const query = owner() ? { user: "*" } : {};
    const [keys, sessions] = await Promise.all([
      api.listKeys(query, { signal }),
      api.listSessions(query, { signal }),
    ]);
    if (!owner()) return { keys, sessions, invitations: [], users: [], groups: [] };
    const [users, groups, invitations] = await Promise.all([
      api.listUsers({}, { signal }),
      api.listGroups({}, { signal }),
      api.listInvitations({}, { signal }),
    ]);
    return { keys, sessions, invitations, users, groups };
  }, []);
  return (
    <Show of={loaded} what="users and keys">
      {({ keys, sessions, invitations, users, groups }) => (
        <>
          <h1>
            {counted(keys.filter((key) => key.revoked === null).length, "API key")}
            {owner() && `, ${counted(users.length, "user")}, ${counted(groups.length, "group")}`}
          </h1>
          {owner() && <Users users={users} onLink={showLink} onChanged={loaded.reload} />}
          <Invitations invitations={invitations} users={users} onChanged={loaded.reload} />
          <Keys keys={keys} users={users} onSecret={show} onChanged={loaded.reload} />
          <Sessions sessions={sessions} users={users} onChanged={loaded.reload} />
          {owner() && <Groups groups={groups} users={users} onChanged={loaded.reload} />}
          {secret !== "" && (
            <Dialog title="The new API key" onClose={() => show("")}>
              <p class="sub">It is shown once. Copy it now.</p>
              <pre>{secret}</pre>
              <CopyButton text={secret} label="Copy the key" />
            </Dialog>
          )}
          {link !== "" && (
            <Dialog title="The invitation" onClose={() => showLink("")}>
              <p class="sub">The link logs one person in, once. It is shown once: copy it now, and send it over a channel that you trust.</p>
              <pre>{link}</pre>
              <CopyButton text={link} label="Copy the link" />
            </Dialog>
          )}
        </>
      )}
    </Show>
  );
}

/** A field for the name of something new, with its button. */
export function NewName({ what, create }: { what: string; create: (name: string, done: () => void) => void }) {
  const [name, type] = useState("");
  return (
    <form
      class="cluster after"
      onSubmit={(event) => {
        event.preventDefault();
        create(name, () => type(""));
      }}
    >
      <input
        class="field operations-name"
        required
        aria-label={`Name of a new ${what}`}
        placeholder={`Name of a new ${what}`}
        value={name}
        onInput={(event) => type(event.currentTarget.value)}
      />
      <button class="btn" type="submit">
        Create the {what}
      </button>
    </form>
  );
}

function Users({
  users,
  onLink,
  onChanged,
}: {
  users: readonly User[];
  onLink: (link: string) => void;
  onChanged: () => void;
}) {
  const { act, failure } = useAction();
  const invite = ({ id }: User) => act(() => api.createInvitation({ user: id }), ({ link }) => (onLink(link), onChanged()));
  const disable = ({ id, disabled }: User) => {
    act(() => api.setUserDisabled({ user: id, disabled: !disabled }), onChanged);
  };
  return (
    <section aria-label="Users">
      <h2>Users</h2>
      <NewName
        what="user"
        create={(name, done) =>
          act(() => api.createUser({ name }), () => (done(), onChanged()))
        }
      />
      <Failure text={failure} />
      <ul class="list after">
        {users.map((user) => (
          <li key={user.id} class="row operations-user">
            <span class="operations-title">
              <Link class="link" href={personPath(user.id)}>
                {user.name}
              </Link>{" "}
              {user.owner && <span class="tag">owner</span>}{" "}
              {user.disabled && <span class="tag bad">disabled</span>}
            </span>
            {!user.owner && (
              <span class="cluster">
                {!user.disabled && (
                  <button
                    class="btn compact"
                    type="button"
                    aria-label={`Invite ${user.name}`}
                    onClick={() => invite(user)}
                  >
                    Invite
                  </button>
                )}
                <button
                  class="btn compact"
                  type="button"
                  aria-label={`${user.disabled ? "Enable" : "Disable"} ${user.name}`}
                  onClick={() => disable(user)}
                >
                  {user.disabled ? "Enable" : "Disable"}
                </button>
                <DeleteUser user={user} others={users.filter((other) => other !== user)} onChanged={onChanged} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Deletes a user; what it owns goes to another one. */
function DeleteUser({ user, others, onChanged }: { user: User; others: readonly User[]; onChanged: () => void }) {
  const [follower, choose] = useState("");
  return (
    <ConfirmButton
      label="Delete"
      name={`Delete ${user.name}`}
      title={`Delete the user ${user.name}?`}
      run={() => api.deleteUser({ user: user.id, transfer_to: follower === "" ? null : follower })}
      onDone={onChanged}
    >
      <p>The keys, grants and memberships of {user.name} end. This cannot be undone.</p>
      <label class="after block-line">
        <span class="label">Collections and jobs of {user.name} go to</span>
        <select class="pick operations-name" value={follower} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">nobody, there are none</option>
          {others.map((user) => (
            <option key={user.id} value={user.id}>
              {user.name}
            </option>
          ))}
        </select>
      </label>
    </ConfirmButton>
  );
}
