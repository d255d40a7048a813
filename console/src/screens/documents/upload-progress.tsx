/** An upload as it goes on: batch after batch, with what was not read; it can be cancelled and resumed. */
import { useEffect, useRef, useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure } from "../../ui/action";
import { counted, wholeNumber } from "../../ui/format";
import { followJob, JobLine } from "../../ui/job";
import { asProblem } from "../../ui/load";
import { FileRemarks } from "../../ui/remarks";
import { batchesOf } from "./uploads";

type Job = Schemas["Job"];

export interface Upload {
  id: number;
  collection: string;
  source: string;
  files: readonly File[];
}

interface Progress {
  /** The jobs of the batches that were sent, by their ids. */
  jobs: ReadonlyMap<string, Job>;
  /** Files that no batch had yet, or whose batch was cancelled before they were stored. */
  left: readonly File[];
  isRunning: boolean;
}

export function UploadProgress({ upload, onAdded }: { upload: Upload; onAdded: () => void }) {
  const [progress, setProgress] = useState<Progress>({ jobs: new Map(), left: upload.files, isRunning: true });
  const [failure, fail] = useState("");
  const controller = useRef<AbortController>();
  const run = async (files: readonly File[]) => {
    const { signal } = (controller.current = new AbortController());
    fail("");
    try {
      for await (const step of sendBatches(upload, files, signal)) setProgress((before) => advance(before, step));
    } catch (error) {
      if (!signal.aborted) fail(asProblem(error).message);
    }
    setProgress((before) => ({ ...before, isRunning: false }));
    onAdded();
  };
  useEffect(() => {
    void run(upload.files);
    return () => controller.current?.abort();
  }, [upload.id]);
  const { jobs, left, isRunning } = progress;
  const current = [...jobs.values()].at(-1);
  const resume = () => {
    setProgress({ ...progress, isRunning: true });
    void run(left);
  };
  return (
    <section class="upload" aria-label={`Upload of ${counted(upload.files.length, "file")}`}>
      <p class="row small">
        <b>
          {counted(upload.files.length - left.length, "file")} of {wholeNumber(upload.files.length)} sent
        </b>
        {isRunning && current?.actions.includes("cancel") === true && (
          <button class="btn compact danger" type="button" onClick={() => void cancel(current)}>
            Cancel
          </button>
        )}
        {!isRunning && left.length > 0 && (
          <button class="btn compact" type="button" onClick={resume}>
            Resume with {counted(left.length, "file")}
          </button>
        )}
      </p>
      <Failure text={failure} />
      {[...jobs.values()].map((job) => (
        <div key={job.id} class="job" role="status">
          <JobLine job={job} />
          <FileRemarks result={job.result} />
        </div>
      ))}
    </section>
  );
}

async function cancel(job: Job): Promise<void> {
  await api.cancelJob({ job: job.id });
}

interface Step {
  job: Job;
  /** The files that are left once this job has ended as it stands. */
  left: readonly File[];
}

/** Sends one batch after the other, each when the one before has ended; stops after one that was cancelled. */
async function* sendBatches({ collection, source }: Upload, files: readonly File[], signal: AbortSignal): AsyncGenerator<Step> {
  let sent = 0;
  for (const batch of batchesOf(files)) {
    const job = await api.ingestFiles({ collection, source, files: batch }, { signal });
    sent += batch.length;
    const rest = files.slice(sent);
    let last = job;
    for await (const state of followJob(job, signal)) {
      last = state;
      yield { job: state, left: [...unstored(state, batch), ...rest] };
    }
    if (last.state === "cancelled") return;
  }
}

/** The files of a batch that a cancelled job did not store. */
function unstored(job: Job, batch: readonly File[]): readonly File[] {
  if (job.state !== "cancelled") return [];
  const stored = new Set(Array.isArray(job.result?.stored) ? job.result.stored.map(String) : []);
  return batch.filter((file) => !stored.has(file.name));
}

const advance = (before: Progress, { job, left }: Step): Progress => ({
  ...before,
  jobs: new Map(before.jobs).set(job.id, job),
  left,
});
