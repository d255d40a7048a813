import { useMemo } from "preact/hooks";
import { milliseconds, wholeNumber } from "../../ui/format";
import { curveOf, estimateOf, groupsOf, type Report } from "./report";

export interface Pair {
  /** The places of the run under test and of the one that it is compared with, if any. */
  tested: number;
  other: number | undefined;
}

/** All runs with their figures; two of them are compared. */
export function RunsTable({
  reports,
  pair,
  onPair,
}: {
  reports: readonly Report[];
  pair: Pair;
  onPair: (pair: Pair) => void;
}) {
  const select = (at: number) =>
    onPair({ tested: at, other: pair.other === at || pair.other === undefined ? pair.tested : pair.other });
  const compareWith = (at: number) => onPair({ tested: pair.tested === at ? (pair.other ?? at) : pair.tested, other: at });
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
            <th scope="col">Compare</th>
          </tr>
        </thead>
        <tbody>
          {reports.map((report, at) => (
            <RunRow
              key={at}
              report={report}
              role={at === pair.tested ? "tested" : at === pair.other ? "other" : undefined}
              onTest={() => select(at)}
              onCompare={() => compareWith(at)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunRow({
  report,
  role,
  onTest,
  onCompare,
}: {
  report: Report;
  role: "tested" | "other" | undefined;
  onTest: () => void;
  onCompare: () => void;
}) {
  const point = curveOf(report, groupsOf(report)[0] ?? "").at(-1);
  const estimate = useMemo(
    () => (point === undefined ? undefined : estimateOf(report.measures.get(point.measure) ?? new Map())),
    [report],
  );
  const { cost } = report;
  return (
    <tr aria-current={role === "tested" ? "true" : undefined}>
      <th scope="row">
        <bdi>{report.name}</bdi>
      </th>
      <td class="num">
        {point !== undefined && estimate !== undefined
          ? `${estimate.mean.toFixed(1)} % of ${wholeNumber(point.budget)} tokens`
          : "–"}
      </td>
      <td class="num">{estimate === undefined ? "–" : `${estimate.low.toFixed(1)} to ${estimate.high.toFixed(1)}`}</td>
      <td class="num">{cost === undefined ? "–" : wholeNumber(Math.round(cost.tokens / Math.max(cost.windows, 1)))}</td>
      <td class="num">{cost === undefined ? "–" : milliseconds(cost.milliseconds)}</td>
      <td class="cluster">
        <button class="chip" type="button" aria-pressed={role === "tested"} aria-label={`Look at ${report.name}`} onClick={onTest}>
          look at
        </button>
        <button
          class="chip"
          type="button"
          aria-pressed={role === "other"}
          aria-label={`Compare with ${report.name}`}
          onClick={onCompare}
        >
          compare with
        </button>
      </td>
    </tr>
  );
}
