/** The sentence of a text that states an edge: the one that names both of its ends. */
import type { Span } from "../../ui/location";

export interface Stated extends Span {
  text: string;
  /** Whether it names both ends; otherwise one of them. */
  namesBoth: boolean;
}

/** Characters of a text that are searched. */
const MAX_CHARACTERS = 1_000_000;

/** The first sentence with a name of each end, or else with a name of one; undefined where none has. */
export function sentenceOf(text: string, source: readonly string[], target: readonly string[]): Stated | undefined {
  const segments = new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(text.slice(0, MAX_CHARACTERS));
  let other: { segment: string; index: number } | undefined;
  for (const { segment, index } of segments) {
    const folded = fold(segment);
    const [namesSource, namesTarget] = [source, target].map((names) => names.some((name) => folded.includes(fold(name))));
    if (namesSource && namesTarget) return spanOf(text, segment, index, true);
    if (namesSource || namesTarget) other ??= { segment, index };
  }
  return other && spanOf(text, other.segment, other.index, false);
}

const fold = (text: string): string => text.normalize("NFC").toLowerCase();

/** The place of a segment by code points, as the API counts, without the space around it. */
function spanOf(text: string, segment: string, index: number, namesBoth: boolean): Stated {
  const stated = segment.trim();
  const start = Array.from(text.slice(0, index + segment.indexOf(stated))).length;
  return { text: stated, start, end: start + Array.from(stated).length, namesBoth };
}
