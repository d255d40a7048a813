/** Who signs in as whom: subjects of an identity provider that are mapped to people, and those that nobody is mapped to. */
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { ConfirmButton, Failure, useAction } from "../../ui/action";
import { counted, instant } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { personPath } from "./person";

type Identity = Schemas["Identity"];
type RefusedSignIn = Schemas["RefusedSignIn"];
type User = Schemas["User"];

export function Identities() {
  const [unmapped, setUnmapped] = useState<Identity>();
  const loaded = useLoad(async (signal) => {
    const [identities, refused, users] = await Promise.all([
      api.listIdentities({}, { signal }),
      api.listRefusedSignIns({}, { signal }),
      api.listUsers({}, { signal }),
    ]);
    return { identities, refused, users };
  }, []);
  const changed = (identity?: Identity) => {
    setUnmapped(identity);
    loaded.reload();
  };
  return (
    <Show of={loaded} what="the identities">
      {({ identities, refused, users }) => (
        <>
          <h1>
            {counted(identities.length, "identity", "identities")}
            {refused.length > 0 && `, ${counted(refused.length, "subject")} without one`}
          </h1>
          {unmapped !== undefined && <Undo identity={unmapped} onDone={changed} />}
          <Refused refused={refused} users={users} onChanged={changed} />
          <Mapped identities={identities} users={users} onUnmapped={changed} />
          <NewIdentity users={users} onChanged={changed} />
        </>
      )}
    </Show>
  );
}

/** Maps an identity again that was unmapped here. */
function Undo({ identity, onDone }: { identity: Identity; onDone: () => void }) {
  const { act, busy, failure } = useAction();
  const { user, subject, issuer } = identity;
  return (
    <div role="status">
      <p class="cluster after">
        <span>
          <b>{subject}</b> is unmapped.
        </span>
        <button class="btn compact" type="button" disabled={busy} onClick={() => act(() => api.mapIdentity({ user, subject, issuer }), onDone)}>
          Undo
        </button>
      </p>
      <Failure text={failure} />
    </div>
  );
}

/** Subjects whose valid tokens were refused, each of which can be mapped. */
function Refused({ refused, users, onChanged }: { refused: readonly RefusedSignIn[]; users: readonly User[]; onChanged: () => void }) {
  if (refused.length === 0) return null;
  return (
    <section aria-label="Refused sign-ins">
      <h2>Tried to sign in</h2>
      <p class="sub">The provider knows them, and no user is mapped to them. Ask the person for the time before you map one.</p>
      <ul class="list after">
        {refused.map((subject) => (
          <li key={subject.id} class="grant-row">
            <Subject of={subject} />
            <span class="small dim">
              last {instant(subject.last)}, first {instant(subject.first)}
            </span>
            <MapButton subject={subject} users={users} onChanged={onChanged} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function MapButton({ subject, users, onChanged }: { subject: RefusedSignIn; users: readonly User[]; onChanged: () => void }) {
  const [user, choose] = useState("");
  const run = () => api.mapIdentity({ user, subject: subject.subject, issuer: subject.issuer });
  return (
    <ConfirmButton
      label="Map"
      name={`Map ${subject.subject}`}
      title={`Who is ${subject.subject}?`}
      danger={false}
      run={run}
      onDone={onChanged}
    >
      <p>Whoever signs in as it is this user, with all of the user's roles.</p>
      <UserChoice users={users} value={user} onChoose={choose} />
    </ConfirmButton>
  );
}

/** Identities with who mapped them and when, each of which can be unmapped. */
function Mapped({ identities, users, onUnmapped }: { identities: readonly Identity[]; users: readonly User[]; onUnmapped: (identity: Identity) => void }) {
  const names = new Map(users.map(({ id, name }) => [id, name]));
  return (
    <section aria-label="Mapped identities">
      <h2>Mapped</h2>
      {identities.length === 0 && <p class="sub">Nobody signs in with an identity provider.</p>}
      <ul class="list after">
        {identities.map((identity) => {
          const name = names.get(identity.user) ?? identity.user;
          return (
            <li key={identity.id} class="grant-row">
              <span class="operations-title">
                <Link class="link" href={personPath(identity.user)}>
                  {name}
                </Link>
                <Subject of={identity} />
              </span>
              <span class="small dim">
                {identity.mapped_by_name === null ? "giver not noted" : `mapped by ${identity.mapped_by_name}`}, {instant(identity.created)}
              </span>
              <ConfirmButton
                label="Unmap"
                name={`Unmap ${identity.subject}`}
                title={`Unmap ${identity.subject} from ${name}?`}
                run={() => api.unmapIdentity({ identity: identity.id })}
                onDone={() => onUnmapped(identity)}
              >
                <p>Its sessions, tokens and memberships by claims end at once. Sessions and memberships do not come back with an undo.</p>
              </ConfirmButton>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Subject({ of: { subject, issuer } }: { of: { subject: string; issuer: string } }) {
  return (
    <span class="operations-title">
      <span class="mono small block-line">{subject}</span>
      <span class="tiny dim block-line">{issuer}</span>
    </span>
  );
}

function NewIdentity({ users, onChanged }: { users: readonly User[]; onChanged: () => void }) {
  const [user, choose] = useState("");
  const [subject, type] = useState("");
  const { act, failure } = useAction();
  return (
    <form
      class="cluster after"
      onSubmit={(event) => {
        event.preventDefault();
        act(() => api.mapIdentity({ user, subject }), () => (type(""), onChanged()));
      }}
    >
      <UserChoice users={users} value={user} onChoose={choose} />
      <input
        class="field operations-name"
        required
        aria-label="Subject"
        placeholder="Subject at the provider"
        value={subject}
        onInput={(event) => type(event.currentTarget.value)}
      />
      <button class="btn" type="submit">
        Map
      </button>
      <Failure text={failure} />
    </form>
  );
}

function UserChoice({ users, value, onChoose }: { users: readonly User[]; value: string; onChoose: (user: string) => void }) {
  return (
    <select class="pick operations-name" required aria-label="User" value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      <option value="">Choose a user …</option>
      {users.map((user) => (
        <option key={user.id} value={user.id}>
          {user.name}
        </option>
      ))}
    </select>
  );
}
