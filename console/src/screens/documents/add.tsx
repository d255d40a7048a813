import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure, useAction } from "../../ui/action";
import { Drop } from "../../ui/drop";
import { JobProgress } from "../../ui/job";
import { Preview } from "./preview";

type Job = Schemas["Job"];

/** Files by drag and drop, which are shown as they would be stored, or a web page: both become a job. */
export function Add({ collection, onAdded }: { collection: string; onAdded: () => void }) {
  const [source, setSource] = useState("uploads");
  const [url, setUrl] = useState("");
  const [files, setFiles] = useState<readonly File[]>([]);
  const [jobs, setJobs] = useState<Job[]>([]);
  const { act, failure } = useAction();
  const start = (request: () => Promise<Job>) => act(request, (job) => setJobs((before) => [job, ...before]));
  const target = source.trim() || "uploads";
  const add = () => {
    start(() => sendFiles(collection, target, files));
    setFiles([]);
  };
  return (
    <section class="panel adding" aria-label="Add documents">
      <Drop label="Files" onFiles={setFiles}>
        Drop files here
      </Drop>
      <div class="adding-fields">
        <label>
          <span class="label">Source for the files</span>
          <input class="field" value={source} onInput={(event) => setSource(event.currentTarget.value)} />
        </label>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            start(() => api.ingestUrl({ collection, url }));
            setUrl("");
          }}
        >
          <label class="label" for="page-url">
            Or the address of a web page
          </label>
          <div class="cluster">
            <input
              id="page-url"
              class="field"
              type="url"
              required
              placeholder="https://"
              value={url}
              onInput={(event) => setUrl(event.currentTarget.value)}
            />
            <button class="btn" type="submit">
              Add the page
            </button>
          </div>
        </form>
      </div>
      {files.length > 0 && (
        <Preview collection={collection} source={target} files={files} onAdd={add} onCancel={() => setFiles([])} />
      )}
      <Failure text={failure} />
      {jobs.map((job) => (
        <JobProgress key={job.id} job={job} onEnd={onAdded} />
      ))}
    </section>
  );
}

async function sendFiles(collection: string, source: string, files: readonly File[]): Promise<Job> {
  return api.ingestFiles({ collection, source, files: [...files] });
}
