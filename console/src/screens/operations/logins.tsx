import type { Schemas } from "../../api/client";
import { api } from "../../api/client";
import { person } from "../../session";
import { ConfirmButton } from "../../ui/action";
import { day } from "../../ui/format";

type Session = Schemas["Session"];
type Invitation = Schemas["Invitation"];
type User = Schemas["User"];

const nameOf = (users: readonly User[], id: string): string =>
  users.find((user) => user.id === id)?.name ?? person.value?.name ?? id;

/** The open sessions of browsers, each of which can be ended. */
export function Sessions({
  sessions,
  users,
  onChanged,
}: {
  sessions: readonly Session[];
  users: readonly User[];
  onChanged: () => void;
}) {
  return (
    <section aria-label="Sessions">
      <h2>Sessions of browsers</h2>
      {sessions.length === 0 && <p class="sub">No browser is logged in.</p>}
      <ul class="list after">
        {sessions.map((session) => (
          <li key={session.id} class="operations-key">
            <span class="operations-title">
              <b>{nameOf(users, session.user)}</b>
              <span class="tiny dim mono block-line">{session.id}</span>
            </span>
            <span class="small dim">{session.scopes.join(", ")}</span>
            <span class="small dim">
              used {day(session.last_used)}, expires {day(session.expires)}
            </span>
            <ConfirmButton
              label="End"
              name={`End the session ${session.id}`}
              title={`End this session of ${nameOf(users, session.user)}?`}
              run={() => api.endSession({ session: session.id })}
              onDone={onChanged}
            >
              <p>The browser is logged out with its next request, yours too if it is this one.</p>
            </ConfirmButton>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Invitations that nobody has accepted, each of which can be withdrawn. */
export function Invitations({
  invitations,
  users,
  onChanged,
}: {
  invitations: readonly Invitation[];
  users: readonly User[];
  onChanged: () => void;
}) {
  if (invitations.length === 0) return null;
  return (
    <section aria-label="Invitations">
      <h2>Invitations</h2>
      <ul class="list after">
        {invitations.map((invitation) => (
          <li key={invitation.id} class="operations-key">
            <span class="operations-title">
              <b>{nameOf(users, invitation.user)}</b>
            </span>
            <span class="small dim">{invitation.scopes.join(", ")}</span>
            <span class="small dim">expires {day(invitation.expires)}</span>
            <ConfirmButton
              label="Withdraw"
              name={`Withdraw the invitation of ${nameOf(users, invitation.user)}`}
              title={`Withdraw the invitation of ${nameOf(users, invitation.user)}?`}
              run={() => api.withdrawInvitation({ invitation: invitation.id })}
              onDone={onChanged}
            >
              <p>Its link logs nobody in any more.</p>
            </ConfirmButton>
          </li>
        ))}
      </ul>
    </section>
  );
}
