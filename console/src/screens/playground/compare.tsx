import { useMemo } from "preact/hooks";
import { api } from "../../api/client";
import { counted, whole } from "../../ui/format";
import { useLoad, type Loaded } from "../../ui/load";
import { isIn, passagesOf, type Window } from "../../window/anatomy";
import { BudgetBar } from "../../window/budget-bar";
import { BUDGETS, bodyOf, type Settings } from "./settings";

/** What the window is compared with: another budget, or other retrievers; nothing if it is empty. */
export type Other = "" | "keyword" | "vector" | "both" | `${number}`;

interface Compared {
  name: string;
  loaded: Loaded<Window>;
  gained: number;
  lost: number;
}

/** The second window, and what of the first is not in it. */
export function useComparison(settings: Settings, other: Other, window: Window) {
  const changed = otherSettings(settings, other);
  const loaded = useLoad(
    (signal) =>
      changed === undefined ? undefined : api.explain(bodyOf(changed), { signal }),
    [JSON.stringify(changed)],
  );
  const found = changed === undefined ? undefined : loaded.data;
  const marks = useMemo(() => (found === undefined ? undefined : differences(window, found)), [window, found]);
  const compared: Compared | undefined =
    changed === undefined
      ? undefined
      : {
          name: nameOf(other),
          loaded,
          gained: count(marks, ONLY_THERE),
          lost: count(marks, ONLY_HERE),
        };
  return { compared, marks };
}

const ONLY_HERE = "only here";
const ONLY_THERE = "only in the other";

function differences(window: Window, other: Window): Map<number, string> {
  const here = new Set(window.trace.filter(isIn).map((each) => each.chunk));
  const there = new Set(other.trace.filter(isIn).map((each) => each.chunk));
  const marks = new Map<number, string>();
  for (const chunk of here) if (!there.has(chunk)) marks.set(chunk, ONLY_HERE);
  for (const chunk of there) if (!here.has(chunk)) marks.set(chunk, ONLY_THERE);
  return marks;
}

const count = (marks: ReadonlyMap<number, string> | undefined, mark: string): number =>
  [...(marks?.values() ?? [])].filter((each) => each === mark).length;

function otherSettings(settings: Settings, other: Other): Settings | undefined {
  if (other === "") return undefined;
  if (other === "keyword" || other === "vector" || other === "both") return { ...settings, retrievers: other };
  return { ...settings, maxTokens: Number(other) };
}

function nameOf(other: Other): string {
  if (other === "keyword") return "words alone";
  if (other === "vector") return "meaning alone";
  if (other === "both") return "words and meaning";
  return `${whole(Number(other))} tokens`;
}

export function Comparison({ comparison }: { comparison: { compared: Compared | undefined } }) {
  const compared = comparison.compared;
  if (compared === undefined) return null;
  const window = compared.loaded.data;
  if (compared.loaded.error !== undefined) return <p class="failed">{compared.loaded.error.message}</p>;
  if (window === undefined) return <p class="small dim">Building the other window …</p>;
  const cut = new Set(passagesOf(window).filter((each) => each.cut).map((each) => each.number));
  return (
    <div class="compared">
      <p class="small">
        With <b>{compared.name}</b>: {whole(window.tokens)} tokens,{" "}
        {compared.gained === 0 && compared.lost === 0
          ? "the same candidates."
          : `${counted(compared.gained, "candidate")} more and ${whole(compared.lost)} fewer.`}
      </p>
      <BudgetBar parts={window.parts} cut={cut} thin />
    </div>
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
  const ways = (["both", "keyword", "vector"] as const).filter((each) => each !== settings.retrievers);
  return (
    <label class="small dim">
      Compare with{" "}
      <select class="pick" value={other} onChange={(event) => onOther(event.currentTarget.value as Other)}>
        <option value="">nothing</option>
        {ways.map((each) => (
          <option key={each} value={each}>
            {nameOf(each)}
          </option>
        ))}
        {BUDGETS.filter((each) => each !== settings.maxTokens).map((each) => (
          <option key={each} value={String(each)}>
            {whole(each)} tokens
          </option>
        ))}
      </select>
    </label>
  );
}
