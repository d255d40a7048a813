import type { Schemas } from "../../api/client";
import { counted, instant, wholeNumber } from "../../ui/format";
import { hasEnded, JobActions, OutcomeTag } from "../../ui/job";
import { FileRemarks } from "../../ui/remarks";

type Job = Schemas["Job"];

/** The jobs that are listed: those in a state, or those that ended with failures of their own. */
export type Selected = Job["state"] | "partial";
export const SELECTIONS: readonly Selected[] = ["queued", "running", "succeeded", "partial", "failed", "cancelled"];

/** Jobs of a state or of all, the newest first. */
export function Jobs({
  jobs,
  counts,
  selected,
  onSelect,
  more,
  reload,
}: {
  jobs: readonly Job[];
  /** The number of jobs by state, and of those that succeeded in part. */
  counts: Readonly<Record<string, number>>;
  selected: Selected | undefined;
  onSelect: (selected: Selected | undefined) => void;
  /** Loads older jobs, where there are some. */
  more: (() => void) | undefined;
  reload: () => void;
}) {
  const all = Object.entries(counts).reduce((sum, [name, count]) => (name === "partial" ? sum : sum + count), 0);
  const selections = SELECTIONS.filter((selection) => selection === selected || (counts[selection] ?? 0) > 0);
  return (
    <section aria-label="Jobs">
      <h2>Jobs</h2>
      {all === 0 ? (
        <p class="sub">No jobs ran yet. Uploads, syncs and summaries become jobs.</p>
      ) : (
        <div class="chips" role="group" aria-label="Jobs by state">
          <button class="chip" type="button" aria-pressed={selected === undefined} onClick={() => onSelect(undefined)}>
            All {wholeNumber(all)}
          </button>
          {selections.map((selection) => (
            <button key={selection} class="chip" type="button" aria-pressed={selection === selected} onClick={() => onSelect(selection)}>
              {selection} {wholeNumber(counts[selection] ?? 0)}
            </button>
          ))}
        </div>
      )}
      <ul class="list after" aria-label="Jobs">
        {jobs.map((job) => (
          <JobRow key={job.id} job={job} onChanged={reload} />
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

function JobRow({ job, onChanged }: { job: Job; onChanged: () => void }) {
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
      <OutcomeTag job={job} />
      <span>
        <JobActions job={job} onChanged={onChanged} />
      </span>
      <FileRemarks result={job.result} />
    </li>
  );
}
