import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure, useAction } from "../../ui/action";
import { Drop } from "../../ui/drop";
import { wholeNumber } from "../../ui/format";
import { JobProgress } from "../../ui/job";
import { Remarks } from "../../ui/remarks";
import { Preview } from "./preview";
import { UploadProgress, type Upload } from "./upload-progress";
import { droppedFiles, MAX_FILES, selectionOf, type Selection } from "./uploads";

type Job = Schemas["Job"];

/** Files by drag and drop, which are shown as they would be stored, or a web page: both become a job. */
export function Add({ collection, onAdded }: { collection: string; onAdded: () => void }) {
  const [source, setSource] = useState("uploads");
  const [url, setUrl] = useState("");
  const [selection, select] = useState<Selection>();
  const [uploads, setUploads] = useState<readonly Upload[]>([]);
  const [jobs, setJobs] = useState<Job[]>([]);
  const { act, failure } = useAction();
  const start = (request: () => Promise<Job>) => act(request, (job) => setJobs((before) => [job, ...before]));
  const target = source.trim() || "uploads";
  const add = (files: readonly File[]) => {
    setUploads((before) => [{ id: before.length, collection, source: target, files }, ...before]);
    select(undefined);
  };
  return (
    <section class="panel adding" aria-label="Add documents">
      <Drop label="Files" onFiles={(files) => select(selectionOf(files))} readDrop={droppedFiles}>
        Drop files or folders here
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
      {selection !== undefined && (
        <div class="adding-selection">
          <Remarks title="Left out: another file has this path" remarks={selection.repeated.map((path) => [path, "added once"])} failed />
          {selection.isCut && (
            <p class="failed">
              Only the first {wholeNumber(MAX_FILES)} files are added. Add larger folders with <code>conspectus add FOLDER</code>.
            </p>
          )}
          <Preview
            collection={collection}
            source={target}
            files={selection.files}
            onAdd={() => add(selection.files)}
            onCancel={() => select(undefined)}
          />
        </div>
      )}
      <Failure text={failure} />
      {uploads.map((upload) => (
        <UploadProgress key={upload.id} upload={upload} onAdded={onAdded} />
      ))}
      {jobs.map((job) => (
        <JobProgress key={job.id} job={job} onEnd={onAdded} />
      ))}
    </section>
  );
}
