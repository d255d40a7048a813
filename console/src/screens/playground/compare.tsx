import { useMemo, useRef } from "preact/hooks";
import { api } from "../../api/client";
import { counted, wholeNumber } from "../../ui/format";
import { useKeys } from "../../ui/keys";
import { useLoad, type Loaded } from "../../ui/load";
import { isIn, passagesOf, type Window } from "../../window/anatomy";
import { Side } from "../../window/side";
import { BUDGETS } from "./budget";
import { bodyOf, fieldsOf, settingsOf, type Settings } from "./settings";

/** What the window is compared with: another budget, other retrievers, or settings that were kept; empty for nothing. */
export type Other = "" | "keyword" | "vector" | "both" | "kept" | `${number}`;

interface Compared {
  name: string;
  loaded: Loaded<Window>;
  gained: number;
  lost: number;
  /** What differs between the settings, in words. */
  changes: readonly string[];
}

/** The second window, and what of the first is not in it. */
export function useComparison(settings: Settings, other: Other, savedSettings: string, window: Window) {
  const changed = otherSettings(settings, other, savedSettings);
  const loaded = useLoad(
    (signal) =>
      changed === undefined ? undefined : api.explain(bodyOf(changed), { signal }),
    [JSON.stringify(changed)],
  );
  const otherWindow = changed === undefined ? undefined : loaded.data;
  const marks = useMemo(() => (otherWindow === undefined ? undefined : differences(window, otherWindow)), [window, otherWindow]);
  const compared: Compared | undefined =
    changed === undefined
      ? undefined
      : {
          name: nameOf(other),
          loaded,
          gained: count(marks, ONLY_THERE),
          lost: count(marks, ONLY_HERE),
          changes: changesOf(settings, changed),
        };
  return { compared, marks };
}

const ONLY_HERE = "only here";
const ONLY_THERE = "only in the other";

const chunksIn = (window: Window): ReadonlySet<number> => new Set(window.trace.filter(isIn).map((entry) => entry.chunk));

function differences(window: Window, other: Window): Map<number, string> {
  const [here, there] = [chunksIn(window), chunksIn(other)];
  const marks = new Map<number, string>();
  for (const chunk of here) if (!there.has(chunk)) marks.set(chunk, ONLY_HERE);
  for (const chunk of there) if (!here.has(chunk)) marks.set(chunk, ONLY_THERE);
  return marks;
}

/** The numbers of passages of which the other window has all chunks. */
function sharedBy(window: Window, other: Window): ReadonlySet<number> {
  const there = chunksIn(other);
  const shared = passagesOf(window).filter((passage) => passage.entries.every((entry) => there.has(entry.chunk)));
  return new Set(shared.map((passage) => passage.number));
}

const count = (marks: ReadonlyMap<number, string> | undefined, mark: string): number =>
  [...(marks?.values() ?? [])].filter((passageMark) => passageMark === mark).length;

function otherSettings(settings: Settings, other: Other, savedSettings: string): Settings | undefined {
  if (other === "") return undefined;
  if (other === "kept") return settingsOf(new URLSearchParams(savedSettings));
  if (other === "keyword" || other === "vector" || other === "both") return { ...settings, retrievers: other };
  return { ...settings, maxTokens: Number(other) };
}

/** Settings as they are kept in the address. */
export function keptOf(settings: Settings): string {
  const fields = Object.entries(fieldsOf(settings)).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(fields as [string, string][]).toString();
}

const NAMES: readonly (readonly [keyof Settings, string])[] = [
  ["query", "question"],
  ["collection", "collection"],
  ["maxTokens", "budget"],
  ["reservedTokens", "kept for the answer"],
  ["system", "system text"],
  ["filter", "filter"],
  ["asOf", "as of"],
  ["minSimilarity", "threshold"],
  ["retrievers", "found by"],
  ["profile", "score profile"],
  ["rerank", "rerank"],
  ["minTrust", "least trust"],
];

function changesOf(one: Settings, other: Settings): string[] {
  const formatSetting = (value: Settings[keyof Settings]) =>
    typeof value === "number" ? wholeNumber(value) : String(value) || "none";
  return NAMES.filter(([key]) => one[key] !== other[key]).map(
    ([key, name]) => `${name}: ${formatSetting(one[key])} here, ${formatSetting(other[key])} there`,
  );
}

function nameOf(other: Other): string {
  if (other === "keyword") return "words alone";
  if (other === "vector") return "meaning alone";
  if (other === "both") return "words and meaning";
  if (other === "kept") return "the kept settings";
  return `${wholeNumber(Number(other))} tokens`;
}

/** Both windows side by side: what only one of them has is green, what both have is pale. */
export function Comparison({ window, comparison }: { window: Window; comparison: { compared: Compared | undefined } }) {
  const compared = comparison.compared;
  const other = compared?.loaded.data;
  const shared = useMemo(
    () => (other === undefined ? undefined : ([sharedBy(window, other), sharedBy(other, window)] as const)),
    [window, other],
  );
  if (compared === undefined) return null;
  if (compared.loaded.error !== undefined) return <p class="failed">{compared.loaded.error.message}</p>;
  if (other === undefined) return <p class="small dim">Building the other window …</p>;
  return (
    <section class="compared" aria-label="Comparison">
      <h2>Side by side</h2>
      <p class="sub">
        With <b>{compared.name}</b>: {wholeNumber(other.tokens)} tokens,{" "}
        {compared.gained === 0 && compared.lost === 0
          ? "the same candidates."
          : `${counted(compared.gained, "candidate")} more and ${wholeNumber(compared.lost)} fewer.`}{" "}
        {compared.changes.length === 0 && "The settings are the same: change any of them above."}
      </p>
      <ul class="cluster after" aria-label="What differs">
        {compared.changes.map((change) => (
          <li key={change} class="change">
            {change}
          </li>
        ))}
      </ul>
      <p class="legend after">
        <span>
          <i class="swatch of-passage" />
          only in this window
        </span>
        <span>
          <i class="swatch of-passage shared" />
          in both
        </span>
      </p>
      <div class="columns">
        <Side name="These settings" window={window} shared={shared?.[0]} />
        <Side name={`With ${compared.name}`} window={other} shared={shared?.[1]} />
      </div>
    </section>
  );
}

export function ComparePicker({
  other,
  settings,
  onOther,
}: {
  other: Other;
  settings: Settings;
  onOther: (other: Other) => void;
}) {
  const select = useRef<HTMLSelectElement>(null);
  useKeys({ c: () => select.current?.focus() });
  const ways = (["both", "keyword", "vector"] as const).filter((way) => way !== settings.retrievers);
  return (
    <label class="small dim">
      Compare with{" "}
      <select ref={select} class="pick" value={other} onChange={(event) => onOther(event.currentTarget.value as Other)}>
        <option value="">nothing</option>
        <option value="kept">{other === "kept" ? "the kept settings" : "these settings, to change some"}</option>
        {ways.map((way) => (
          <option key={way} value={way}>
            {nameOf(way)}
          </option>
        ))}
        {BUDGETS.filter((budget) => budget !== settings.maxTokens).map((budget) => (
          <option key={budget} value={String(budget)}>
            {wholeNumber(budget)} tokens
          </option>
        ))}
      </select>
    </label>
  );
}
