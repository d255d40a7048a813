import { wholeNumber } from "../ui/format";
import { shareOf, sharesOf, type Part, type Share } from "./anatomy";

const NAMES: readonly (readonly [Share, string])[] = [
  ["prompt", "Prompt"],
  ["header", "Headers"],
  ["passage", "Passages"],
  ["free", "Free"],
  ["reserved", "Answer"],
];

/** The whole budget as one bar, to scale, in the order in which the model reads it. */
export function BudgetBar({
  parts,
  cut,
  lost,
  shared,
  selected,
  onSelect,
  thin,
}: {
  parts: readonly Part[];
  /** Numbers of passages that were cut. */
  cut?: ReadonlySet<number>;
  /** Numbers of passages that another person has no role for. */
  lost?: ReadonlySet<number> | undefined;
  /** Numbers of passages that are in the other window of a comparison, too. */
  shared?: ReadonlySet<number> | undefined;
  selected?: number;
  onSelect?: (number: number) => void;
  thin?: boolean;
}) {
  const total = parts.reduce((sum, part) => sum + part.tokens, 0) || 1;
  return (
    <div class={thin === true ? "bar thin" : "bar"}>
      {parts.map((part, at) => {
        if (part.tokens === 0) return null;
        const share = shareOf(part);
        const style = { width: `${(part.tokens / total) * 100}%` };
        const number = part.number ?? 0;
        if (share !== "passage") {
          return (
            <span key={at} class={`of-${share}`} style={style}>
              {share === "reserved" && thin !== true && <span>kept for the answer</span>}
            </span>
          );
        }
        const shades = [
          "of-passage",
          cut?.has(number) && "cut",
          lost?.has(number) && "lost",
          shared?.has(number) && "shared",
          selected === number && "on",
        ];
        if (onSelect === undefined) return <span key={at} class={shades.filter(Boolean).join(" ")} style={style} />;
        return (
          <button
            key={at}
            type="button"
            class={shades.filter(Boolean).join(" ")}
            style={style}
            aria-label={`Passage ${number}, ${wholeNumber(part.tokens)} tokens`}
            onClick={() => onSelect(number)}
          />
        );
      })}
    </div>
  );
}

/** Names and figures of the bar in its order; they end in the budget. */
export function BudgetLegend({ parts }: { parts: readonly Part[] }) {
  const shares = sharesOf(parts);
  const total = Object.values(shares).reduce((sum, share) => sum + share, 0);
  return (
    <p class="legend">
      {NAMES.map(
        ([share, name]) =>
          (shares[share] > 0 || share === "free") && (
            <span key={share}>
              <i class={`swatch of-${share}`} />
              {name} <b>{wholeNumber(shares[share])}</b>
            </span>
          ),
      )}
      <span>= {wholeNumber(total)} tokens</span>
    </p>
  );
}
