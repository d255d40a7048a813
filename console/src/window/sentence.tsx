import { counted, wholeNumber } from "../ui/format";
import type { Part } from "./anatomy";

/** The answer in one sentence, with figures. */
export function Filled({ passages, window }: { passages: number; window: { tokens: number; max_tokens: number } }) {
  if (passages === 0) {
    return (
      <h1>
        <b>Nothing</b> is in the window.
      </h1>
    );
  }
  return (
    <h1>
      <b class="lit">{counted(passages, "passage")}</b> {passages === 1 ? "fills" : "fill"}{" "}
      <b>{wholeNumber(window.tokens)}</b> of the <b>{wholeNumber(window.max_tokens)}</b> tokens they may have.
    </h1>
  );
}

/** Leads from the passages' part of the bar to the map, which is that part enlarged. */
export function Funnel({ window }: { window: { parts: readonly Part[] } }) {
  const total = window.parts.reduce((sum, part) => sum + part.tokens, 0) || 1;
  let at = 0;
  let [first, last] = [Number.NaN, 0];
  for (const part of window.parts) {
    if (part.kind === "passage") {
      first = Number.isNaN(first) ? at : first;
      last = at + part.tokens;
    }
    at += part.tokens;
  }
  if (Number.isNaN(first)) return null;
  const [left, right] = [(first / total) * 1000, (last / total) * 1000];
  return (
    <svg class="fan" viewBox="0 0 1000 26" preserveAspectRatio="none" aria-hidden="true">
      <path d={`M${left},0 C${left},16 0,10 0,26 L1000,26 C1000,10 ${right},16 ${right},0 Z`} />
    </svg>
  );
}
