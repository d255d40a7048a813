/** Chat with the model of the server: the answer as it comes, and the passages that it cites. */
import { useRef, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import type { Arguments } from "@conspectus/client";
import { api, type Schemas } from "../../api/client";
import { readCollections } from "../../api/lists";
import { useAddress } from "../../ui/address";
import { labelledField, textField } from "../../ui/address-fields";
import { Segmented } from "../../ui/controls";
import { counted, sliceLetters, wholeNumber } from "../../ui/format";
import { Failure, useAction } from "../../ui/action";
import { asProblem, messageOf, Show, State, useLoad } from "../../ui/load";
import { LocationLink } from "../../ui/location";
import { TableHeader } from "../../window/table-header";
import { ask, begun, pieces, type Answer, type Source } from "./events";
import "./chat.css";

const INJECTIONS = [
  ["on", "With context"],
  ["off", "Without"],
  ["both", "Both"],
] as const;

const FIELDS = { collection: textField("*"), context: labelledField(INJECTIONS) };

/** A question with its answers: one, or one with context and one without. */
interface Exchange {
  question: string;
  answers: Answer[];
}

interface SourceSelection {
  source: Source;
  number: number;
}

export default function Chat() {
  const options = useLoad(async (signal) => {
    const [models, collections] = await Promise.all([
      api.models({}, { signal }),
      readCollections(),
    ]);
    return { model: models.data[0]?.id, collections: collections.map((collection) => collection.name) };
  }, []);
  return (
    <Show of={options} what="the chat model">
      {({ model, collections }) =>
        model === undefined ? (
          <State title="No chat model is set">
            <p class="sub">Answers need a chat model. Set one and start the server again:</p>
            <p class="mono">CONSPECTUS_CHAT_MODEL=openai:gpt-4.1-mini conspectus serve</p>
          </State>
        ) : (
          <Conversation model={model} collections={collections} />
        )
      }
    </Show>
  );
}

function Conversation({ model, collections }: { model: string; collections: readonly string[] }) {
  const [{ collection, context: injection }, setFields] = useAddress(FIELDS);
  const [exchanges, setExchanges] = useState<Exchange[]>([]);
  const [typed, type] = useState("");
  const [busy, setBusy] = useState(false);
  const [selection, choose] = useState<SourceSelection>();
  const abort = useRef<AbortController>();
  const send = async () => {
    const message = typed.trim();
    if (message === "" || busy) return;
    const answers = (injection === "both" ? [true, false] : [injection === "on"]).map(begun);
    const history = historyOf(exchanges);
    const index = exchanges.length;
    type("");
    choose(undefined);
    setBusy(true);
    setExchanges((before) => [...before, { question: message, answers }]);
    const controller = new AbortController();
    abort.current = controller;
    const put = (at: number, answer: Answer) =>
      setExchanges((before) => before.map((exchange, n) => (n === index ? withAnswer(exchange, at, answer) : exchange)));
    await Promise.all(
      answers.map((answer, at) =>
        requestAnswer({ message, history, collection, use_context: answer.withContext }, answer, (now) => put(at, now), controller.signal),
      ),
    );
    setBusy(false);
  };
  return (
    <>
      <div class="head">
        <div>
          <h1>{exchanges.length === 0 ? "Ask the model with what the store holds" : counted(exchanges.length, "question")}</h1>
          <p class="sub">{model} gets the passages that fit its budget, and cites them by number.</p>
        </div>
        <div class="cluster">
          <label class="small dim">
            in{" "}
            <select
              class="pick"
              value={collection}
              onChange={(event) => setFields({ collection: event.currentTarget.value })}
            >
              <option value="*">all collections</option>
              {collections.map((collection) => (
                <option key={collection}>{collection}</option>
              ))}
            </select>
          </label>
          <Segmented
            label="Context"
            options={INJECTIONS}
            value={injection}
            onChange={(context) => setFields({ context })}
          />
        </div>
      </div>
      <div class="beside">
        <div>
          <ol class="exchanges" aria-live="polite" aria-label="Conversation">
            {exchanges.map((exchange, at) => (
              <li key={at}>
                <p class="asked-text text">{exchange.question}</p>
                <div class={exchange.answers.length > 1 ? "columns" : undefined}>
                  {exchange.answers.map((answer, n) => (
                    <AnswerView
                      key={n}
                      question={exchange.question}
                      collection={collection}
                      answer={answer}
                      paired={exchange.answers.length > 1}
                      onChoose={choose}
                      selection={selection}
                    />
                  ))}
                </div>
              </li>
            ))}
          </ol>
          <form
            class="chat-form"
            onSubmit={(event) => {
              event.preventDefault();
              void send();
            }}
          >
            <textarea
              class="field"
              rows={2}
              aria-label="Message"
              placeholder="Ask a question"
              value={typed}
              onInput={(event) => type(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
                event.preventDefault();
                void send();
              }}
            />
            {busy ? (
              <button class="btn" type="button" onClick={() => abort.current?.abort()}>
                Stop
              </button>
            ) : (
              <button class="btn primary" type="submit">
                Send
              </button>
            )}
          </form>
        </div>
        <Passage selection={selection} />
      </div>
    </>
  );
}

const withAnswer = (exchange: Exchange, at: number, answer: Answer): Exchange => ({
  ...exchange,
  answers: exchange.answers.map((previous, n) => (n === at ? answer : previous)),
});

/** Earlier turns that were answered, each by its first answer. */
function historyOf(exchanges: readonly Exchange[]): Schemas["TurnBody"][] {
  return exchanges.flatMap(({ question, answers }) => {
    const text = answers[0]?.text ?? "";
    if (text === "") return [];
    return [
      { role: "user" as const, content: question },
      { role: "assistant" as const, content: text },
    ];
  });
}

async function requestAnswer(
  body: Arguments<"chat">,
  answer: Answer,
  changed: (answer: Answer) => void,
  signal: AbortSignal,
): Promise<void> {
  let current = answer;
  const keep = (next: Answer) => {
    current = next;
    changed(next);
  };
  try {
    await ask(body, answer, keep, signal);
  } catch (error) {
    keep({ ...current, ended: true, error: signal.aborted ? "Stopped." : messageOf(asProblem(error)) });
  }
  if (!current.ended) keep({ ...current, ended: true, error: current.error || "The connection was lost." });
}

function AnswerView({
  question,
  collection,
  answer,
  paired,
  selection,
  onChoose,
}: {
  question: string;
  collection: string;
  answer: Answer;
  /** Whether it stands beside another one. */
  paired: boolean;
  selection: SourceSelection | undefined;
  onChoose: (selection: SourceSelection) => void;
}) {
  const sources = new Map(answer.sources?.sources.map((source) => [source.number, source]));
  return (
    <article class={answer.withContext ? "answer" : "answer without"}>
      {paired && <p class="tiny dim">{answer.withContext ? "with context" : "without context"}</p>}
      <p class="text" aria-busy={!answer.ended}>
        {pieces(answer.text).map((piece, at) =>
          piece.numbers === undefined ? (
            piece.text
          ) : (
            <Citation key={at} numbers={piece.numbers} sources={sources} selection={selection} onChoose={onChoose} />
          ),
        )}
        {!answer.ended && <span class="cursor" aria-hidden="true" />}
      </p>
      <Failure text={answer.error} />
      <Facts answer={answer} />
      <p class="small cluster">
        {answer.citations !== undefined && answer.citations.answer !== "" && (
          <Link class="link" href={`/answers/${answer.citations.answer}`}>
            Answer record
          </Link>
        )}
        {answer.withContext && answer.ended && (
          <PlaygroundButton question={question} collection={collection} answer={answer} />
        )}
      </p>
      {sources.size > 0 && (
        <ul class="chips" aria-label="Passages that the model got">
          {[...sources.values()].map((source) => (
            <li key={source.number}>
              <button
                class="chip"
                type="button"
                aria-pressed={source === selection?.source}
                onClick={() => onChoose({ source, number: source.number })}
              >
                <span class={isCited(answer, source.number) ? "glyph included" : "glyph"} aria-hidden="true" />
                <span class="ellipsis">
                  [{source.number}] {source.title || source.key}
                </span>
                {isCited(answer, source.number) && <span class="sr"> (cited)</span>}
              </button>
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}

/** Opens the same search in the playground: in the collection of the chat or, of all, in that of the first passage. */
function PlaygroundButton({ question, collection, answer }: { question: string; collection: string; answer: Answer }) {
  const [, go] = useLocation();
  const { act, busy, failure } = useAction();
  const first = answer.sources?.sources[0];
  if (collection === "*" && first === undefined) return null;
  const readCollection = async (): Promise<string> => {
    if (collection !== "*" || first === undefined) return collection;
    const [document, collections] = await Promise.all([api.getDocument({ document: first.document }), api.listCollections({})]);
    return collections.find((candidate) => candidate.id === document.collection)?.name ?? "";
  };
  const open = (name: string) => go(`/playground?${new URLSearchParams({ query: question, collection: name }).toString()}`);
  return (
    <>
      <button class="link" type="button" disabled={busy} onClick={() => act(readCollection, open)}>
        Open in the playground
      </button>
      <Failure text={failure} />
    </>
  );
}

const isCited = (answer: Answer, number: number): boolean =>
  answer.citations?.cited.some((citation) => citation.number === number) ?? false;

function Facts({ answer: { sources, citations, usage } }: { answer: Answer }) {
  const facts = [
    sources !== undefined && sources.outcome !== "off" && `${wholeNumber(sources.tokens)} tokens of context`,
    sources?.outcome === "no_match" && "nothing was found",
    sources?.outcome === "failed" && "the search failed",
    usage !== undefined && `${wholeNumber(usage.input)} tokens in, ${wholeNumber(usage.output)} out${usage.exact ? "" : " (estimated)"}`,
    citations !== undefined && citations.unknown.length > 0 && `invented: ${citations.unknown.join(", ")}`,
    sources?.notice,
  ].filter(Boolean);
  return <p class="small dim">{facts.join(" · ")}</p>;
}

function Citation({
  numbers,
  sources,
  selection,
  onChoose,
}: {
  numbers: readonly number[];
  sources: ReadonlyMap<number, Source>;
  selection: SourceSelection | undefined;
  onChoose: (selection: SourceSelection) => void;
}) {
  return (
    <>
      {numbers.map((number) => {
        const source = sources.get(number);
        if (source === undefined) {
          return (
            <span key={number} class="invented">
              [{number}]<span class="sr"> (invented)</span>
            </span>
          );
        }
        return (
          <button
            key={number}
            class="citation"
            type="button"
            aria-pressed={selection?.source === source}
            onClick={() => onChoose({ source, number })}
          >
            [{number}]
          </button>
        );
      })}
    </>
  );
}

/** The passage of a citation, as it stands in its document. */
function Passage({ selection }: { selection: SourceSelection | undefined }) {
  const source = selection?.source;
  const text = useLoad(
    async (signal) => {
      if (source === undefined) return "";
      const answer = await api.getText({ document: source.document }, { signal });
      return sliceLetters(answer.text, source.start, source.end);
    },
    [source?.document, source?.start],
  );
  if (source === undefined) {
    return <p class="sub passage-hint">Choose a citation to read the passage that it stands for.</p>;
  }
  return (
    <aside class="panel passage" aria-label="The cited passage">
      <h2 class="block-title">
        [{selection?.number}] {source.title || source.key}
      </h2>
      <p class="small dim">
        {source.key}, {wholeNumber(source.start)}–{wholeNumber(source.end)}
      </p>
      <div class="text" tabIndex={0} role="region" aria-label="Text of the passage">
        <TableHeader header={source.table_header} text={text.data} />
        {text.error === undefined ? text.data : text.error.message}
      </div>
      <p class="small">
        <LocationLink location={{ document: source.document, span: { start: source.start, end: source.end } }} />
      </p>
    </aside>
  );
}
