/** The budget of a window and the tokens that it keeps for the answer, which depend on each other. */

/** The steps of the slider, in tokens. */
export const BUDGETS = [256, 512, 1024, 2048, 4096, 8192, 16384] as const;
export const DEFAULT_BUDGET = 2048;
const MIN_BUDGET = 16;
const MAX_BUDGET = 1_000_000;
/** The usual share of the answer, and the most tokens that it usually has. */
const ANSWER_SHARE = 0.25;
const MAX_ANSWER = 512;

/** The tokens that are kept for the answer where nobody says how many. */
export const usualReserve = (maxTokens: number): number => Math.min(MAX_ANSWER, Math.floor(maxTokens * ANSWER_SHARE));

/** Why a budget cannot be; undefined where it can. */
export function budgetProblem(maxTokens: number): string | undefined {
  if (maxTokens >= MIN_BUDGET && maxTokens <= MAX_BUDGET) return undefined;
  return `A budget has from ${MIN_BUDGET} to ${MAX_BUDGET.toLocaleString("en-US")} tokens.`;
}

/** Why a window of this budget is empty: all of it is kept for the answer. Undefined where it is not. */
export function reserveProblem(maxTokens: number, reservedTokens: number): string | undefined {
  if (reservedTokens < maxTokens) return undefined;
  return `“Tokens kept for the answer” is ${reservedTokens}: nothing is left of ${maxTokens}.`;
}
