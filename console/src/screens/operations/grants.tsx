import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { ConfirmButton, Failure, useAction } from "../../ui/action";
import { counted, instant } from "../../ui/format";
import { Show, State, useLoad } from "../../ui/load";
import { OfCollection, principals } from "./collection";
import { personPath } from "./person";

type Grant = Schemas["Grant"];
type Source = Schemas["Source"];
type Kind = Grant["grantee"]["kind"];

const ROLES = ["viewer", "editor", "manager", "owner"] as const;

/** Who has which role on a collection and its sources. */
export function Grants() {
  return <OfCollection>{(collection) => <Roles key={collection} collection={collection} />}</OfCollection>;
}

function Roles({ collection }: { collection: string }) {
  const { act, failure } = useAction();
  const loaded = useLoad(async (signal) => {
    const [grants, sources, names] = await Promise.all([
      api.listGrants({ collection }, { signal }),
      api.listSources({ collection }, { signal }),
      principals(signal),
    ]);
    return { grants, sources, names };
  }, []);
  if (loaded.error?.status === 403) {
    return (
      <State title="Only managers see the grants of a collection">
        <p class="sub">{loaded.error.message}</p>
      </State>
    );
  }
  const put = (body: Schemas["PutGrantBody"]) =>
    act(() => api.putGrant({ collection, ...body }), loaded.reload);
  const revoke = ({ grantee, source }: Grant) => {
    const query = { kind: grantee.kind, id: grantee.id, ...(source === null ? {} : { source }) };
    return api.revokeGrant({ collection, ...query });
  };
  return (
    <Show of={loaded} what="the grants">
      {({ grants, sources, names }) => (
        <>
          <h1 class="after">
            {counted(grants.length, "grant")} on {collection}
          </h1>
          <NewGrant sources={sources} onPut={put} />
          <Failure text={failure} />
          <ul class="list after">
            {grants.map((grant) => {
              const name = names.get(grant.grantee.id) ?? grant.grantee.id;
              const on = sources.find((source) => source.id === grant.source)?.name ?? grant.source ?? "the whole collection";
              return (
                <li key={`${grant.grantee.id}/${grant.source}`} class="grant-row">
                  <span class="operations-title">
                    {grant.grantee.kind === "user" && names.has(grant.grantee.id) ? (
                      <Link class="link" href={personPath(grant.grantee.id)}>
                        {name}
                      </Link>
                    ) : (
                      <b>{name}</b>
                    )}{" "}
                    {grant.grantee.kind === "group" && <span class="tag">group</span>}
                  </span>
                  <span class="grant-role">
                    {grant.role} <span class="small dim">on {on}</span>
                    <span class="small dim block-line">
                      {grant.granted_by_name !== null && `by ${grant.granted_by_name}, `}
                      {instant(grant.created)}
                    </span>
                  </span>
                  <ConfirmButton
                    label="Revoke"
                    name={`Revoke ${grant.role} of ${name} on ${on}`}
                    title={`Revoke ${grant.role} of ${name}?`}
                    run={() => revoke(grant)}
                    onDone={loaded.reload}
                  >
                    <p>
                      From the next request on, {name} has no role on {on} by this grant.
                    </p>
                  </ConfirmButton>
                </li>
              );
            })}
          </ul>
        </>
      )}
    </Show>
  );
}

function NewGrant({ sources, onPut }: { sources: readonly Source[]; onPut: (body: Schemas["PutGrantBody"]) => void }) {
  const [kind, setKind] = useState<Kind>("user");
  const [id, type] = useState("");
  const [role, setRole] = useState<Grant["role"]>("viewer");
  const [source, setSource] = useState("");
  return (
    <form
      class="cluster after"
      onSubmit={(event) => {
        event.preventDefault();
        onPut({ grantee: { kind, id }, role, source: source === "" ? null : source });
      }}
    >
      <select class="pick" aria-label="Kind" value={kind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
        <option>user</option>
        <option>group</option>
      </select>
      <input
        class="field operations-name"
        required
        aria-label="Name or id of the user or group"
        placeholder="Name or id"
        value={id}
        onInput={(event) => type(event.currentTarget.value)}
      />
      <select
        class="pick"
        aria-label="Role"
        value={role}
        onChange={(event) => setRole(event.currentTarget.value as Grant["role"])}
      >
        {ROLES.map((role) => (
          <option key={role}>{role}</option>
        ))}
      </select>
      <select
        class="pick operations-name"
        aria-label="On"
        value={source}
        onChange={(event) => setSource(event.currentTarget.value)}
      >
        <option value="">the whole collection</option>
        {sources.map((source) => (
          <option key={source.id} value={source.id}>
            {source.name}
          </option>
        ))}
      </select>
      <button class="btn" type="submit">
        Grant
      </button>
    </form>
  );
}
