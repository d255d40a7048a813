import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { ifAllowed } from "../../api/lists";
import { person } from "../../session";
import { Failure, useAction } from "../../ui/action";
import { counted, whole } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import type { Entry } from "../../window/anatomy";

type Grant = Schemas["MissingGrant"];
type Origin = Schemas["RoleOrigin"];

/** The grants that would show what is hidden, and a button that gives each. */
export function MissingGrants({
  grants,
  user,
  collection,
  onGranted,
}: {
  grants: readonly Grant[];
  user: string;
  collection: string;
  onGranted: () => void;
}) {
  const [asked, ask] = useState("");
  const { act, failure } = useAction();
  const give = ({ source, role }: Grant) => {
    const body: Schemas["PutGrantBody"] = { grantee: { kind: "user", id: user }, source, role };
    act(() => api.putGrant({ collection, ...body }), onGranted);
  };
  return (
    <section class="panel">
      <h2>What would give {user} access</h2>
      {grants.length === 0 && <p class="sub">Nothing is missing: all your candidates are visible to {user}.</p>}
      <ul class="list after">
        {grants.map((each) => (
          <li key={each.source} class="row">
            <span>
              <b>
                {each.role} on {each.source_name}
              </b>
              <span class="small dim block-line">
                {counted(each.candidates, "candidate")}, {whole(each.passages)} of them in your window
              </span>
            </span>
            {asked === each.source ? (
              <button class="btn primary" type="button" onClick={() => give(each)}>
                Grant {each.role}
              </button>
            ) : (
              <button class="btn" type="button" onClick={() => ask(each.source)}>
                Grant …
              </button>
            )}
          </li>
        ))}
      </ul>
      <Failure text={failure} />
    </section>
  );
}

/** The effective roles of both people on the collection and its sources. */
export function Roles({ user, collection }: { user: string; collection: string }) {
  const me = person.value;
  const roles = useLoad(
    async (signal) => {
      const other = await api.effectiveRoles({ user, collection }, { signal });
      const own = await ifAllowed(api.effectiveRoles({ user: me?.name ?? "", collection }, { signal }));
      return { other, own: new Map(own.map((each) => [each.source, each.role])) };
    },
    [user, collection],
  );
  return (
    <section class="panel">
      <h2>Effective roles</h2>
      <Show of={roles} what="the roles">
        {({ other, own }) => (
          <table class="roles">
            <thead>
              <tr>
                <th scope="col">Source</th>
                <th scope="col">{me?.name}</th>
                <th scope="col">{user}</th>
              </tr>
            </thead>
            <tbody>
              {other.map((each) => (
                <tr key={each.source}>
                  <th scope="row">{each.source_name ?? `all of ${each.collection_name}`}</th>
                  <td>{own.get(each.source) ?? "–"}</td>
                  <td>
                    {each.role === null ? <span class="tag bad">none</span> : `${each.role}${because(each.origins)}`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Show>
    </section>
  );
}

/** Where a role comes from, if it is not the user's own grant. */
function because(origins: readonly Origin[]): string {
  const groups = origins.filter((each) => each.kind === "group").map((each) => `by the group ${each.group}`);
  return groups.length === 0 ? "" : `, ${groups.join(", ")}`;
}

/** Who can see one of the documents that the question found. */
export function Readers({ trace }: { trace: readonly Entry[] }) {
  const documents = [...new Map(trace.map((each) => [each.document, each.key || each.title])).entries()];
  const [document, choose] = useState(documents[0]?.[0] ?? "");
  const readers = useLoad(
    (signal) =>
      document === ""
        ? undefined
        : api.listReaders({ document }, { signal }),
    [document],
  );
  if (document === "") return null;
  return (
    <section class="panel">
      <h2>
        <label for="readers">Who can see</label>{" "}
        <select
          id="readers"
          class="pick readers-document"
          value={document}
          onChange={(event) => choose(event.currentTarget.value)}
        >
          {documents.map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </h2>
      <Show of={readers} what="the readers">
        {(found) => (
          <ul class="list after">
            {found.map((each) => (
              <li key={each.user} class="row">
                <b>{each.name}</b>
                <span class="small dim">
                  {each.role}
                  {because(each.origins)}
                </span>
              </li>
            ))}
          </ul>
        )}
      </Show>
    </section>
  );
}
