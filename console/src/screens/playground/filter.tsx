import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { Segmented } from "../../ui/controls";
import { useLoad } from "../../ui/load";
import {
  conditionsOf,
  FIELDS,
  filterOf,
  isTime,
  METADATA,
  needsValue,
  NEW,
  testsOf,
  type Condition,
  type Conditions,
  type Test,
} from "./conditions";
import { filterProblem } from "./settings";

type Form = "rows" | "json";

const FORMS = [
  ["rows", "Conditions"],
  ["json", "JSON"],
] as const;

/** A filter, as conditions or as JSON. One that is more than a list of conditions is JSON. */
export function FilterField({
  filter,
  collection,
  onChange,
}: {
  filter: string;
  collection: string;
  onChange: (filter: string) => void;
}) {
  const [form, choose] = useState<Form>(conditionsOf(filter) === undefined ? "json" : "rows");
  const readable = conditionsOf(filter);
  const mode = readable === undefined ? "json" : form;
  return (
    <fieldset class="filter">
      <legend class="label">Only where</legend>
      <div class="row">
        <Segmented label="Form of the filter" options={FORMS} value={mode} onChange={choose} />
        {readable === undefined && filterProblem(filter) === undefined && (
          <span class="small dim">This filter is nested, and can only be written as JSON.</span>
        )}
      </div>
      {mode === "json" || readable === undefined ? (
        <Json filter={filter} onChange={onChange} />
      ) : (
        <Rows initial={readable} collection={collection} onChange={(next) => onChange(filterOf(next))} />
      )}
    </fieldset>
  );
}

function Json({ filter, onChange }: { filter: string; onChange: (filter: string) => void }) {
  const [typed, type] = useState(filter);
  const problem = filterProblem(typed);
  return (
    <label class="after block-line">
      <span class="label">
        Filter, as JSON{problem !== undefined && <b class="failed"> · {problem}</b>}
      </span>
      <textarea
        class="field mono"
        rows={2}
        placeholder='{"field": "kind", "eq": "page"}'
        value={typed}
        onInput={(event) => {
          type(event.currentTarget.value);
          if (filterProblem(event.currentTarget.value) === undefined) onChange(event.currentTarget.value);
        }}
      />
    </label>
  );
}

function Rows({
  initial,
  collection,
  onChange,
}: {
  initial: Conditions;
  collection: string;
  onChange: (conditions: Conditions) => void;
}) {
  // Conditions that are not complete yet are no part of the filter, and are kept here.
  const [{ any, rows }, set] = useState(initial);
  const sources = useLoad((signal) => api.listSources({ collection }, { signal }), [collection]);
  const change = (next: Partial<Conditions>) => {
    const changed = { any, rows, ...next };
    set(changed);
    onChange(changed);
  };
  const replace = (at: number, changes: Partial<Condition>) =>
    change({ rows: rows.map((row, index) => (index === at ? { ...row, ...changes } : row)) });
  return (
    <>
      {rows.length > 1 && (
        <label class="small dim after block-line">
          Match{" "}
          <select
            class="pick"
            value={any ? "any" : "all"}
            onChange={(event) => change({ any: event.currentTarget.value === "any" })}
          >
            <option value="all">all conditions</option>
            <option value="any">any condition</option>
          </select>
        </label>
      )}
      <ol aria-label="Conditions">
        {rows.map((row, at) => (
          <li key={at} class="condition">
            <Field of={row} at={at} onChange={(changes) => replace(at, changes)} />
            <Value
              of={row}
              at={at}
              sources={sources.data?.map(({ id, name }) => [id, name] as const) ?? []}
              onChange={(value) => replace(at, { value })}
            />
            <button
              class="btn compact"
              type="button"
              aria-label={`Remove condition ${at + 1}`}
              onClick={() => change({ rows: rows.filter((_, index) => index !== at) })}
            >
              Remove
            </button>
          </li>
        ))}
      </ol>
      <button class="btn compact after" type="button" onClick={() => set({ any, rows: [...rows, NEW] })}>
        Add a condition
      </button>
    </>
  );
}

/** What a condition is about, and what it asks of it. */
function Field({ of, at, onChange }: { of: Condition; at: number; onChange: (changes: Partial<Condition>) => void }) {
  const choose = (field: string) => {
    const test = testsOf(field).find(([name]) => name === of.test)?.[0] ?? testsOf(field)[0]?.[0] ?? "exists";
    onChange({ field, test, value: "" });
  };
  return (
    <>
      <select
        class="pick"
        aria-label={`Field ${at + 1}`}
        value={of.field}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {[...FIELDS, METADATA].map((field) => (
          <option key={field}>{field}</option>
        ))}
      </select>
      {of.field === METADATA && (
        <input
          class="field"
          aria-label={`Key ${at + 1}`}
          placeholder="key"
          value={of.key}
          onInput={(event) => onChange({ key: event.currentTarget.value })}
        />
      )}
      <select
        class="pick"
        aria-label={`Test ${at + 1}`}
        value={of.test}
        onChange={(event) => onChange({ test: event.currentTarget.value as Test })}
      >
        {testsOf(of.field).map(([test, name]) => (
          <option key={test} value={test}>
            {name}
          </option>
        ))}
      </select>
    </>
  );
}

function Value({
  of,
  at,
  sources,
  onChange,
}: {
  of: Condition;
  at: number;
  /** Ids and names. */
  sources: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
}) {
  if (!needsValue(of.test)) return null;
  const name = `Value ${at + 1}`;
  if (of.field === "source" && (of.test === "eq" || of.test === "ne")) {
    return (
      <select
        class="pick condition-value"
        aria-label={name}
        value={of.value}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        <option value="">Choose a source</option>
        {sources.map(([id, title]) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </select>
    );
  }
  return (
    <input
      class="field condition-value"
      aria-label={name}
      type={isTime(of.field) ? "datetime-local" : "text"}
      placeholder={of.test === "in" ? "one, two" : "value"}
      value={of.value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
