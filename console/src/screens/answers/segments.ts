/** The passages in the text of a window, by the marks that number them. */

export interface Segment {
  text: string;
  /** The number of the passage; undefined for what stands before the first one. */
  number: number | undefined;
}

/** Cuts a text where the passages with these numbers begin, in their order. */
export function segmentsOf(text: string, numbers: readonly number[]): Segment[] {
  const starts: { at: number; number: number }[] = [];
  let from = 0;
  for (const number of numbers) {
    const at = startOf(text, number, from);
    if (at < 0) continue;
    starts.push({ at, number });
    from = at + 1;
  }
  const first = starts[0]?.at ?? text.length;
  const segments: Segment[] = first > 0 ? [{ text: text.slice(0, first), number: undefined }] : [];
  starts.forEach(({ at, number }, index) => {
    segments.push({ text: text.slice(at, starts[index + 1]?.at ?? text.length), number });
  });
  return segments;
}

/** Where the passage of a number begins: its mark at the start of a line, or the element that has the number. */
function startOf(text: string, number: number, from: number): number {
  const mark = new RegExp(`^\\[${number}\\]|^<passage [^>\\n]*number="${number}"`, "gm");
  mark.lastIndex = from;
  return mark.exec(text)?.index ?? -1;
}
