/** Jobs: how they stand and how they ended, in one way for every screen. */
import { useEffect, useState } from "preact/hooks";
import { api, type Schemas } from "../api/client";
import { Failure, useAction } from "./action";
import { wholeNumber } from "./format";
import { asProblem, messageOf } from "./load";
import { countFailures, FileRemarks } from "./remarks";

type Job = Schemas["Job"];

const WAIT_SECONDS = 2;
/** Milliseconds until a job is asked for again whose answer came at once and told nothing new. */
const PAUSE = 250;

export const hasEnded = (job: Job): boolean => job.outcome !== null;

/** How a job stands, or how it ended: a success that names failures is none. */
export function OutcomeTag({ job }: { job: Job }) {
  const { outcome, state, done, total } = job;
  const isBad = outcome === "failed" || outcome === "partial";
  const failures = countFailures(job.result);
  return (
    <span class={isBad ? "tag bad" : "tag"}>
      {outcome === "partial" ? `partly, ${wholeNumber(failures)} failed` : state}
      {outcome === "partial" ? total > 0 && ` of ${wholeNumber(total)}` : total > 0 && ` ${wholeNumber(done)} of ${wholeNumber(total)}`}
    </span>
  );
}

/** The title of a job, how it stands, and its progress. */
export function JobLine({ job }: { job: Job }) {
  const most = job.total || 1;
  return (
    <>
      <p class="row small">
        <span class="ellipsis">{job.title}</span>
        <OutcomeTag job={job} />
      </p>
      <progress max={most} value={hasEnded(job) ? most : job.done} aria-label={`Progress of ${job.title}`} />
    </>
  );
}

/** The actions that the server would carry out on a job; none where there are none. */
export function JobActions({ job, onChanged }: { job: Job; onChanged: (job: Job) => void }) {
  const { act, busy, failure } = useAction();
  return (
    <>
      {job.actions.includes("retry") && (
        <button class="btn compact" type="button" disabled={busy} onClick={() => act(() => api.retryJob({ job: job.id }), onChanged)}>
          {job.outcome === "cancelled" ? "Resume" : "Retry"}
        </button>
      )}
      {job.actions.includes("cancel") && (
        <button
          class="btn compact danger"
          type="button"
          disabled={busy}
          onClick={() => act(() => api.cancelJob({ job: job.id }), onChanged)}
        >
          Cancel
        </button>
      )}
      <Failure text={failure} />
    </>
  );
}

/** A job as it goes on, until it has ended; it can be cancelled and taken up again where the server says so. */
export function JobProgress({ job, onEnd }: { job: Job; onEnd?: () => void }) {
  const [current, setCurrent] = useState(job);
  const [attempt, setAttempt] = useState(job);
  const [failure, fail] = useState("");
  useEffect(() => {
    const controller = new AbortController();
    const watch = async () => {
      try {
        for await (const state of followJob(attempt, controller.signal)) setCurrent(state);
        onEnd?.();
      } catch (error) {
        if (!controller.signal.aborted) fail(messageOf(asProblem(error)));
      }
    };
    void watch();
    return () => controller.abort();
  }, [attempt]);
  return (
    <div class="job" role="status">
      <JobLine job={current} />
      <p class="cluster">
        <JobActions job={current} onChanged={(changed) => (setCurrent(changed), !hasEnded(changed) && setAttempt(changed))} />
      </p>
      <FileRemarks result={current.result} />
      <Failure text={current.error ?? ""} />
      <Failure text={failure} />
    </div>
  );
}

/** The states of a job, from the one that is known to the one in which it has ended. */
export async function* followJob(job: Job, signal: AbortSignal): AsyncGenerator<Job> {
  let current = job;
  yield current;
  while (!hasEnded(current)) {
    const before = current;
    current = await api.getJob({ job: job.id, wait: WAIT_SECONDS }, { signal });
    yield current;
    // The server answers at the end or after the wait; one that answers at once must not be asked in a hurry.
    if (!hasEnded(current) && current.done === before.done) await new Promise((next) => setTimeout(next, PAUSE));
  }
}
