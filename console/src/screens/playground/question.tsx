import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { ifAllowed } from "../../api/lists";
import { person } from "../../session";
import { Failure } from "../../ui/action";
import { SegmentedField } from "../../ui/controls";
import { wholeNumber } from "../../ui/format";
import { useKeys } from "../../ui/keys";
import { useLoad } from "../../ui/load";
import { CodeDialog } from "./code";
import { FilterField } from "./filter";
import { BUDGETS, budgetProblem, reserveProblem, usualReserve } from "./budget";
import { fieldsOf, type Settings } from "./settings";

const RETRIEVERS = [
  ["both", "Words and meaning"],
  ["keyword", "Words"],
  ["vector", "Meaning"],
] as const;

const LEVELS = [
  ["any", "Any"],
  ["standard", "Standard"],
  ["trusted", "Trusted only"],
] as const;

const PROFILES = [
  ["default", "Sum of parts"],
  ["multiplicative", "Product"],
] as const;

/** How many questions before are asked again for a window that goes on with them. */
const MAX_AFTER = 5;

/** The question, where to look, and the budget. */
export function Question({
  settings,
  collections,
  onChange,
}: {
  settings: Settings;
  collections: readonly Schemas["Collection"][];
  onChange: (changes: Partial<Settings>) => void;
}) {
  const [query, setQuery] = useState(settings.query);
  const [open, setOpen] = useState(false);
  const [code, showCode] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setQuery(settings.query), [settings.query]);
  useKeys({ "/": () => input.current?.focus() });
  const ask = (next: string) => {
    const goesOn = settings.followUp && settings.query !== "" && next !== settings.query;
    const after = goesOn ? [...settings.after, settings.query].slice(-MAX_AFTER) : settings.after;
    onChange({ query: next, after: settings.followUp ? after : [] });
  };
  return (
    <>
      <form
        class="ask"
        onSubmit={(event) => {
          event.preventDefault();
          ask(query.trim());
        }}
      >
        <div class="ask-query">
          <div class="ask-row">
            <input
              ref={input}
              aria-label="Question"
              placeholder="Ask a question"
              value={query}
              onInput={(event) => setQuery(event.currentTarget.value)}
            />
            <button class="btn primary" type="submit">
              Ask
            </button>
          </div>
          <p class="ask-options">
            <label>
              in{" "}
              <select value={settings.collection} onChange={(event) => onChange({ collection: event.currentTarget.value })}>
                {collections.map((collection) => (
                  <option key={collection.id} value={collection.name}>
                    {collection.name}
                  </option>
                ))}
              </select>
            </label>
            <SeeAsPicker settings={settings} />
            <Summary settings={settings} />
            <label>
              <input
                type="checkbox"
                checked={settings.followUp}
                onChange={(event) => onChange({ followUp: event.currentTarget.checked, after: [] })}
              />{" "}
              Keep the last window
            </label>
            <button class="link" type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
              {open ? "Hide options" : "Options"}
            </button>
            <button class="link" type="button" disabled={settings.query === ""} onClick={() => showCode(true)}>
              Copy as code
            </button>
          </p>
        </div>
        <BudgetSlider settings={settings} onChange={onChange} />
        {open && <Options settings={settings} onChange={onChange} />}
      </form>
      {code && <CodeDialog settings={settings} onClose={() => showCode(false)} />}
    </>
  );
}

/** Who asks. Who may ask as another user goes on with the same settings. */
function SeeAsPicker({ settings }: { settings: Settings }) {
  const [, go] = useLocation();
  const me = person.value;
  const users = useLoad((signal) => (me?.owner === true ? ifAllowed(api.listUsers({}, { signal })) : undefined), []);
  const others = (users.data ?? []).filter((user) => user.id !== me?.id && !user.disabled);
  const seeAs = (user: string) => {
    const fields = Object.entries({ ...fieldsOf(settings), user }).filter(([, value]) => value !== undefined && value !== "");
    go(`/see-as?${new URLSearchParams(fields as [string, string][])}`);
  };
  useKeys({ s: () => seeAs("") });
  if (others.length === 0) {
    return (
      <button class="link" type="button" onClick={() => seeAs("")}>
        See as …
      </button>
    );
  }
  return (
    <label>
      seen by{" "}
      <select value={me?.name ?? ""} onChange={(event) => seeAs(event.currentTarget.value)}>
        <option>{me?.name}</option>
        {others.map((user) => (
          <option key={user.id}>{user.name}</option>
        ))}
      </select>
    </label>
  );
}

