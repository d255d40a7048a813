import { score } from "../ui/format";

const SHADES: Record<string, string> = { keyword: "part-words", vector: "part-meaning" };
const NAMES: Record<string, string> = { keyword: "words", vector: "meaning" };

const shade = (part: string): string => SHADES[part] ?? "part-rest";
const partName = (part: string): string => NAMES[part] ?? part.replaceAll("_", " ");

/** A score as its named parts; `most` is the score that fills the bar, the same for all bars of a list. */
export function ScoreBar({ parts, most, large }: { parts: Record<string, number>; most: number; large?: boolean }) {
  return (
    <span class={large === true ? "score large" : "score"} aria-hidden="true">
      {Object.entries(parts).map(
        ([part, value]) =>
          value > 0 && <span key={part} class={shade(part)} style={{ width: `${(value / (most || 1)) * 100}%` }} />,
      )}
    </span>
  );
}

/** What is less is shown as .000, and changes nothing that one can see. */
const MIN_SHARE = 0.0005;

/** The parts of a score with their figures, in the order of the bar. */
export function ScoreParts({ parts }: { parts: Record<string, number> }) {
  return (
    <p class="legend">
      {Object.entries(parts).map(
        ([part, value]) =>
          Math.abs(value) >= MIN_SHARE && (
            <span key={part}>
              <i class={`swatch ${shade(part)}`} />
              {partName(part)} <b>{score(value)}</b>
            </span>
          ),
      )}
    </p>
  );
}
