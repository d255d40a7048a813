import { useRef, useState } from "preact/hooks";
import { api, take, type Schemas } from "../../api/client";
import { asProblem } from "../../ui/load";
import { JobProgress } from "../../ui/job";

type Job = Schemas["Job"];

/** Files by drag and drop, or a web page: both become a job whose progress is shown. */
export function Add({ collection, onAdded }: { collection: string; onAdded: () => void }) {
  const [source, setSource] = useState("uploads");
  const [url, setUrl] = useState("");
  const [over, setOver] = useState(false);
  const [jobs, setJobs] = useState<Job[]>([]);
  const [failure, fail] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const start = async (request: Promise<Job>) => {
    fail("");
    try {
      const job = await request;
      setJobs((before) => [job, ...before]);
    } catch (error) {
      fail(asProblem(error).message);
    }
  };
  const upload = (files: FileList | null | undefined) => {
    if (files === null || files === undefined || files.length === 0) return;
    void start(sent(collection, source.trim() || "uploads", files));
  };
  return (
    <section class="panel adding" aria-label="Add documents">
      <div
        class={over ? "drop over" : "drop"}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          upload(event.dataTransfer?.files);
        }}
      >
        <p>Drop files here, or</p>
        <button class="btn" type="button" onClick={() => input.current?.click()}>
          Choose files
        </button>
        <input
          ref={input}
          class="sr"
          type="file"
          multiple
          tabIndex={-1}
          aria-label="Files"
          onChange={(event) => upload(event.currentTarget.files)}
        />
      </div>
      <div class="adding-fields">
        <label>
          <span class="label">Source for the files</span>
          <input class="field" value={source} onInput={(event) => setSource(event.currentTarget.value)} />
        </label>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const params = { path: { collection } };
            const body = { url } as Schemas["IngestUrlBody"];
            void start(take(api.POST("/api/v1/collections/{collection}/ingest/url", { params, body })));
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
      {failure !== "" && (
        <p class="failed" role="alert">
          {failure}
        </p>
      )}
      {jobs.map((each) => (
        <JobProgress key={each.id} job={each} onEnd={onAdded} />
      ))}
    </section>
  );
}

async function sent(collection: string, source: string, files: FileList): Promise<Job> {
  const body = new FormData();
  body.set("source", source);
  for (const file of files) body.append("files", file, file.name);
  const params = { path: { collection } };
  return take(
    api.POST("/api/v1/collections/{collection}/ingest/files", {
      params,
      body: body as unknown as Schemas["Body_ingest_files"],
      bodySerializer: (form) => form as unknown as FormData,
    }),
  );
}
