/** Runs of `conspectus eval`: quality against budget, and two runs compared by question. */
import { useMemo, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { Failure, useAction } from "../../ui/action";
import { Segmented } from "../../ui/controls";
import { Drop } from "../../ui/drop";
import { counted, wholeNumber } from "../../ui/format";
import { Cells } from "./cells";
import { Curve } from "./curve";
import { isSet, readSet, type QuestionSet } from "./question-set";
import { compare, curveOf, groupsOf, readReport, type Compared, type Report } from "./report";
import { RunsTable, type Pair } from "./runs-table";
import { SetPanel } from "./set-panel";
import { storedSet } from "./stored-questions";
import "./evaluation.css";

const MAX_REPORTS = 20;

export default function Evaluation() {
  const [reports, setReports] = useState<Report[]>([]);
  const [pair, setPair] = useState<Pair>({ tested: 0, other: undefined });
  const [set, chooseSet] = useState<QuestionSet | undefined>(storedSet);
  const { act, failure } = useAction();
  // The newest run is looked at, and compared with the one before.
  const add = (read: readonly Report[]) => {
    const all = [...reports, ...read].slice(-MAX_REPORTS);
    setReports(all);
    setPair({ tested: Math.max(all.length - 1, 0), other: all.length > 1 ? all.length - 2 : undefined });
  };
  const open = (files: readonly File[]) =>
    act(
      async () => {
        const sets = await Promise.all(files.filter(isSet).map(readSet));
        return { sets, read: await Promise.all(files.filter((file) => !isSet(file)).map(readReport)) };
      },
      ({ sets, read }) => {
        add(read);
        if (sets.length > 0) chooseSet(sets.at(-1));
      },
    );
  const tested = reports[pair.tested];
  return (
    <>
      {tested === undefined ? (
        <Intro />
      ) : (
        <Comparison key={`${reports.length} ${pair.tested} ${pair.other}`} tested={tested} other={reports[pair.other ?? -1]} />
      )}
      {reports.length > 1 && <RunsTable reports={reports} pair={pair} onPair={setPair} />}
      {set !== undefined && (
        <SetPanel
          key={set.name}
          set={set}
          names={reports.map((report) => report.name)}
          onRun={(report) => add([report])}
        />
      )}
      <div class="after">
        <Drop label="Result files" accept=".json,.jsonl,application/json" onFiles={open}>
          {reports.length === 0
            ? "Drop the queries.jsonl of a question set here, or one or two result files"
            : "Drop another result file to compare with, or a queries.jsonl"}
        </Drop>
      </div>
      <Failure text={failure} />
    </>
  );
}

function Intro() {
  return (
    <>
      <h1>See how much of the evidence reaches the window</h1>
      <p class="sub">
        An evaluation asks questions whose answers are known, and counts how much of the evidence is in the rendered
        window. Make a set from your own store and open its queries.jsonl here: the questions are asked on this server,
        as often as you like, with other settings each time. The page of an{" "}
        <Link class="link" href="/answers">
          answer record
        </Link>{" "}
        makes a question of it, too. Or open the result files of two runs of the command. All of
        them stay in this browser.
      </p>
      <pre class="panel after commands" tabIndex={0}>
        {[
          "conspectus eval init my-set",
          "conspectus eval evidence my-set --max-tokens 256 --max-tokens 1024 --max-tokens 4096 --windows --json > before.json",
          "conspectus eval evidence my-set --max-tokens 256 --max-tokens 1024 --max-tokens 4096 --windows --json > after.json",
        ].join("\n")}
      </pre>
    </>
  );
}

/** The run under test, beside another one that it is compared with. */
function Comparison({ tested, other }: { tested: Report; other: Report | undefined }) {
  const groups = groupsOf(tested);
  const [group, setGroup] = useState(groups[0] ?? "");
  const curve = curveOf(tested, group);
  const [at, setAt] = useState(curve.length - 1);
  const point = curve[Math.min(at, curve.length - 1)];
  if (point === undefined) return <p class="sub">{tested.name} was not measured at any budget.</p>;
  const shares = tested.measures.get(point.measure) ?? new Map<string, number>();
  const otherShares = other?.measures.get(point.measure);
  const series = [{ name: tested.name, points: curve }];
  if (other !== undefined) series.push({ name: other.name, points: curveOf(other, group) });
  return (
    <>
      <h1>
        At {wholeNumber(point.budget)} tokens, {point.mean.toFixed(1)} % of the evidence is in the window, over{" "}
        {counted(shares.size, "question")}.
      </h1>
      <p class="sub">{tested.name}: counted on the rendered window, not on a ranking.</p>
      {groups.length > 1 && (
        <p class="after">
          <Segmented
            label="Kind of questions"
            options={groups.map((group) => [group, group || "all"] as const)}
            value={group}
            onChange={setGroup}
          />
        </p>
      )}
      <div class="beside after">
        <div class="panel">
          <Curve series={series} selectedBudget={point.budget} />
          <input
            class="curve-slider"
            type="range"
            min={0}
            max={curve.length - 1}
            value={Math.min(at, curve.length - 1)}
            aria-label="Budget"
            aria-valuetext={`${wholeNumber(point.budget)} tokens`}
            onInput={(event) => setAt(event.currentTarget.valueAsNumber)}
          />
        </div>
        {other !== undefined && otherShares !== undefined && (
          <Difference first={otherShares} second={shares} names={[other.name, tested.name]} />
        )}
      </div>
      {other !== undefined && otherShares !== undefined && (
        <Cells
          first={{ report: other, shares: otherShares }}
          second={{ report: tested, shares }}
          group={group}
          budget={point.budget}
        />
      )}
    </>
  );
}

type Shares = ReadonlyMap<string, number>;

function Difference({ first, second, names }: { first: Shares; second: Shares; names: readonly [string, string] }) {
  const comparison = useMemo(() => compare(first, second), [first, second]);
  return (
    <div>
      <p class="small dim">Compared with {names[0]}</p>
      <div class="figures after">
        <p class="figure lit">
          {comparison.second.toFixed(1)}
          <span>{names[1]}</span>
        </p>
        <p class="figure">
          {comparison.first.toFixed(1)}
          <span>{names[0]}</span>
        </p>
      </div>
      <Interval comparison={comparison} />
      <p class="after">
        <b>
          {signed(comparison.difference)} points: {verdict(comparison)}.
        </b>{" "}
        <span class="small dim">
          95 % interval {signed(comparison.low)} to {signed(comparison.high)}, paired bootstrap over{" "}
          {counted(comparison.questions, "question")}.
        </span>
      </p>
    </div>
  );
}

const signed = (value: number): string => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(1)}`;

function verdict({ low, high }: Compared): string {
  if (low > 0) return "better";
  return high < 0 ? "worse" : "no clear difference";
}

const AXIS = 320;

function Interval({ comparison }: { comparison: Compared }) {
  const most = Math.max(Math.abs(comparison.low), Math.abs(comparison.high), 1) * 1.2;
  const x = (value: number) => AXIS / 2 + (value / most) * (AXIS / 2 - 8);
  const clear = comparison.low > 0 || comparison.high < 0;
  return (
    <svg class="interval" viewBox={`0 0 ${AXIS} 44`} role="img" aria-label={`The difference is ${verdict(comparison)}`}>
      <line class="rule" x1="0" x2={AXIS} y1="16" y2="16" />
      <line class="same" x1={AXIS / 2} x2={AXIS / 2} y1="4" y2="28" />
      <line class={clear ? "range clear" : "range"} x1={x(comparison.low)} x2={x(comparison.high)} y1="16" y2="16" />
      <circle class={clear ? "dot clear" : "dot"} cx={x(comparison.difference)} cy="16" r="6" />
      <text x={AXIS / 2} y="42" text-anchor="middle">
        same
      </text>
    </svg>
  );
}
