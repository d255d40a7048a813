import { useState } from "preact/hooks";
import { counted, whole } from "../../ui/format";
import type { Report } from "./report";
import { SideBySide } from "./side-by-side";

export interface Run {
  report: Report;
  /** The share of the evidence in the window of each question. */
  shares: ReadonlyMap<string, number>;
}

type Change = "gained" | "lost" | "both" | "neither";

const CHANGES: readonly (readonly [Change, string])[] = [
  ["gained", "gained"],
  ["lost", "lost"],
  ["both", "whole in both"],
  ["neither", "not whole in either"],
];

function changeOf(before: number, after: number): Change {
  if (after > before) return "gained";
  if (after < before) return "lost";
  return after === 1 ? "both" : "neither";
}

/** The questions of two runs and what became of them; one that is chosen shows both of its windows. */
export function Cells({ first, second, group, budget }: { first: Run; second: Run; group: string; budget: number }) {
  const questions = [...second.shares.keys()].filter((each) => first.shares.has(each));
  const changes = questions.map((each) => changeOf(first.shares.get(each) ?? 0, second.shares.get(each) ?? 0));
  const count = (change: Change) => changes.filter((each) => each === change).length;
  const [chosen, choose] = useState<string>();
  return (
    <section>
      <h2>{counted(count("gained") + count("lost"), "question")} changed</h2>
      <p class="legend after">
        {CHANGES.map(([change, name]) => (
          <span key={change}>
            <i class={`swatch cell ${change}`} />
            {name} <b>{whole(count(change))}</b>
          </span>
        ))}
      </p>
      <div class="cells" role="group" aria-label="Questions">
        {questions.map((each, at) => (
          <button
            key={each}
            type="button"
            class={`cell ${changes[at]}`}
            aria-label={`Question ${at + 1}: ${changes[at]}`}
            aria-pressed={each === chosen}
            onClick={() => choose(each)}
          />
        ))}
      </div>
      {chosen !== undefined && <SideBySide key={chosen} id={chosen} first={first} second={second} group={group} budget={budget} />}
    </section>
  );
}
