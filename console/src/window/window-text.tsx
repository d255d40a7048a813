import { useEffect, useMemo, useRef } from "preact/hooks";
import { CopyButton } from "../ui/controls";
import type { Passage, Window } from "./anatomy";

interface Piece {
  text: string;
  /** Nothing for headers and what else stands between passages. */
  passage: Passage | undefined;
}

/** Pixels of the text before the chosen passage that stay in view. */
const MARGIN = 40;

/** The text of a window, cut where passages begin and end. */
function pieces(window: Window, passages: readonly Passage[]): Piece[] {
  const letters = Array.from(window.text);
  const parts: Piece[] = [];
  let at = 0;
  const add = (end: number, passage?: Passage) => {
    if (end > at) parts.push({ text: letters.slice(at, end).join(""), passage });
    at = Math.max(at, end);
  };
  for (const part of window.parts) {
    if (part.kind !== "passage" || part.start === null || part.end === null) continue;
    add(part.start);
    add(part.end, passages.find((passage) => passage.number === part.number));
  }
  add(letters.length);
  return parts;
}

/** The window as the model gets it, letter by letter. */
export function WindowText({
  window,
  passages,
  selected,
  onSelect,
}: {
  window: Window;
  passages: readonly Passage[];
  selected?: number | undefined;
  onSelect: (number: number) => void;
}) {
  const windowPieces = useMemo(() => pieces(window, passages), [window, passages]);
  const selectedMark = useRef<HTMLElement>(null);
  useEffect(() => {
    const panel = selectedMark.current?.parentElement;
    if (selectedMark.current !== null && panel) panel.scrollTop = selectedMark.current.offsetTop - MARGIN;
  }, [selected]);
  return (
    <>
      <div class="window-text" tabIndex={0} role="region" aria-label="The window as the model gets it">
        {windowPieces.map(({ text, passage }, at) =>
          passage === undefined ? (
            <span key={at} class="dim">
              {text}
            </span>
          ) : (
            <span
              key={at}
              ref={passage.number === selected ? selectedMark : undefined}
              class={passage.number === selected ? "piece on" : "piece"}
              onClick={() => onSelect(passage.number)}
            >
              {text}
            </span>
          ),
        )}
      </div>
      <p class="cluster window-copy">
        <CopyButton text={window.text} label="Copy the window" />
        <span class="small dim">The lines between passages are headers, and count in the budget.</span>
      </p>
    </>
  );
}
