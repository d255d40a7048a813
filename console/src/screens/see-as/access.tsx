import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { ifAllowed } from "../../api/lists";
import { person } from "../../session";
import { Failure, useAction } from "../../ui/action";
import { Segmented } from "../../ui/controls";
import { counted, wholeNumber } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { reasonOf, ReaderList } from "../../ui/readers";
import type { Entry } from "../../window/anatomy";

type Grant = Schemas["MissingGrant"];

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
  const [question, setQuestion] = useState("");
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
        {grants.map((grant) => (
          <li key={grant.source} class="row">
            <span>
              <b>
                {grant.role} on {grant.source_name}
              </b>
              {grant.viewers !== null && (
                <span class="small dim block-line">
                  Its remote lets only these read it: {grant.viewers.join(", ") || "nobody"}
                </span>
              )}
              <span class="small dim block-line">
                {counted(grant.candidates, "candidate")}, {wholeNumber(grant.passages)} of them in your window
              </span>
            </span>
            {grant.viewers !== null ? null : question === grant.source ? (
              <button class="btn primary" type="button" onClick={() => give(grant)}>
                Grant {grant.role}
              </button>
            ) : (
              <button class="btn" type="button" onClick={() => setQuestion(grant.source)}>
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

const PLACES = [
  ["here", "This collection"],
  ["all", "Everything"],
] as const;

/** The effective roles of both people on the collection and its sources, or on all that the reader manages. */
export function Roles({ user, collection }: { user: string; collection: string }) {
  const me = person.value;
  const [scope, setScope] = useState<"here" | "all">("here");
  const roles = useLoad(
    async (signal) => {
      const where = scope === "here" ? { collection } : {};
      const other = await api.effectiveRoles({ user, ...where }, { signal });
      const ownAccess = await ifAllowed(api.effectiveRoles({ user: me?.name ?? "", ...where }, { signal }));
      return { other, ownRoles: new Map(ownAccess.map((access) => [placeOf(access), access.role])) };
    },
    [user, collection, scope],
  );
  return (
    <section class="panel">
      <div class="row wrapped">
        <h2>Effective roles</h2>
        <Segmented label="Roles on" options={PLACES} value={scope} onChange={setScope} />
      </div>
      <Show of={roles} what="the roles">
        {({ other, ownRoles }) => (
          <table class="roles">
            <thead>
              <tr>
                <th scope="col">Source</th>
                <th scope="col">{me?.name}</th>
                <th scope="col">{user}</th>
              </tr>
            </thead>
            <tbody>
              {other.map((access) => (
                <tr key={placeOf(access)}>
                  <th scope="row" class={access.source === null ? "whole" : undefined}>
                    {access.source_name ?? `all of ${access.collection_name}`}
                  </th>
                  <td>{ownRoles.get(placeOf(access)) ?? "–"}</td>
                  <td>
                    {access.role === null ? <span class="tag bad">none</span> : `${access.role}${reasonOf(access.origins)}`}
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

const placeOf = ({ collection, source }: Schemas["EffectiveRole"]): string => source ?? collection;

/** Who can see one of the documents that the question found. */
export function Readers({ trace }: { trace: readonly Entry[] }) {
  const documents = [...new Map(trace.map((entry) => [entry.document, entry.key || entry.title])).entries()];
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
        {(readers) => <ReaderList readers={readers} />}
      </Show>
    </section>
  );
}
