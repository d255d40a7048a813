import type { Status } from "./anatomy";

export const STATUSES: readonly (readonly [Status, string])[] = [
  ["included", "In the window"],
  ["truncated", "Cut to fit"],
  ["duplicate", "Duplicate"],
  ["near_duplicate", "Near copy"],
  ["over_budget", "Over budget"],
  ["below_min_similarity", "Below threshold"],
  ["below_min_confidence", "Below confidence"],
  ["below_min_trust", "Below trust"],
];

const NAMES = new Map<string, string>(STATUSES);

export const statusName = (status: Status): string => NAMES.get(status) ?? status.replaceAll("_", " ");

export function Glyph({ status }: { status: Status | "no_role" }) {
  return <span class={`glyph ${status}`} aria-hidden="true" />;
}

export function StatusLabel({ status }: { status: Status }) {
  const lit = status === "included" || status === "truncated";
  return (
    <span class={lit ? "status lit" : "status"}>
      <Glyph status={status} />
      {statusName(status)}
    </span>
  );
}
