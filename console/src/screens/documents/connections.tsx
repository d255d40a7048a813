import { useState } from "preact/hooks";
import { api, take, type Schemas } from "../../api/client";
import { instant } from "../../ui/format";
import { JobProgress } from "../../ui/job";
import { asProblem, useLoad } from "../../ui/load";
import { DeleteDialog } from "../../ui/receipt";

type Connection = Schemas["Connection"];

/** Repositories, wikis and folders whose pages are copied; nothing where there are none that one may see. */
export function Connections({ collection, onSynced }: { collection: string; onSynced: () => void }) {
  const params = { path: { collection } };
  const connections = useLoad(
    (signal) => take(api.GET("/api/v1/collections/{collection}/connections", { params, signal })),
    [collection],
  );
  const [jobs, setJobs] = useState<Schemas["Job"][]>([]);
  const [deleting, remove] = useState<Connection>();
  const [failure, fail] = useState("");
  if (connections.data === undefined || connections.data.length === 0) return null;
  const sync = async (name: string) => {
    try {
      const path = { collection, name };
      const job = await take(
        api.POST("/api/v1/collections/{collection}/connections/{name}/sync", { params: { path } }),
      );
      setJobs((before) => [job, ...before]);
      fail("");
    } catch (error) {
      fail(asProblem(error).message);
    }
  };
  return (
    <section>
      <h2>Connections</h2>
      <ul class="list after">
        {connections.data.map((each) => (
          <li key={each.id} class="connection">
            <span>
              <b>{each.name}</b> <span class="dim small">{each.connector}</span>
              {each.error !== null && <span class="failed block-line">{each.error}</span>}
            </span>
            <span class="small dim">
              {each.last_run === null ? "not synced yet" : `synced ${instant(each.last_run)}`}
            </span>
            <span class={each.state === "error" ? "tag bad" : "tag"}>{each.state}</span>
            <button class="btn compact" type="button" onClick={() => void sync(each.name)}>
              Sync now
            </button>
            <button class="btn compact danger" type="button" onClick={() => remove(each)}>
              Delete …
            </button>
          </li>
        ))}
      </ul>
      {failure !== "" && (
        <p class="failed" role="alert">
          {failure}
        </p>
      )}
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
          title={`Delete the connection ${deleting.name}?`}
          preview={{ connection: deleting.name, documents: "all that it copied" }}
          remove={async () => {
            const path = { collection, name: deleting.name };
            const receipt = await take(
              api.DELETE("/api/v1/collections/{collection}/connections/{name}", {
                params: { path, query: { delete: true } },
              }),
            );
            return { connection: deleting.name, ...receipt };
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
