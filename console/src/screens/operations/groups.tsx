import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { ConfirmButton, Failure, useAction } from "../../ui/action";
import { Show, useLoad } from "../../ui/load";
import { NewName } from "./people";

type Group = Schemas["Group"];
type User = Schemas["User"];

export function Groups({
  groups,
  users,
  onChanged,
}: {
  groups: readonly Group[];
  users: readonly User[];
  onChanged: () => void;
}) {
  const { act, failure } = useAction();
  return (
    <section aria-label="Groups">
      <h2>Groups</h2>
      <NewName
        what="group"
        create={(name, done) =>
          act(() => api.createGroup({ name }), () => (done(), onChanged()))
        }
      />
      <Failure text={failure} />
      <ul class="list after">
        {groups.map((group) => (
          <li key={group.id} class="operations-group">
            <b class="operations-title">{group.name}</b>
            <Members group={group} users={users} />
            <ConfirmButton
              label="Delete"
              name={`Delete ${group.name}`}
              title={`Delete the group ${group.name}?`}
              run={() => api.deleteGroup({ group: group.id })}
              onDone={onChanged}
            >
              <p>Its members lose the roles that they have by it. This cannot be undone.</p>
            </ConfirmButton>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Members({ group, users }: { group: Group; users: readonly User[] }) {
  const members = useLoad((signal) => api.listMembers({ group: group.id }, { signal }), []);
  const [added, choose] = useState("");
  const { act, failure } = useAction();
  const add = (user: string) => {
    act(() => api.addMember({ group: group.id, user }), () => (choose(""), members.reload()));
  };
  const remove = (user: string) =>
    act(() => api.removeMember({ group: group.id, user }), members.reload);
  return (
    <div>
      <Show of={members} what="the members">
        {(members) => (
          <div class="cluster">
            {members.length === 0 && <span class="small dim">no members</span>}
            {members.map((member) => (
              <button
                key={member.id}
                class="chip"
                type="button"
                aria-label={`Remove ${member.name} from ${group.name}`}
                onClick={() => remove(member.id)}
              >
                <span class="ellipsis">{member.name}</span> <span aria-hidden="true">×</span>
              </button>
            ))}
            <select
              class="pick operations-name"
              aria-label={`Add a member to ${group.name}`}
              value={added}
              onChange={(event) => add(event.currentTarget.value)}
            >
              <option value="">Add a member …</option>
              {users
                .filter((user) => !members.some((member) => member.id === user.id))
                .map((user) => (
                  <option key={user.id} value={user.id}>
                    {user.name}
                  </option>
                ))}
            </select>
          </div>
        )}
      </Show>
      <Failure text={failure} />
    </div>
  );
}
