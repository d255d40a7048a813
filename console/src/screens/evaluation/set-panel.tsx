import { useEffect, useRef, useState } from "preact/hooks";
import { readCollections, usualOf } from "../../api/lists";
import { Failure, useAction } from "../../ui/action";
import { SegmentedField } from "../../ui/controls";
import { counted, wholeNumber } from "../../ui/format";
import { Show, State, useLoad } from "../../ui/load";
import { Virtual } from "../../ui/virtual";
import { BUDGETS, parseOptions, run, type QuestionSet, type RunSettings } from "./question-set";
import type { Report } from "./report";

const RETRIEVERS = [
  ["both", "Words and meaning"],
  ["keyword", "Words"],
  ["vector", "Meaning"],
] as const;

const PROFILES = [
  ["default", "Sum of parts"],
  ["multiplicative", "Product"],
] as const;

/** A question set, and a form that asks its questions of a collection. */
export function SetPanel({
  set,
  names,
  onRun,
}: {
  set: QuestionSet;
  /** The names of the runs that are there. */
  names: readonly string[];
  onRun: (report: Report) => void;
}) {
  const collections = useLoad(readCollections, []);
  const evidence = set.questions.reduce((sum, question) => sum + question.evidence.length, 0);
  return (
    <section class="panel question-set" aria-label="Question set">
      <h2>
        {set.name}: {counted(set.questions.length, "question")}, {counted(evidence, "piece")} of evidence
      </h2>
      <Show of={collections} what="the collections">
        {(collections) =>
          collections.length === 0 ? (
            <State title="There is no collection to ask" />
          ) : (
            <RunForm set={set} collections={collections.map((collection) => collection.name)} names={names} onRun={onRun} />
          )
        }
      </Show>
      <details class="after">
        <summary class="link small">The questions</summary>
        <Virtual rows={set.questions} height={44} label="Questions of the set">
          {(question) => (
            <p class="set-question">
              <span class="ellipsis">{question.query}</span>
              <span class="tiny dim ellipsis">{question.evidence.map(({ key }) => key).join(", ")}</span>
            </p>
          )}
        </Virtual>
      </details>
    </section>
  );
}

function RunForm({
  set,
  collections,
  names,
  onRun,
}: {
  set: QuestionSet;
  collections: readonly string[];
  names: readonly string[];
  onRun: (report: Report) => void;
}) {
  const [settings, change] = useState<RunSettings>({
    collection: usualOf(collections) ?? "",
    retrievers: "both",
    profile: "default",
    options: {},
  });
  const [options, writeOptions] = useState("");
  const [done, tell] = useState(0);
  const [missing, miss] = useState(0);
  const { act, busy, failure } = useAction();
  const abort = useRef<AbortController>();
  useEffect(() => () => abort.current?.abort(), []);
  const start = () => {
    tell(0);
    abort.current = new AbortController();
    const { signal } = abort.current;
    act(
      async () => {
        const complete = { ...settings, options: parseOptions(options) };
        return run(set, complete, nameOf(complete, names), tell, signal);
      },
      ({ report, missing: absent }) => {
        miss(absent);
        onRun(report);
      },
    );
  };
  return (
    <form
      class="set-form after"
      onSubmit={(event) => {
        event.preventDefault();
        start();
      }}
    >
      <label>
        <span class="label">Ask the collection</span>
        <select
          class="pick"
          value={settings.collection}
          onChange={(event) => change({ ...settings, collection: event.currentTarget.value })}
        >
          {collections.map((collection) => (
            <option key={collection}>{collection}</option>
          ))}
        </select>
      </label>
      <SegmentedField
        label="Find by"
        options={RETRIEVERS}
        value={settings.retrievers}
        onChange={(retrievers) => change({ ...settings, retrievers })}
      />
      <SegmentedField
        label="Score profile"
        options={PROFILES}
        value={settings.profile}
        onChange={(profile) => change({ ...settings, profile })}
      />
      <label class="set-options">
        <span class="label">Other settings of /context, as JSON</span>
        <input
          class="field"
          placeholder='{"rerank": true, "min_similarity": 0.3}'
          value={options}
          onInput={(event) => writeOptions(event.currentTarget.value)}
        />
      </label>
      {busy ? (
        <button class="btn" type="button" onClick={() => abort.current?.abort(new Error("Stopped."))}>
          Stop
        </button>
      ) : (
        <button class="btn primary" type="submit">
          Run
        </button>
      )}
      <div class="set-progress">
        <Failure text={failure} />
        {busy ? (
          <>
            <span class="small dim" role="status">
              {wholeNumber(done)} of {counted(set.questions.length, "question")}, each at {BUDGETS.length} budgets
            </span>
            <progress max={set.questions.length} value={done} aria-label="Progress of the run" />
          </>
        ) : (
          <span class="small dim">
            {missing > 0
              ? `${counted(missing, "document")} of the evidence ${missing === 1 ? "is" : "are"} not in ${settings.collection}.`
              : `Windows of ${BUDGETS.map(wholeNumber).join(", ")} tokens. Any two runs can be compared.`}
          </span>
        )}
      </div>
    </form>
  );
}

/** What a run was made with; a number tells apart those that were made with the same. */
function nameOf({ collection, retrievers, profile, options }: RunSettings, names: readonly string[]): string {
  const retrieverName = RETRIEVERS.find(([retriever]) => retriever === retrievers)?.[1].toLowerCase() ?? "";
  const others = Object.entries(options).map(([option, value]) => `, ${option} ${JSON.stringify(value)}`);
  const name = `${retrieverName}${profile === "default" ? "" : ", product"}${others.join("")} in ${collection}`;
  const same = names.filter((other) => other.replace(/ \d+$/, "") === name).length;
  return same === 0 ? name : `${name} ${same + 1}`;
}
