/** One answer record: the window with what was cited, the answer, the prompt and the candidates. */
import { Link, useLocation } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { person } from "../../session";
import { ConfirmButton } from "../../ui/action";
import { counted, instant, percent, score, wholeNumber } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { pathOf } from "../../ui/location";
import { Virtual } from "../../ui/virtual";
import { StatusLabel } from "../../window/status";
import { pieces } from "../chat/events";
import { AskAgain } from "./ask-again";
import { segmentsOf } from "./segments";

export type AnswerRecord = Schemas["AnswerRecord"];
type Citation = Schemas["Citation"];
type Candidate = Schemas["AnswerCandidate"];

const ROW_HEIGHT = 52;

export function RecordPage({ id }: { id: string }) {
  const record = useLoad((signal) => api.getAnswer({ answer: id }, { signal }), [id]);
  return (
    <Show of={record} what="the answer record">
      {(answer) => (
        <>
          <Heading record={answer} />
          <div class="answer-columns after">
            <div class="answer-main">
              <WindowOf record={answer} />
              <AnswerOf record={answer} />
              <PromptOf record={answer} />
              <Candidates candidates={answer.candidates} />
            </div>
            <aside class="panel answer-side" aria-label="Ask again">
              <AskAgain record={answer} />
              <Deletion record={answer} />
            </aside>
          </div>
        </>
      )}
    </Show>
  );
}

function Heading({ record: { summary, options, changed, left_out, confidence } }: { record: AnswerRecord }) {
  const facts = [
    `${summary.kind} of ${summary.user_name || summary.user}`,
    instant(summary.created),
    summary.collection !== "" && `in ${summary.collection === "*" ? "all collections" : summary.collection}`,
    options.max_tokens > 0 && `${wholeNumber(summary.tokens)} of ${wholeNumber(options.max_tokens)} tokens`,
    options.as_of !== null && `as of ${instant(options.as_of)}`,
    confidence > 0 && `${percent(confidence)} confidence`,
    summary.model,
  ].filter(Boolean);
  return (
    <header class="answer-heading">
      <p class="small">
        <Link class="link" href="/answers">
          Answers
        </Link>
      </p>
      <h1>
        <bdi>{summary.question || "Without a question"}</bdi>
      </h1>
      <p class="sub">
        <bdi>{facts.join(" · ")}</bdi>
      </p>
      {summary.outcome !== "found" && <p class="small">Nothing was found for this question.</p>}
      {summary.failure !== "" && (
        <p class="small">
          <span class="tag bad">{summary.failure}</span> ended the answer.
        </p>
      )}
      {changed.length > 0 && (
        <p class="small">
          <span class="tag">changed since</span> {counted(changed.length, "document")} of this answer{" "}
          {changed.length === 1 ? "has" : "have"} another text or title by now.
        </p>
      )}
      {left_out.length > 0 && <p class="small dim">Not kept: {left_out.join(", ")}.</p>}
    </header>
  );
}

const placeOf = ({ document, start, end }: Citation): string => pathOf({ document, span: { start, end } });

/** The mark of a passage, which opens its document at the cited characters. */
function Mark({ citation }: { citation: Citation }) {
  return (
    <Link class="link" href={placeOf(citation)} aria-label={`[${citation.number}] ${citation.title || citation.key}`}>
      [{citation.number}]
    </Link>
  );
}

/** The text of a passage without the number in front, which stands in the link. */
const withoutMark = (text: string): string => text.replace(/^\[\d+\] ?/, "");

