/** Why evidence is not in a window, in one sentence, from the windows of two runs. */
import { isCovered, overlaps, type Place } from "./report";

export interface NamedWindow {
  /** The name of the run. */
  name: string;
  passages: readonly Place[];
}

/** The reason why one window does not have all of the evidence; nothing where it does. */
export function reasonOf(evidence: Place, window: NamedWindow, other: NamedWindow): string {
  if (isCovered(evidence, window.passages)) return "";
  return `${shortfallOf(evidence, window)}${otherPlaceOf(evidence, other)}.`;
}

function shortfallOf(evidence: Place, { name, passages }: NamedWindow): string {
  if (passages.length === 0) return `Nothing is in the window of ${name}`;
  const parts = passages.filter((passage) => overlaps(passage, evidence));
  if (parts.length > 0) {
    const length = evidence.end - evidence.start;
    const covered = Math.min(length, lengthInside(evidence, parts));
    return `${name} has ${covered} of its ${length} characters`;
  }
  const sameDocument = passages.filter((passage) => passage.document === evidence.document).length;
  if (sameDocument > 0) return `${name} has other places of ${evidence.name}`;
  return `${name} has ${passages.length === 1 ? "one passage" : `${passages.length} passages`}, none of ${evidence.name}`;
}

function otherPlaceOf(evidence: Place, { name, passages }: NamedWindow): string {
  const at = passages.findIndex((passage) => overlaps(passage, evidence));
  return at === -1 ? `, and ${name} does not have it either` : `; in ${name} it is passage ${at + 1} of ${passages.length}`;
}

/** How many characters of the evidence the passages have. */
function lengthInside(evidence: Place, passages: readonly Place[]): number {
  let [length, reached] = [0, evidence.start];
  for (const passage of [...passages].sort((one, two) => one.start - two.start)) {
    const [start, end] = [Math.max(passage.start, reached), Math.min(passage.end, evidence.end)];
    if (end > start) length += end - start;
    reached = Math.max(reached, end);
  }
  return length;
}
