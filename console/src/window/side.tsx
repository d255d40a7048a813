import { useState } from "preact/hooks";
import { counted, wholeNumber } from "../ui/format";
import { isIn, passagesOf, type Window } from "./anatomy";
import { BudgetBar } from "./budget-bar";
import { WindowMap } from "./window-map";

/** One of two windows that stand side by side. */
export function Side({
  name,
  window,
  lost,
  shared,
}: {
  name: string;
  window: Window;
  /** Numbers of passages that another person has no role for. */
  lost?: ReadonlySet<number> | undefined;
  /** Numbers of passages that are in the other window, too. */
  shared?: ReadonlySet<number> | undefined;
}) {
  const passages = passagesOf(window);
  const [selected, select] = useState<number>();
  const selectedPassage = passages.find((passage) => passage.number === selected);
  const cut = new Set(passages.filter((passage) => passage.cut).map((passage) => passage.number));
  return (
    <section aria-label={`Window of ${name}`}>
      <h2>{name}</h2>
      <BudgetBar parts={window.parts} cut={cut} lost={lost} shared={shared} thin />
      <WindowMap passages={passages} selected={selected} onSelect={select} lost={lost} shared={shared} alone />
      <p class="small dim">
        {wholeNumber(window.tokens)} of {wholeNumber(window.max_tokens)} tokens from{" "}
        {counted(window.trace.filter(isIn).length, "candidate")}
      </p>
      {selectedPassage !== undefined && (
        <p class="text small side-text" tabIndex={0}>
          {selectedPassage.text}
        </p>
      )}
    </section>
  );
}