/** The window as it was given. Passages that the answer cites are marked. */
function WindowOf({ record }: { record: AnswerRecord }) {
  const citations = new Map(record.citations.map((citation) => [citation.number, citation]));
  const isChat = record.summary.kind === "chat";
  if (record.text === "") return null;
  return (
    <section aria-label="What was given">
      <h2>{isChat ? "What the model was given" : "The window"}</h2>
      <div class="panel text answer-window" tabIndex={0} role="region" aria-label="Text of the window">
        {segmentsOf(record.text, [...citations.keys()]).map(({ text, number }, at) => {
          const citation = citations.get(number ?? -1);
          if (citation === undefined) return <span key={at}>{text}</span>;
          const isCited = record.cited.includes(citation.number);
          return (
            <span key={at} class="answer-passage">
              <Mark citation={citation} /> {isCited ? <mark>{withoutMark(text)}</mark> : withoutMark(text)}
            </span>
          );
        })}
      </div>
      <ul class="chips" aria-label="Cited places">
        {record.citations.map((citation) => (
          <li key={citation.number}>
            <Link class="chip" href={placeOf(citation)}>
              <span class={record.cited.includes(citation.number) ? "glyph included" : "glyph"} aria-hidden="true" />
              <span class="ellipsis">
                [{citation.number}] <bdi>{citation.title || citation.key}</bdi>, {wholeNumber(citation.start)}–
                {wholeNumber(citation.end)}
              </span>
              {record.cited.includes(citation.number) && <span class="sr"> (cited)</span>}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The answer of the model, with its citations as links. */
function AnswerOf({ record }: { record: AnswerRecord }) {
  const citations = new Map(record.citations.map((citation) => [citation.number, citation]));
  if (record.answer === "") return null;
  return (
    <section aria-label="The answer">
      <h2>The answer</h2>
      <p class="panel text">
        {pieces(record.answer).map((piece, at) =>
          piece.numbers === undefined
            ? piece.text
            : piece.numbers.map((number) => {
                const citation = citations.get(number);
                if (citation !== undefined) return <Mark key={`${at}/${number}`} citation={citation} />;
                return (
                  <span key={`${at}/${number}`} class="invented">
                    [{number}]<span class="sr"> (invented)</span>
                  </span>
                );
              }),
        )}
      </p>
    </section>
  );
}

function PromptOf({ record: { prompt } }: { record: AnswerRecord }) {
  if (prompt.length === 0) return null;
  return (
    <details>
      <summary class="link">The prompt: {counted(prompt.length, "message")}</summary>
      {prompt.map(({ role, content }, at) => (
        <section key={at} class="panel after" aria-label={`Message ${at + 1} of the prompt`}>
          <p class="label">{role}</p>
          <p class="text small">{content}</p>
        </section>
      ))}
    </details>
  );
}

function Candidates({ candidates }: { candidates: readonly Candidate[] }) {
  if (candidates.length === 0) return null;
  return (
    <section aria-label="Candidates">
      <h2>{counted(candidates.length, "candidate")}</h2>
      <Virtual rows={candidates} height={ROW_HEIGHT} label="Candidates">
        {(candidate) => (
          <p class="answer-candidate">
            <span class="dim small num">{wholeNumber(candidate.rank)}</span>
            <StatusLabel status={candidate.status} />
            <CandidateName candidate={candidate} />
            <span class="small num">{score(candidate.score)}</span>
          </p>
        )}
      </Virtual>
    </section>
  );
}

function CandidateName({ candidate: { document, start, end, title, key } }: { candidate: Candidate }) {
  if (key === "") return <span class="dim ellipsis">a document that is gone</span>;
  return (
    <Link class="link ellipsis" href={pathOf({ document, span: { start, end } })}>
      <bdi>{title || key}</bdi>, {wholeNumber(start)}–{wholeNumber(end)}
    </Link>
  );
}

/** Whoever asked deletes the record, and the owner of the store. */
function Deletion({ record: { summary } }: { record: AnswerRecord }) {
  const [, go] = useLocation();
  const reader = person.value;
  if (reader?.id !== summary.user && reader?.owner !== true) return null;
  return (
    <p class="after">
      <ConfirmButton
        label="Delete"
        name="Delete this record"
        title="Delete this answer record?"
        run={() => api.deleteAnswer({ answer: summary.id })}
        onDone={() => go("/answers", { replace: true })}
      >
        Its address leads nowhere then. Documents stay as they are.
      </ConfirmButton>
    </p>
  );
}
