/** The question sets of a collection, and a form that starts a run of one. */
import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { ConfirmButton, Failure, useAction } from "../../ui/action";
import { SegmentedField } from "../../ui/controls";
import { counted } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { Virtual } from "../../ui/virtual";
import { optionsOf, type RunSettings } from "./options";

type QuestionSet = Schemas["QuestionSet"];

const RETRIEVERS = [
  ["both", "Words and meaning"],
  ["keyword", "Words"],
  ["vector", "Meaning"],
] as const;

const PROFILES = [
  ["default", "Sum of parts"],
  ["multiplicative", "Product"],
] as const;

/** A set of several, its questions, and a run of it. */
export function SetPanel({
  sets,
  onRun,
  onChanged,
}: {
  sets: readonly [QuestionSet, ...QuestionSet[]];
  onRun: () => void;
  /** Called when a set was deleted. */
  onChanged: () => void;
}) {
  const [selected, select] = useState("");
  const set = sets.find(({ id }) => id === selected) ?? sets[0];
  return (
    <section class="panel question-set" aria-label="Question set">
      <p class="row">
        <label>
          <span class="label">Question set</span>
          <select class="pick" value={set.id} onChange={(event) => select(event.currentTarget.value)}>
            {sets.map(({ id, name, questions }) => (
              <option key={id} value={id}>
                {name}: {counted(questions, "question")}
              </option>
            ))}
          </select>
        </label>
        <ConfirmButton
          label="Delete"
          name={`Delete the set ${set.name}`}
          title={`Delete the set ${set.name}?`}
          run={() => api.deleteQuestionSet({ question_set: set.id })}
          onDone={onChanged}
        >
          Its runs are deleted, too. Documents stay as they are.
        </ConfirmButton>
      </p>
      <RunForm set={set} onRun={onRun} />
      <details class="after">
        <summary class="link small">The questions</summary>
        <Questions key={`${set.id} ${set.questions}`} set={set} />
      </details>
    </section>
  );
}

function Questions({ set }: { set: QuestionSet }) {
  const content = useLoad((signal) => api.getQuestionSet({ question_set: set.id }, { signal }), [set.id]);
  return (
    <Show of={content} what="the questions">
      {({ questions }) => (
        <Virtual rows={questions} height={44} label="Questions of the set">
          {({ query, evidence, changed }) => (
            <p class="set-question">
              <span class="ellipsis">
                <bdi>{query}</bdi>
              </span>
              <span class="tiny dim ellipsis">
                {changed ? "left out: a document has changed" : evidence.map(({ title, key }) => title || key).join(", ")}
              </span>
            </p>
          )}
        </Virtual>
      )}
    </Show>
  );
}

function RunForm({ set, onRun }: { set: QuestionSet; onRun: () => void }) {
  const [settings, change] = useState<RunSettings>({ retrievers: "both", profile: "default", others: "" });
  const { act, busy, failure } = useAction();
  const start = async () => {
    await api.startRun({ question_set: set.id, ...(optionsOf(settings) as Schemas["StartRunBody"]) });
  };
  return (
    <form
      class="set-form after"
      onSubmit={(event) => {
        event.preventDefault();
        act(start, onRun);
      }}
    >
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
          value={settings.others}
          onInput={(event) => change({ ...settings, others: event.currentTarget.value })}
        />
      </label>
      <button class="btn primary" type="submit" disabled={busy}>
        Run
      </button>
      <div class="set-progress">
        <Failure text={failure} />
        <span class="small dim">The server asks all questions, each at four budgets. The run stays in the table above.</span>
      </div>
    </form>
  );
}
