import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure, useAction } from "../../ui/action";
import { instant, wholeNumber } from "../../ui/format";
import { JobProgress } from "../../ui/job";
import { useLoad } from "../../ui/load";
import { DeleteDialog } from "../../ui/receipt";
import { Connect } from "./connect";
import { countDocuments } from "./count";
import { Credentials } from "./credentials";

type Connection = Schemas["Connection"];

/** How many documents a connection brought; it has sources of its own. */
async function countSyncedDocuments(connection: Connection, collection: string): Promise<number> {
  const sources = await api.listSources({ collection });
  const connectionSources = sources.filter((source) => source.metadata["wiki"] === connection.id);
  const counts = await Promise.all(connectionSources.map((source) => countDocuments(collection, source.id)));
  return counts.reduce((sum, count) => sum + count, 0);
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
      () => countSyncedDocuments(connection, collection),
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
        {connections.data.map((connection) => (
          <li key={connection.id} class="connection">
            <span>
              <b>{connection.name}</b> <span class="dim small">{connection.connector}</span>
              {connection.error !== null && <span class="failed block-line">{connection.error}</span>}
              {connection.access !== "granted" && (
                <span class="failed block-line">
                  {connection.access === "lost" ? "Access lost: only managers see its documents" : "Unreachable"} since{" "}
                  {connection.access_since === null ? "an unknown time" : instant(connection.access_since)}
                </span>
              )}
              {connection.has_credentials && (
                <Credentials connection={connection} collection={collection} onStored={() => sync(connection.name)} />
              )}
            </span>
            <span class="small dim">
              {connection.last_run === null ? "not synced yet" : `synced ${instant(connection.last_run)}`}
            </span>
            <span class={connection.state === "error" ? "tag bad" : "tag"}>{connection.state}</span>
            <button class="btn compact" type="button" onClick={() => sync(connection.name)}>
              Sync now
            </button>
            <button class="btn compact danger" type="button" onClick={() => ask(connection)}>
              Delete …
            </button>
          </li>
        ))}
      </ul>
      <Failure text={failure} />
      {jobs.map((job) => (
        <JobProgress
          key={job.id}
          job={job}
          onEnd={() => {
            connections.reload();
            onSynced();
          }}
        />
      ))}
      {deleting !== undefined && (
        <DeleteDialog
          title={`Delete the connection ${deleting.connection.name}?`}
          preview={{ connection: deleting.connection.name, documents: wholeNumber(deleting.documents) }}
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
