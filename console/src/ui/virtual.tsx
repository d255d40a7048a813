import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const PLAIN = 200;
const MARGIN = 6;

/** A list of rows of one height. From 200 rows on it scrolls by itself, and only rows in view are in the page. */
export function Virtual<T>({
  rows,
  height,
  selected,
  follow,
  onEnd,
  label,
  children,
}: {
  rows: readonly T[];
  /** Of a row, in pixels. */
  height: number;
  /** The place of a row that is kept in view. */
  selected?: number | undefined;
  /** Whether a short list, which does not scroll by itself, also scrolls the page to it. */
  follow?: boolean;
  /** Called when the last row of a list that scrolls by itself comes into view. */
  onEnd?: (() => void) | undefined;
  label: string;
  children: (row: T, at: number) => ComponentChildren;
}) {
  const element = useRef<HTMLOListElement>(null);
  const [view, setView] = useState({ top: 0, height: 640 });
  const large = rows.length > PLAIN;
  useEffect(() => {
    const list = element.current;
    if (list === null || !large) return;
    const updateView = () => setView({ top: list.scrollTop, height: list.clientHeight });
    updateView();
    list.addEventListener("scroll", updateView, { passive: true });
    return () => list.removeEventListener("scroll", updateView);
  }, [large]);
  useLayoutEffect(() => {
    const list = element.current;
    if (list === null || selected === undefined) return;
    if (!large) {
      if (follow === true) list.children[selected]?.scrollIntoView({ block: "nearest" });
      return;
    }
    const top = selected * height;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
  }, [selected, height, large]);
  const first = large ? Math.max(0, Math.floor(view.top / height) - MARGIN) : 0;
  const last = large ? Math.ceil((view.top + view.height) / height) + MARGIN : rows.length;
  const ending = large && last >= rows.length;
  useEffect(() => {
    if (ending) onEnd?.();
  }, [ending, rows.length]);
  return (
    <ol ref={element} class={large ? "virtual" : undefined} aria-label={label} tabIndex={large ? 0 : undefined}>
      {first > 0 && <li aria-hidden="true" style={{ height: `${first * height}px` }} />}
      {rows.slice(first, last).map((row, at) => (
        <li key={first + at} aria-setsize={rows.length} aria-posinset={first + at + 1}>
          {children(row, first + at)}
        </li>
      ))}
      {last < rows.length && <li aria-hidden="true" style={{ height: `${(rows.length - last) * height}px` }} />}
    </ol>
  );
}
