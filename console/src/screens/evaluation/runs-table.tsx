/** All runs with their figures: two of them are compared, and one can become the default of its collection. */
import { useMemo } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { ConfirmButton } from "../../ui/action";
import { instant, milliseconds, wholeNumber } from "../../ui/format";
import { JobProgress } from "../../ui/job";
import { Show, useLoad } from "../../ui/load";
import { curveOf, estimateOf, groupsOf, type Report } from "./report";
import type { Run } from "./server-runs";

/** A run of the server, or the report of a file. */
export interface Entry {
  id: string;
  name: string;
  run?: Run;
  report?: Report;
}

export interface Pair {
  /** The run under test, and the one that it is compared with, if any. */
  tested: Entry | undefined;
  other: Entry | undefined;
}

export const isFinished = ({ run }: Entry): boolean => run === undefined || run.figures.length > 0;

export function RunsTable({
  entries,
  pair,
  usedRun,
  mayUse,
  onPair,
  onUse,
  onChanged,
}: {
  entries: readonly Entry[];
  pair: Pair;
  /** The run whose options are the defaults, if any. */
  usedRun: string | undefined;
  mayUse: boolean;
  onPair: (pair: Pair) => void;
  onUse: (run: Run) => void;
  /** Called when a run has ended or was deleted. */
  onChanged: () => void;
}) {
  const select = (entry: Entry) =>
    onPair({ tested: entry, other: pair.other === entry || pair.other === undefined ? pair.tested : pair.other });
  const compareWith = (entry: Entry) =>
    onPair({ tested: pair.tested === entry ? (pair.other ?? entry) : pair.tested, other: entry });
  return (
    <div class="runs after" tabIndex={0} role="region" aria-label="Runs">
      <table>
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col">Evidence in the window</th>
            <th scope="col">95 % interval</th>
            <th scope="col">Tokens a window</th>
            <th scope="col">Time</th>
            <th scope="col">Actions</th>
          </tr>
        </thead>
        <tbody>
          {entries.toReversed().map((entry) => (
            <tr key={entry.id} aria-current={entry === pair.tested ? "true" : undefined}>
              <th scope="row">
                <bdi>{entry.name}</bdi>
                {entry.run !== undefined && <span class="tiny dim block-line">{instant(entry.run.created)}</span>}
              </th>
              {isFinished(entry) ? <Figures entry={entry} /> : <Unfinished run={entry.run!} onEnd={onChanged} />}
              <td class="cluster">
                {isFinished(entry) && (
                  <>
                    <button
                      class="chip"
                      type="button"
                      aria-pressed={entry === pair.tested}
                      aria-label={`Look at ${entry.name}`}
                      onClick={() => select(entry)}
                    >
                      look at
                    </button>
                    <button
                      class="chip"
                      type="button"
                      aria-pressed={entry === pair.other}
                      aria-label={`Compare with ${entry.name}`}
                      onClick={() => compareWith(entry)}
                    >
                      compare with
                    </button>
                  </>
                )}
                {entry.run !== undefined && (
                  <RunActions run={entry.run} isUsed={entry.id === usedRun} mayUse={mayUse} onUse={onUse} onChanged={onChanged} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunActions({
  run,
  isUsed,
  mayUse,
  onUse,
  onChanged,
}: {
  run: Run;
  isUsed: boolean;
  mayUse: boolean;
  onUse: (run: Run) => void;
  onChanged: () => void;
}) {
  return (
    <>
      {isUsed && <span class="tag">default</span>}
      {mayUse && !isUsed && run.figures.length > 0 && (
        <button class="chip" type="button" aria-label={`Make default: ${run.name}`} onClick={() => onUse(run)}>
          make default
        </button>
      )}
      <ConfirmButton
        label="Delete"
        name={`Delete the run ${run.name}`}
        title="Delete this run?"
        run={() => api.deleteRun({ run: run.id })}
        onDone={onChanged}
      >
        Its figures are gone then. The question set stays.
      </ConfirmButton>
    </>
  );
}

/** The largest budget of a run, with its interval and the cost of its windows. */
function Figures({ entry: { run, report } }: { entry: Entry }) {
  const estimate = useMemo(() => (report === undefined ? run?.figures.at(-1) : estimateOfReport(report)), [run, report]);
  const windows = run === undefined ? 0 : run.questions * run.max_tokens.length;
  return (
    <>
      <td class="num">
        {estimate === undefined ? "–" : `${estimate.mean.toFixed(1)} % of ${wholeNumber(estimate.max_tokens)} tokens`}
      </td>
      <td class="num">{estimate === undefined ? "–" : `${estimate.low.toFixed(1)} to ${estimate.high.toFixed(1)}`}</td>
      <td class="num">{run === undefined ? "–" : wholeNumber(Math.round(run.tokens / Math.max(windows, 1)))}</td>
      <td class="num">{run === undefined ? "–" : milliseconds(run.milliseconds)}</td>
    </>
  );
}

function estimateOfReport(report: Report): Schemas["RunFigure"] | undefined {
  const point = curveOf(report, groupsOf(report)[0] ?? "").at(-1);
  if (point === undefined) return undefined;
  return { max_tokens: point.budget, ...estimateOf(report.measures.get(point.measure) ?? new Map()) };
}

/** The job of a run: its progress, and why it ended. It can be cancelled and taken up again. */
function Unfinished({ run, onEnd }: { run: Run; onEnd: () => void }) {
  const job = useLoad((signal) => api.getJob({ job: run.job }, { signal }), [run.job]);
  return (
    <td colSpan={4}>
      <Show of={job} what="the progress">
        {(current) => <JobProgress job={current} onEnd={onEnd} />}
      </Show>
    </td>
  );
}
