/** The part of a stream that is shown, in seconds on its clock. */
import type { Schemas } from "../../api/client";

type Stream = Schemas["Stream"];

export interface View {
  from: number;
  to: number;
}

const MIN_SECONDS = 2;

export function offset(stream: Stream, instant: string | null): number | undefined {
  return instant === null ? undefined : (Date.parse(instant) - Date.parse(stream.start_time)) / 1000;
}

/** The whole stream. One without a start time, whose times are instants, begins with its first caption. */
export function wholeOf(stream: Stream, last: number): View {
  const dated = stream.wall && new Date(stream.start_time).getUTCFullYear() === 1970;
  const from = dated ? (offset(stream, stream.first) ?? 0) : 0;
  return { from, to: Math.max(offset(stream, stream.last) ?? 0, last, from + 1) };
}

/** What the address says, or nothing for the whole stream. */
export function viewOf(from: string, to: string): View | undefined {
  const view = { from: Number.parseFloat(from), to: Number.parseFloat(to) };
  return view.from < view.to ? view : undefined;
}

/** A view of the whole, not smaller than a moment; the whole itself is no view. */
export function within(view: View, fullView: View): View | undefined {
  const length = Math.min(Math.max(view.to - view.from, MIN_SECONDS), fullView.to - fullView.from);
  const from = Math.min(Math.max(view.from, fullView.from), fullView.to - length);
  if (length >= fullView.to - fullView.from) return undefined;
  return { from: Math.round(from * 100) / 100, to: Math.round((from + length) * 100) / 100 };
}

/** Closer (below 1) or wider around the middle. */
export function zoomView({ from, to }: View, by: number): View {
  const [middle, half] = [(from + to) / 2, ((to - from) / 2) * by];
  return { from: middle - half, to: middle + half };
}

/** Later or earlier, by a share of what is shown. */
export function moveView({ from, to }: View, by: number): View {
  const step = (to - from) * by;
  return { from: from + step, to: to + step };
}
