/** What people were given: the list of answer records, and the page of one. */
import { Link, useLocation } from "wouter-preact";
import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { readPages } from "../../api/lists";
import { useAddress } from "../../ui/address";
import { labelledField, textField } from "../../ui/address-fields";
import { Segmented } from "../../ui/controls";
import { counted, instant, wholeNumber } from "../../ui/format";
import { Show, State, useLoad } from "../../ui/load";
import { RecordPage } from "./record";
import "./answers.css";

type Summary = Schemas["AnswerSummary"];

const PATH = "/answers";
const PAGE = 50;
const MOST = 1000;

const KINDS = [
  ["all", "All"],
  ["window", "Windows"],
  ["chat", "Chats"],
  ["recall", "Recalls"],
] as const satisfies readonly (readonly [Summary["kind"] | "all", string])[];

const FIELDS = { user: textField(), kind: labelledField(KINDS) };

export default function Answers() {
  const [path] = useLocation();
  const id = path.startsWith(`${PATH}/`) ? decodeURIComponent(path.slice(PATH.length + 1)) : "";
  return id === "" ? <List /> : <RecordPage key={id} id={id} />;
}

function List() {
  const [{ user, kind }, setFields] = useAddress(FIELDS);
  const [count, setCount] = useState(PAGE);
  const answers = useLoad(
    (signal) =>
      readPages(count, MOST, async (limit, after) => {
        const selection = { ...(user !== "" && { user }), ...(kind !== "all" && { kind }) };
        const page = await api.listAnswers({ ...selection, limit, after }, { signal });
        return { rows: page.answers, next: page.next };
      }),
    [user, kind, count],
  );
  return (
    <>
      <div class="head">
        <div>
          <h1>{user === "" ? "What people were given" : `What ${user} was given`}</h1>
          <p class="sub">
            Windows, recalls and chats that the settings keep. You see those of which you may read every document.
            {user !== "" && (
              <>
                {" "}
                <Link class="link" href={PATH}>
                  Show those of everybody
                </Link>
              </>
            )}
          </p>
        </div>
        <Segmented
          label="Kind of answer"
          options={KINDS}
          value={kind}
          onChange={(selected) => setFields({ kind: selected })}
        />
      </div>
      <Show of={answers} what="the answer records">
        {({ rows, next }) =>
          rows.length === 0 ? (
            <Nothing />
          ) : (
            <>
              <ul class="list after" aria-label="Answer records">
                {rows.map((summary) => (
                  <Row key={summary.id} summary={summary} />
                ))}
              </ul>
              {next !== null && count < MOST && (
                <button class="btn" type="button" onClick={() => setCount(count + PAGE)}>
                  Show older ones
                </button>
              )}
            </>
          )
        }
      </Show>
    </>
  );
}

function Nothing() {
  return (
    <State title="There is no answer record that you may read">
      <p class="sub">Records are kept if the settings say so. Start the server with:</p>
      <p class="mono">CONSPECTUS_ANSWER_RECORDS=all conspectus serve</p>
    </State>
  );
}

function Row({ summary }: { summary: Summary }) {
  return (
    <li class="answer-row">
      <span>
        <Link class="link answer-question" href={`${PATH}/${summary.id}`}>
          <bdi>{summary.question || "Without a question"}</bdi>
        </Link>
        <span class="small dim block-line">
          {summary.kind} of <bdi>{summary.user_name || summary.user}</bdi>, {counted(summary.passages, "passage")},{" "}
          {wholeNumber(summary.tokens)} tokens
          {summary.failure !== "" && <span class="tag bad">{summary.failure}</span>}
        </span>
      </span>
      <span class="small dim">{instant(summary.created)}</span>
    </li>
  );
}
