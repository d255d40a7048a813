import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { ifAllowed } from "../../api/lists";
import { person } from "../../session";
import { Failure, useAction } from "../../ui/action";
import { Segmented } from "../../ui/controls";
import { counted, whole } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { because, ReaderList } from "../../ui/readers";
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

const PLACES = [
  ["here", "This collection"],
  ["all", "Everything"],
] as const;

/** The effective roles of both people on the collection and its sources, or on all that the reader manages. */
export function Roles({ user, collection }: { user: string; collection: string }) {
  const me = person.value;
  const [place, choose] = useState<"here" | "all">("here");
  const roles = useLoad(
    async (signal) => {
      const where = place === "here" ? { collection } : {};
      const other = await api.effectiveRoles({ user, ...where }, { signal });
      const own = await ifAllowed(api.effectiveRoles({ user: me?.name ?? "", ...where }, { signal }));
      return { other, own: new Map(own.map((each) => [placeOf(each), each.role])) };
    },
    [user, collection, place],
  );
  return (
    <section class="panel">
      <div class="row wrapped">
        <h2>Effective roles</h2>
        <Segmented label="Roles on" options={PLACES} value={place} onChange={choose} />
      </div>
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
                <tr key={placeOf(each)}>
                  <th scope="row" class={each.source === null ? "whole" : undefined}>
                    {each.source_name ?? `all of ${each.collection_name}`}
                  </th>
                  <td>{own.get(placeOf(each)) ?? "–"}</td>
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

const placeOf = ({ collection, source }: Schemas["EffectiveRole"]): string => source ?? collection;

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
        {(found) => <ReaderList readers={found} />}
      </Show>
    </section>
  );
}
