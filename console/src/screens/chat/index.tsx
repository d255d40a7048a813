/** Chat with the model of the server: the answer as it comes, and the passages that it cites. */
import { useRef, useState } from "preact/hooks";
import type { Arguments } from "@conspectus/client";
import { api, type Schemas } from "../../api/client";
import { useFields } from "../../ui/address";
import { Segmented } from "../../ui/controls";
import { counted, sliced, whole } from "../../ui/format";
import { Failure } from "../../ui/action";
import { asProblem, Show, State, useLoad } from "../../ui/load";
import { TableHeader } from "../../window/table-header";
import { ask, begun, pieces, type Answer, type Source } from "./events";
import "./chat.css";

type Injection = "on" | "off" | "both";

const INJECTIONS = [
  ["on", "With context"],
  ["off", "Without"],
  ["both", "Both"],
] as const;

/** A question with its answers: one, or one with context and one without. */
interface Exchange {
  question: string;
  answers: Answer[];
}

interface Chosen {
  source: Source;
  number: number;
}

export default function Chat() {
  const known = useLoad(async (signal) => {
    const [models, collections] = await Promise.all([
      api.models({}, { signal }),
      api.listCollections({}, { signal }),
    ]);
    return { model: models.data[0]?.id, collections: collections.map((each) => each.name) };
  }, []);
  return (
    <Show of={known} what="the chat model">
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
  const [fields, setFields] = useFields();
  const collection = fields.get("collection") ?? "*";
  const injection = (fields.get("context") ?? "on") as Injection;
  const [exchanges, setExchanges] = useState<Exchange[]>([]);
  const [typed, type] = useState("");
  const [busy, setBusy] = useState(false);
  const [chosen, choose] = useState<Chosen>();
  const abort = useRef<AbortController>();
  const send = async () => {
    const message = typed.trim();
    if (message === "" || busy) return;
    const answers = (injection === "both" ? [true, false] : [injection === "on"]).map(begun);
    const history = historyOf(exchanges);
    const place = exchanges.length;
    type("");
    choose(undefined);
    setBusy(true);
    setExchanges((before) => [...before, { question: message, answers }]);
    const controller = new AbortController();
    abort.current = controller;
    const put = (at: number, answer: Answer) =>
      setExchanges((before) => before.map((each, n) => (n === place ? withAnswer(each, at, answer) : each)));
    await Promise.all(
      answers.map((answer, at) =>
        answered({ message, history, collection, use_context: answer.withContext }, answer, (now) => put(at, now), controller.signal),
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
              {collections.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          <Segmented
            label="Context"
            options={INJECTIONS}
            value={injection}
            onChange={(context) => setFields({ context: context === "on" ? undefined : context })}
          />
        </div>
      </div>
      <div class="beside">
        <div>
          <ol class="exchanges" aria-live="polite" aria-label="Conversation">
            {exchanges.map((each, at) => (
              <li key={at}>
                <p class="asked-text text">{each.question}</p>
                <div class={each.answers.length > 1 ? "columns" : undefined}>
                  {each.answers.map((answer, n) => (
                    <AnswerView key={n} answer={answer} paired={each.answers.length > 1} onChoose={choose} chosen={chosen} />
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
        <Passage chosen={chosen} />
      </div>
    </>
  );
}

const withAnswer = (exchange: Exchange, at: number, answer: Answer): Exchange => ({
  ...exchange,
  answers: exchange.answers.map((each, n) => (n === at ? answer : each)),
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

async function answered(
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
    keep({ ...current, ended: true, error: signal.aborted ? "Stopped." : asProblem(error).message });
  }
  if (!current.ended) keep({ ...current, ended: true, error: current.error || "The connection was lost." });
}

function AnswerView({
  answer,
  paired,
  chosen,
  onChoose,
}: {
  answer: Answer;
  /** Whether it stands beside another one. */
  paired: boolean;
  chosen: Chosen | undefined;
  onChoose: (chosen: Chosen) => void;
}) {
  const sources = new Map(answer.sources?.sources.map((each) => [each.number, each]));
  return (
    <article class={answer.withContext ? "answer" : "answer without"}>
      {paired && <p class="tiny dim">{answer.withContext ? "with context" : "without context"}</p>}
      <p class="text" aria-busy={!answer.ended}>
        {pieces(answer.text).map((piece, at) =>
          piece.numbers === undefined ? (
            piece.text
          ) : (
            <Citation key={at} numbers={piece.numbers} sources={sources} chosen={chosen} onChoose={onChoose} />
          ),
        )}
        {!answer.ended && <span class="cursor" aria-hidden="true" />}
      </p>
      <Failure text={answer.error} />
      <Facts answer={answer} />
      {sources.size > 0 && (
        <ul class="chips" aria-label="Passages that the model got">
          {[...sources.values()].map((each) => (
            <li key={each.number}>
              <button
                class="chip"
                type="button"
                aria-pressed={each === chosen?.source}
                onClick={() => onChoose({ source: each, number: each.number })}
              >
                <span class={isCited(answer, each.number) ? "glyph included" : "glyph"} aria-hidden="true" />
                <span class="ellipsis">
                  [{each.number}] {each.title || each.key}
                </span>
                {isCited(answer, each.number) && <span class="sr"> (cited)</span>}
              </button>
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}

const isCited = (answer: Answer, number: number): boolean =>
  answer.citations?.cited.some((each) => each.number === number) ?? false;

function Facts({ answer: { sources, citations, usage } }: { answer: Answer }) {
  const facts = [
    sources !== undefined && sources.outcome !== "off" && `${whole(sources.tokens)} tokens of context`,
    sources?.outcome === "no_match" && "nothing was found",
    sources?.outcome === "failed" && "the search failed",
    usage !== undefined && `${whole(usage.input)} tokens in, ${whole(usage.output)} out${usage.exact ? "" : " (estimated)"}`,
    citations !== undefined && citations.unknown.length > 0 && `invented: ${citations.unknown.join(", ")}`,
    sources?.notice,
  ].filter(Boolean);
  return <p class="small dim">{facts.join(" · ")}</p>;
}

function Citation({
  numbers,
  sources,
  chosen,
  onChoose,
}: {
  numbers: readonly number[];
  sources: ReadonlyMap<number, Source>;
  chosen: Chosen | undefined;
  onChoose: (chosen: Chosen) => void;
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
            aria-pressed={chosen?.source === source}
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
function Passage({ chosen }: { chosen: Chosen | undefined }) {
  const source = chosen?.source;
  const text = useLoad(
    async (signal) => {
      if (source === undefined) return "";
      const answer = await api.getText({ document: source.document }, { signal });
      return sliced(answer.text, source.start, source.end);
    },
    [source?.document, source?.start],
  );
  if (source === undefined) {
    return <p class="sub passage-hint">Choose a citation to read the passage that it stands for.</p>;
  }
  return (
    <aside class="panel passage" aria-label="The cited passage">
      <h2 class="block-title">
        [{chosen?.number}] {source.title || source.key}
      </h2>
      <p class="small dim">
        {source.key}, {whole(source.start)}–{whole(source.end)}
      </p>
      <div class="text" tabIndex={0} role="region" aria-label="Text of the passage">
        <TableHeader header={source.table_header} text={text.data} />
        {text.error === undefined ? text.data : text.error.message}
      </div>
      <a class="link small" href={`/console/documents/${source.document}`}>
        Open in the document
      </a>
    </aside>
  );
}