/** The options that differ from what is usual, in words. */
function Summary({ settings }: { settings: Settings }) {
  return (
    <>
      <span>
        where <b>{settings.filter === "" ? "anything" : "filtered"}</b>
      </span>
      <span>
        as of <b>{settings.asOf === "" ? "now" : settings.asOf.replace("T", " ")}</b>
      </span>
      {settings.retrievers !== "both" && (
        <span>
          by <b>{settings.retrievers === "keyword" ? "words" : "meaning"}</b>
        </span>
      )}
      {settings.minSimilarity !== "" && (
        <span>
          threshold <b>{settings.minSimilarity}</b>
        </span>
      )}
      {settings.profile !== "default" && (
        <span>
          scored by <b>product</b>
        </span>
      )}
      {settings.minTrust !== "any" && (
        <span>
          trust <b>{settings.minTrust === "trusted" ? "trusted" : "standard or higher"}</b>
        </span>
      )}
    </>
  );
}

function BudgetSlider({ settings, onChange }: { settings: Settings; onChange: (changes: Partial<Settings>) => void }) {
  const step = nearest(settings.maxTokens);
  const move = (by: number) => {
    const budget = BUDGETS[Math.min(Math.max(step + by, 0), BUDGETS.length - 1)];
    if (budget !== undefined) onChange({ maxTokens: budget });
  };
  useKeys({ "[": () => move(-1), "]": () => move(1) });
  const [refused, refuse] = useState("");
  const type = (field: HTMLInputElement) => {
    const maxTokens = Number(field.value.replaceAll(/\D/g, ""));
    const problem = budgetProblem(maxTokens);
    refuse(problem ?? "");
    if (problem === undefined) onChange({ maxTokens });
    else field.value = wholeNumber(settings.maxTokens);
  };
  const conflict = reserveProblem(settings.maxTokens, settings.reservedTokens);
  return (
    <div class="ask-budget">
      <div class="row">
        <label class="small dim" for="budget">
          Budget
        </label>
        <span class="ask-tokens">
          <input
            id="budget"
            inputMode="numeric"
            value={wholeNumber(settings.maxTokens)}
            onChange={(event) => type(event.currentTarget)}
          />{" "}
          tokens
        </span>
      </div>
      <input
        type="range"
        min={0}
        max={BUDGETS.length - 1}
        value={step}
        aria-label="Budget"
        aria-valuetext={`${wholeNumber(settings.maxTokens)} tokens`}
        onInput={(event) => move(event.currentTarget.valueAsNumber - step)}
      />
      <p class="ask-ticks" aria-hidden="true">
        {BUDGETS.map((budget) => (
          <span key={budget}>{wholeNumber(budget)}</span>
        ))}
      </p>
      <Failure text={refused} />
      {conflict !== undefined && (
        <p class="small failed" role="status">
          {conflict}{" "}
          <button class="link" type="button" onClick={() => onChange({ reservedTokens: usualReserve(settings.maxTokens) })}>
            Keep {wholeNumber(usualReserve(settings.maxTokens))}
          </button>
        </p>
      )}
    </div>
  );
}

/** The step of the slider whose budget is nearest by ratio. */
function nearest(tokens: number): number {
  const distances = BUDGETS.map((budget) => Math.abs(Math.log((tokens || 1) / budget)));
  return distances.indexOf(Math.min(...distances));
}

function Options({ settings, onChange }: { settings: Settings; onChange: (changes: Partial<Settings>) => void }) {
  return (
    <div class="ask-more">
      <label>
        <span class="label">System text, counted in the budget</span>
        <textarea
          class="field"
          rows={2}
          value={settings.system}
          onChange={(event) => onChange({ system: event.currentTarget.value })}
        />
      </label>
      <FilterField
        key={settings.collection}
        filter={settings.filter}
        collection={settings.collection}
        onChange={(filter) => onChange({ filter })}
      />
      <SegmentedField
        label="Find by"
        options={RETRIEVERS}
        value={settings.retrievers}
        onChange={(retrievers) => onChange({ retrievers })}
      >
        <label class="small rerank">
          <input
            type="checkbox"
            checked={settings.rerank}
            onChange={(event) => onChange({ rerank: event.currentTarget.checked })}
          />{" "}
          Rerank, where the server has a reranker
        </label>
      </SegmentedField>
      <SegmentedField
        label="Least trust"
        options={LEVELS}
        value={settings.minTrust}
        onChange={(minTrust) => onChange({ minTrust })}
      />
      <label>
        <span class="label">As of</span>
        <input
          class="field"
          type="datetime-local"
          value={settings.asOf}
          onChange={(event) => onChange({ asOf: event.currentTarget.value })}
        />
      </label>
      <label>
        <span class="label">Least similarity (threshold)</span>
        <input
          class="field"
          type="number"
          min={-1}
          max={1}
          step={0.01}
          value={settings.minSimilarity}
          onChange={(event) => onChange({ minSimilarity: event.currentTarget.value })}
        />
      </label>
      <label>
        <span class="label">Tokens kept for the answer</span>
        <input
          class="field"
          type="number"
          min={0}
          value={settings.reservedTokens}
          onChange={(event) => onChange({ reservedTokens: event.currentTarget.valueAsNumber || 0 })}
        />
      </label>
      <SegmentedField
        label="Score profile"
        options={PROFILES}
        value={settings.profile}
        onChange={(profile) => onChange({ profile })}
      />
    </div>
  );
}
