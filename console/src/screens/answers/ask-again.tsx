/** The question of a record once more: as another person, with 500 tokens, as of a time, and as a test question. */
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { readPages } from "../../api/lists";
import { person } from "../../session";
import { Failure, useAction } from "../../ui/action";
import type { Fields } from "../../ui/address";
import { CopyButton } from "../../ui/controls";
import { counted, localTime } from "../../ui/format";
import { useMay } from "../../ui/may";
import { fieldsOf, type Settings } from "../playground/settings";
import { evidenceOf, settingsOfRecord } from "./settings";
import type { AnswerRecord } from "./record";

const FEW_TOKENS = 500;

const addressOf = (path: string, fields: Fields): string => {
  const search = new URLSearchParams();
  for (const [name, text] of Object.entries(fields)) if (text !== undefined && text !== "") search.set(name, text);
  return `${path}?${search.toString()}`;
};

export function AskAgain({ record }: { record: AnswerRecord }) {
  const settings = settingsOfRecord(record);
  const playground = (changes: Partial<Settings>) => addressOf("/playground", fieldsOf({ ...settings, ...changes }));
  const isOfMemory = record.options.scope.user !== null || record.options.scope.agent !== null;
  return (
    <>
      <p class="cluster">
        <CopyButton text={location.href} label="Copy the address" />
      </p>
      {!isOfMemory && settings.query !== "" && (
        <>
          <h2>Ask again</h2>
          <p class="cluster">
            <Link class="btn compact" href={playground({})}>
              Now
            </Link>
            <Link class="btn compact" href={playground({ maxTokens: FEW_TOKENS, reservedTokens: 0 })}>
              With {FEW_TOKENS} tokens
            </Link>
          </p>
          <AsOf created={record.summary.created} addressAt={(asOf) => playground({ asOf })} />
          {person.value?.scopes.includes("admin") && <AsAnother settings={settings} />}
        </>
      )}
      <TestQuestion record={record} />
    </>
  );
}

function AsOf({ created, addressAt }: { created: string; addressAt: (asOf: string) => string }) {
  const [asOf, change] = useState(localTime(created));
  const [, go] = useLocation();
  return (
    <form
      class="answer-form"
      onSubmit={(event) => {
        event.preventDefault();
        go(addressAt(asOf));
      }}
    >
      <label>
        <span class="label">As of</span>
        <input
          class="field"
          type="datetime-local"
          required
          value={asOf}
          onInput={(event) => change(event.currentTarget.value)}
        />
      </label>
      <button class="btn compact" type="submit">
        Ask as of then
      </button>
    </form>
  );
}

function AsAnother({ settings }: { settings: Settings }) {
  const [user, change] = useState("");
  const [, go] = useLocation();
  return (
    <form
      class="answer-form"
      onSubmit={(event) => {
        event.preventDefault();
        go(addressOf("/see-as", { ...fieldsOf(settings), user }));
      }}
    >
      <label>
        <span class="label">As the user (name or id)</span>
        <input class="field" required value={user} onInput={(event) => change(event.currentTarget.value)} />
      </label>
      <button class="btn compact" type="submit">
        See as another person
      </button>
    </form>
  );
}

/** Adds the question with the cited places as its evidence to a set of the collection. */
function TestQuestion({ record }: { record: AnswerRecord }) {
  const { id, collection, question } = record.summary;
  const { act, busy, failure } = useAction();
  const [isAdded, mark] = useState(false);
  const may = useMay(collection);
  const evidence = evidenceOf(record);
  if (evidence.length === 0 || question === "" || ["", "*"].includes(collection) || !may("editor")) return null;
  return (
    <>
      <h2>Evaluation</h2>
      <p class="cluster">
        <button
          class="btn compact"
          type="button"
          disabled={isAdded || busy}
          onClick={() => act(() => addToSet(collection, { key: id, query: question, evidence }), () => mark(true))}
        >
          {isAdded ? "Is a test question" : "Make this a test question"}
        </button>
      </p>
      <Failure text={failure} />
      <p class="small dim">
        {counted(evidence.length, "place")} {record.cited.length > 0 ? "that the answer cites" : "of the window"} must be
        in the window.{" "}
        {isAdded && (
          <Link class="link" href={addressOf("/evaluation", { collection })}>
            The set in Evaluation
          </Link>
        )}
      </p>
    </>
  );
}

const SET_NAME = "From answer records";

/** Adds a question to the set of answer records of a collection, which is created with the first one. */
async function addToSet(collection: string, question: Schemas["NewQuestion"]): Promise<void> {
  const { rows: sets } = await readPages(Infinity, 100, async (limit, after) => {
    const page = await api.listQuestionSets({ collection, limit, after });
    return { rows: page.sets, next: page.next };
  });
  const set = sets.find(({ name }) => name === SET_NAME);
  if (set === undefined) await api.createQuestionSet({ collection, name: SET_NAME, questions: [question] });
  else await api.addQuestions({ question_set: set.id, questions: [question] });
}
