import { useState } from "preact/hooks";
import { counted, wholeNumber } from "../../ui/format";
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
  const questions = [...second.shares.keys()].filter((question) => first.shares.has(question));
  const changes = questions.map((question) => changeOf(first.shares.get(question) ?? 0, second.shares.get(question) ?? 0));
  const count = (change: Change) => changes.filter((questionChange) => questionChange === change).length;
  const [selected, choose] = useState<string>();
  return (
    <section>
      <h2>{counted(count("gained") + count("lost"), "question")} changed</h2>
      <p class="legend after">
        {CHANGES.map(([change, name]) => (
          <span key={change}>
            <i class={`swatch cell ${change}`} />
            {name} <b>{wholeNumber(count(change))}</b>
          </span>
        ))}
      </p>
      <div class="cells" role="group" aria-label="Questions">
        {questions.map((question, at) => (
          <button
            key={question}
            type="button"
            class={`cell ${changes[at]}`}
            aria-label={`Question ${at + 1}: ${changes[at]}`}
            aria-pressed={question === selected}
            onClick={() => choose(question)}
          />
        ))}
      </div>
      {selected !== undefined && <SideBySide key={selected} id={selected} first={first} second={second} group={group} budget={budget} />}
    </section>
  );
}
