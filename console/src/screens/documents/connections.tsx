import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure, useAction } from "../../ui/action";
import { instant, whole } from "../../ui/format";
import { JobProgress } from "../../ui/job";
import { useLoad } from "../../ui/load";
import { DeleteDialog } from "../../ui/receipt";
import { Connect } from "./connect";
import { counting } from "./count";
import { Credentials } from "./credentials";

type Connection = Schemas["Connection"];

/** How many documents a connection brought; it has sources of its own. */
async function brought(connection: Connection, collection: string): Promise<number> {
  const sources = await api.listSources({ collection });
  const own = sources.filter((each) => each.metadata["wiki"] === connection.id);
  const counts = await Promise.all(own.map((each) => counting(collection, each.id)));
  return counts.reduce((sum, each) => sum + each, 0);
}

/** Repositories, wikis and folders whose pages are copied; nothing where there are none that one may see. */
export function Connections({ collection, onSynced }: { collection: string; onSynced: () => void }) {
  const connections = useLoad((signal) => api.listConnections({ collection }, { signal }), [collection]);
  const [jobs, setJobs] = useState<Schemas["Job"][]>([]);
  const [deleting, remove] = useState<{ connection: Connection; documents: number }>();
  const { act, failure } = useAction();
  if (connections.data === undefined) return null;
  const sync = (name: string) => {
    const path = { collection, name };
    act(() => api.sync(path), (job) => setJobs((before) => [job, ...before]));
  };
  const ask = (connection: Connection) =>
    act(
      () => brought(connection, collection),
      (documents) => remove({ connection, documents }),
    );
  return (
    <section>
      <h2>Connections</h2>
      {connections.data.length === 0 && (
        <p class="sub">Nothing is connected. A connection keeps sources equal to a repository, a wiki or a folder.</p>
      )}
      <Connect
        collection={collection}
        onConnected={(name) => {
          connections.reload();
          sync(name);
        }}
      />
      <ul class="list after">
        {connections.data.map((each) => (
          <li key={each.id} class="connection">
            <span>
              <b>{each.name}</b> <span class="dim small">{each.connector}</span>
              {each.error !== null && <span class="failed block-line">{each.error}</span>}
              {each.access !== "granted" && (
                <span class="failed block-line">
                  {each.access === "lost" ? "Access lost: only managers see its documents" : "Unreachable"} since{" "}
                  {each.access_since === null ? "an unknown time" : instant(each.access_since)}
                </span>
              )}
              {each.has_credentials && (
                <Credentials connection={each} collection={collection} onStored={() => sync(each.name)} />
              )}
            </span>
            <span class="small dim">
              {each.last_run === null ? "not synced yet" : `synced ${instant(each.last_run)}`}
            </span>
            <span class={each.state === "error" ? "tag bad" : "tag"}>{each.state}</span>
            <button class="btn compact" type="button" onClick={() => sync(each.name)}>
              Sync now
            </button>
            <button class="btn compact danger" type="button" onClick={() => ask(each)}>
              Delete …
            </button>
          </li>
        ))}
      </ul>
      <Failure text={failure} />
      {jobs.map((each) => (
        <JobProgress
          key={each.id}
          job={each}
          onEnd={() => {
            connections.reload();
            onSynced();
          }}
        />
      ))}
      {deleting !== undefined && (
        <DeleteDialog
          title={`Delete the connection ${deleting.connection.name}?`}
          preview={{ connection: deleting.connection.name, documents: whole(deleting.documents) }}
          purges={false}
          remove={async () => {
            const { name } = deleting.connection;
            const path = { collection, name };
            const receipt = await api.deleteConnection({ ...path, delete: true });
            return { connection: name, ...receipt };
          }}
          onClose={(deleted) => {
            remove(undefined);
            if (!deleted) return;
            connections.reload();
            onSynced();
          }}
        />
      )}
    </section>
  );
}
