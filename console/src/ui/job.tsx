import { useEffect, useState } from "preact/hooks";
import { api, type Schemas } from "../api/client";
import { wholeNumber } from "./format";
import { asProblem } from "./load";
import { FileRemarks } from "./remarks";

type Job = Schemas["Job"];

const ENDED = new Set<Job["state"]>(["succeeded", "failed", "cancelled"]);
const WAIT_SECONDS = 2;

export const hasEnded = (job: Job): boolean => ENDED.has(job.state);

/** A job as it goes on, until it has ended. */
export function JobProgress({ job, onEnd }: { job: Job; onEnd?: () => void }) {
  const [current, setCurrent] = useState(job);
  const [failure, fail] = useState("");
  useEffect(() => {
    const controller = new AbortController();
    follow(job, controller.signal, setCurrent).then(onEnd, (error: unknown) => {
      if (!controller.signal.aborted) fail(asProblem(error).message);
    });
    return () => controller.abort();
  }, [job.id]);
  const { state, done, total, error } = current;
  return (
    <div class="job" role="status">
      <p class="row small">
        <span class="ellipsis">{current.title}</span>
        <span class={state === "failed" ? "tag bad" : "tag"}>
          {state}
          {total > 0 && ` ${wholeNumber(done)} of ${wholeNumber(total)}`}
        </span>
      </p>
      <progress max={total || 1} value={hasEnded(current) ? total || 1 : done} aria-label={`Progress of ${current.title}`} />
      <FileRemarks result={current.result} />
      {[error ?? "", failure].map((message) => message !== "" && <p class="failed">{message}</p>)}
    </div>
  );
}

async function follow(job: Job, signal: AbortSignal, onJob: (job: Job) => void): Promise<void> {
  let current = job;
  while (!hasEnded(current)) {
    const before = current;
    current = await api.getJob({ job: job.id, wait: WAIT_SECONDS }, { signal });
    onJob(current);
    // The server answers at the end or after the wait; one that answers at once must not be asked in a hurry.
    if (!hasEnded(current) && current.done === before.done) await new Promise((next) => setTimeout(next, 250));
  }
}
