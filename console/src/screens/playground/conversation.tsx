import { api } from "../../api/client";
import { counted, wholeNumber } from "../../ui/format";
import { sharesOf, type Window } from "../../window/anatomy";
import { bodyOf, type Settings } from "./settings";

const REASONS = new Map([
  ["not_found", "deleted, or hidden from you"],
  ["filtered", "left out by the filter"],
  ["changed", "changed"],
  ["stale", "not needed any more"],
]);

/** The window of the last of several questions, each of which begins with the window of the one before. */
export async function explainInTurn(settings: Settings, signal: AbortSignal): Promise<Window> {
  let previous: string | undefined;
  for (const query of settings.after) {
    const before = await api.explain({ ...bodyOf({ ...settings, query }), ...(previous && { previous }) }, { signal });
    previous = before.state;
  }
  return api.explain({ ...bodyOf(settings), ...(previous && { previous }) }, { signal });
}

/** The unchanged beginning of the window, above the bar and on its scale. */
export function StableBeginning({ window }: { window: Window }) {
  const plan = window.cache_plan;
  if (plan === null || plan === undefined) return null;
  const total = window.parts.reduce((sum, part) => sum + part.tokens, 0) || 1;
  const prompt = sharesOf(window.parts).prompt;
  return (
    <div class="stable-track" aria-hidden="true">
      <span style={{ marginLeft: `${(prompt / total) * 100}%`, width: `${(plan.stable_tokens / total) * 100}%` }} />
    </div>
  );
}

/** What of the window a model provider has in its cache from the question before. */
export function CachePlan({ window }: { window: Window }) {
  const plan = window.cache_plan;
  if (plan === null || plan === undefined) return null;
  const reasons = new Map<string, number>();
  for (const { reason } of plan.breaks) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  const gone = [...reasons].map(([reason, count]) => `${counted(count, "passage")} ${REASONS.get(reason) ?? reason}`);
  return (
    <p class="sub small" role="status">
      <b>{wholeNumber(plan.stable_tokens)}</b> of its {counted(window.tokens, "token")} stand unchanged at the beginning, as after
      the question before: a model provider can take them from its cache.
      {gone.length > 0 && ` No longer at their place: ${gone.join(", ")}.`}
    </p>
  );
}
