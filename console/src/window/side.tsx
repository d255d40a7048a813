import { useState } from "preact/hooks";
import { counted, whole } from "../ui/format";
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
  const chosen = passages.find((each) => each.number === selected);
  const cut = new Set(passages.filter((each) => each.cut).map((each) => each.number));
  return (
    <section aria-label={`Window of ${name}`}>
      <h2>{name}</h2>
      <BudgetBar parts={window.parts} cut={cut} lost={lost} shared={shared} thin />
      <WindowMap passages={passages} selected={selected} onSelect={select} lost={lost} shared={shared} alone />
      <p class="small dim">
        {whole(window.tokens)} of {whole(window.max_tokens)} tokens from{" "}
        {counted(window.trace.filter(isIn).length, "candidate")}
      </p>
      {chosen !== undefined && (
        <p class="text small side-text" tabIndex={0}>
          {chosen.text}
        </p>
      )}
    </section>
  );
}
