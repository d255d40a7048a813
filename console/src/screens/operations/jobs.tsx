import { api, type Schemas } from "../../api/client";
import { Failure, useAction } from "../../ui/action";
import { counted, instant, wholeNumber } from "../../ui/format";
import { hasEnded } from "../../ui/job";
import { FileRemarks } from "../../ui/remarks";

type Job = Schemas["Job"];

export type State = Job["state"];
export const STATES: readonly State[] = ["queued", "running", "succeeded", "failed", "cancelled"];

/** Jobs of a state or of all, the newest first. */
export function Jobs({
  jobs,
  counts,
  state,
  onState,
  more,
  reload,
}: {
  jobs: readonly Job[];
  /** The number of jobs by state. */
  counts: Readonly<Record<string, number>>;
  state: State | undefined;
  onState: (state: State | undefined) => void;
  /** Loads older jobs, where there are some. */
  more: (() => void) | undefined;
  reload: () => void;
}) {
  const { act, failure } = useAction();
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const states = STATES.filter((jobState) => jobState === state || (counts[jobState] ?? 0) > 0);
  return (
    <section aria-label="Jobs">
      <h2>Jobs</h2>
      {all === 0 ? (
        <p class="sub">No jobs ran yet. Uploads, syncs and summaries become jobs.</p>
      ) : (
        <div class="chips" role="group" aria-label="Jobs by state">
          <button class="chip" type="button" aria-pressed={state === undefined} onClick={() => onState(undefined)}>
            All {wholeNumber(all)}
          </button>
          {states.map((jobState) => (
            <button key={jobState} class="chip" type="button" aria-pressed={state === jobState} onClick={() => onState(jobState)}>
              {jobState} {wholeNumber(counts[jobState] ?? 0)}
            </button>
          ))}
        </div>
      )}
      <Failure text={failure} />
      <ul class="list after" aria-label="Jobs">
        {jobs.map((job) => (
          <JobRow key={job.id} job={job} act={(request) => act(request, reload)} />
        ))}
      </ul>
      {more !== undefined && (
        <p class="cluster after">
          <button class="btn" type="button" onClick={more}>
            Load older jobs
          </button>
        </p>
      )}
    </section>
  );
}

/** The files of a cancelled upload that were stored before it ended. */
function storedFiles(job: Job): string[] {
  const stored = job.state === "cancelled" ? job.result?.stored : undefined;
  return Array.isArray(stored) ? stored.map(String) : [];
}

function JobRow({ job, act }: { job: Job; act: (request: () => Promise<unknown>) => void }) {
  const stayed = storedFiles(job);
  return (
    <li class="operations-job">
      <span class="operations-title">
        <b class="block-line">{job.title}</b>
        <span class="tiny dim">
          {job.kind.replaceAll("_", " ")}, {instant(job.created)}, {counted(job.attempts, "attempt")}
        </span>
        {job.error !== null && <span class="failed block-line">{job.error}</span>}
        {stayed.length > 0 && (
          <span class="tiny dim block-line">
            {counted(stayed.length, "file")} stayed: {stayed.join(", ")}
          </span>
        )}
      </span>
      {hasEnded(job) ? (
        <span />
      ) : (
        <progress max={job.total || 1} value={job.done} aria-label={`Progress of ${job.title}`} />
      )}
      <span class={job.state === "failed" ? "tag bad" : "tag"}>
        {job.state}
        {job.total > 0 && ` ${wholeNumber(job.done)} of ${wholeNumber(job.total)}`}
      </span>
      {job.actions.includes("retry") ? (
        <button
          class="btn compact"
          type="button"
          onClick={() => act(() => api.retryJob({ job: job.id }))}
        >
          Retry
        </button>
      ) : !job.actions.includes("cancel") ? (
        <span />
      ) : (
        <button
          class="btn compact danger"
          type="button"
          onClick={() => act(() => api.cancelJob({ job: job.id }))}
        >
          Cancel
        </button>
      )}
      <FileRemarks result={job.result} />
    </li>
  );
}
