/** Evaluation: question sets and their runs, quality against budget, and two runs compared by question. */
import { useMemo, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { forgetLists, ifAllowed, readCollections, readPages, usualOf } from "../../api/lists";
import { Failure, useAction } from "../../ui/action";
import { useAddress } from "../../ui/address";
import { textField } from "../../ui/address-fields";
import { Segmented } from "../../ui/controls";
import { Drop } from "../../ui/drop";
import { counted, wholeNumber } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { useMay } from "../../ui/may";
import { Cells } from "./cells";
import { Curve } from "./curve";
import { Defaults } from "./defaults";
import { isSet, nameOf, readSet } from "./question-set";
import { compare, curveOf, groupsOf, readReport, type Compared, type Report } from "./report";
import { isFinished, RunsTable, type Entry, type Pair } from "./runs-table";
import { listRuns, readRun, type Run } from "./server-runs";
import { SetPanel } from "./set-panel";
import "./evaluation.css";

const MAX_REPORTS = 20;
const PAGE = 100;
const FIELDS = { collection: textField(), run: textField(), with: textField() };

export default function Evaluation() {
  const [address, change] = useAddress(FIELDS);
  const collections = useLoad(readCollections, []);
  return (
    <Show of={collections} what="the collections">
      {(rows) => {
        const names = rows.map(({ name }) => name);
        const collection = rows.find(({ name }) => name === (address.collection || usualOf(names)));
        return (
          <>
            {rows.length > 1 && (
              <label class="evaluated-collection">
                <span class="label">Collection</span>
                <select
                  class="pick"
                  value={collection?.name}
                  onChange={(event) => change({ collection: event.currentTarget.value, run: "", with: "" })}
                >
                  {names.map((name) => (
                    <option key={name}>{name}</option>
                  ))}
                </select>
              </label>
            )}
            <Experiments key={collection?.name} collection={collection} onChanged={() => (forgetLists(), collections.reload())} />
          </>
        );
      }}
    </Show>
  );
}

/** The runs of a collection, and the result files that were opened here. */
function Experiments({ collection, onChanged }: { collection: Schemas["Collection"] | undefined; onChanged: () => void }) {
  const [address, change] = useAddress(FIELDS);
  const [files, setFiles] = useState<Entry[]>([]);
  const name = collection?.name ?? "";
  const may = useMay(name);
  const { act, failure } = useAction();
  const sets = useLoad((signal) => (name === "" ? undefined : ifAllowed(listSets(name, signal))), [name]);
  const runs = useLoad((signal) => (name === "" ? undefined : ifAllowed(listRuns(name, signal))), [name]);
  const entries = [...(runs.data ?? []).map(entryOf), ...files];
  const pair = pairOf(entries, address.run, address.with);
  const select = ({ tested, other }: Pair) => change({ run: tested?.id ?? "", with: other?.id ?? "" });
  const show = (opened: readonly Entry[]) => {
    setFiles((before) => [...before, ...opened].slice(-MAX_REPORTS));
    change({ run: "", with: "" });
  };
  const open = (dropped: readonly File[]) =>
    act(
      async () => {
        for (const file of dropped.filter(isSet)) {
          if (collection === undefined) throw new Error("There is no collection to ask.");
          await api.createQuestionSet({ collection: name, name: nameOf(file), questions: await readSet(file) });
        }
        return Promise.all(dropped.filter((file) => !isSet(file)).map(readReport));
      },
      (reports) => {
        show(reports.map((report, at) => ({ id: `file ${files.length + at}`, name: report.name, report })));
        sets.reload();
      },
    );
  const use = (run: Run) => act(() => api.useRun({ run: run.id }), onChanged);
  const [set, ...others] = sets.data ?? [];
  return (
    <>
      {pair.tested === undefined ? <Intro /> : <Selected tested={pair.tested} other={pair.other} />}
      <Failure text={failure} />
      {collection !== undefined && may("manager") && <Defaults collection={collection} onChanged={onChanged} />}
      {entries.length > (files.length > 0 ? 1 : 0) && (
        <RunsTable
          entries={entries}
          pair={pair}
          usedRun={collection?.retrieval?.run}
          mayUse={may("manager")}
          onPair={select}
          onUse={use}
          onChanged={runs.reload}
        />
      )}
      {set !== undefined && (
        <SetPanel
          sets={[set, ...others]}
          onRun={() => (change({ run: "", with: "" }), runs.reload())}
          onChanged={() => (sets.reload(), runs.reload())}
        />
      )}
      <div class="after">
        <Drop label="Result files" accept=".json,.jsonl,application/json" onFiles={open}>
          {files.length === 0
            ? "Drop the queries.jsonl of a question set here, or one or two result files"
            : "Drop another result file to compare with, or a queries.jsonl"}
        </Drop>
      </div>
    </>
  );
}

async function listSets(collection: string, signal: AbortSignal): Promise<Schemas["QuestionSet"][]> {
  const { rows } = await readPages(Infinity, PAGE, async (limit, after) => {
    const page = await api.listQuestionSets({ collection, limit, after }, { signal });
    return { rows: page.sets, next: page.next };
  });
  return rows;
}

const entryOf = (run: Run): Entry => ({ id: run.id, name: run.name, run });

/** The runs that the address names; by default the newest one, compared with the one before of the same set. */
function pairOf(entries: readonly Entry[], run: string, other: string): Pair {
  const finished = entries.filter(isFinished);
  const tested = finished.find(({ id }) => id === run) ?? finished.at(-1);
  const earlier = finished.filter((entry) => entry !== tested && entry.run?.set === tested?.run?.set);
  return { tested, other: finished.find(({ id }) => id === other) ?? earlier.at(-1) };
}

/** Two runs, which are read first. */
function Selected({ tested, other }: { tested: Entry; other: Entry | undefined }) {
  const reports = useLoad(
    (signal) => Promise.all([reportOf(tested, signal), other === undefined ? undefined : reportOf(other, signal)]),
    [tested.id, other?.id],
  );
  return (
    <Show of={reports} what="the runs">
      {([first, second]) => <Comparison key={`${tested.id} ${other?.id}`} tested={first} other={second} />}
    </Show>
  );
}

const reportOf = async ({ id, report }: Entry, signal: AbortSignal): Promise<Report> => report ?? readRun(id, signal);

function Intro() {
  return (
    <>
      <h1>See how much of the evidence reaches the window</h1>
      <p class="sub">
        An evaluation asks questions whose answers are known, and counts how much of the evidence is in the rendered
        window. Make a set from your own store and open its queries.jsonl here: this server keeps it, and asks its
        questions as often as you like, with other settings each time. The page of an{" "}
        <Link class="link" href="/answers">
          answer record
        </Link>{" "}
        makes a question of it, too. Result files of the command can be opened beside the runs; they stay in this
        browser.
      </p>
      <pre class="panel after commands" tabIndex={0}>
        {[
          "conspectus eval init my-set",
          "conspectus eval evidence my-set --max-tokens 256 --max-tokens 1024 --max-tokens 4096 --windows --json > before.json",
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
