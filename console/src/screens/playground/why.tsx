import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import { counted, score, whole } from "../../ui/format";
import { useKeys } from "../../ui/keys";
import { useLoad } from "../../ui/load";
import { isIn, type Entry, type Window } from "../../window/anatomy";
import { StatusLabel } from "../../window/status";
import { bodyOf, type Settings } from "./settings";

interface Named {
  id: string;
  name: string;
}

/** Why a document is not in the window: what stopped it, by how much, and what would let it in. */
export function Why({
  settings,
  window,
  document,
  onDocument,
  onBudget,
}: {
  settings: Settings;
  window: Window;
  /** The id of the document that is asked about. */
  document: string;
  onDocument: (id: string) => void;
  onBudget: (tokens: number) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  const [typed, type] = useState("");
  const [wanted, want] = useState(false);
  useKeys({ w: () => input.current?.focus() });
  const documents = useLoad((signal) => (wanted ? named(settings.collection, signal) : undefined), [
    settings.collection,
    wanted,
  ]);
  const choices = merged(missing(window), documents.data ?? []);
  useEffect(() => type(choices.find((each) => each.id === document)?.name ?? document), [document, documents.data]);
  const choose = (text: string) => {
    const found = choices.find((each) => each.name === text || each.id === text);
    onDocument(found?.id ?? text.trim());
  };
  return (
    <section class="panel why-panel" aria-label="Why is a document not in the window?">
      <div>
        <h2>
          <label for="why">Why isn’t … here?</label>
        </h2>
        <input
          ref={input}
          id="why"
          class="field"
          list="documents"
          placeholder="Name or id of a document"
          value={typed}
          onFocus={() => want(true)}
          onInput={(event) => type(event.currentTarget.value)}
          onChange={(event) => choose(event.currentTarget.value)}
        />
        <datalist id="documents">
          {choices.map((each) => (
            <option key={each.id} value={each.name} />
          ))}
        </datalist>
        <div class="chips">
          {missing(window)
            .slice(0, 4)
            .map((each) => (
              <button
                key={each.id}
                class="chip"
                type="button"
                aria-pressed={each.id === document}
                onClick={() => onDocument(each.id)}
              >
                <span class="ellipsis">{each.name}</span>
              </button>
            ))}
        </div>
      </div>
      {document === "" ? (
        <p class="why-answer idle dim">
          Name any document that you expected. The answer says what stopped it, by how much, and what would let it in.
          What you may not see is answered as if it did not exist.
        </p>
      ) : (
        <Answer key={document} settings={settings} document={document} onBudget={onBudget} />
      )}
    </section>
  );
}

function Answer({
  settings,
  document,
  onBudget,
}: {
  settings: Settings;
  document: string;
  onBudget: (tokens: number) => void;
}) {
  const explained = useLoad(
    (signal) => api.explain({ ...bodyOf(settings), document }, { signal }),
    [settings, document],
  );
  if (explained.error !== undefined) {
    const text = explained.error.status === 404 ? "There is no such document that you may see." : explained.error.message;
    return <p class="why-answer">{text}</p>;
  }
  const window = explained.data;
  if (window === undefined) return <p class="why-answer idle" aria-busy="true" />;
  const own = window.trace.filter((each) => each.document === document);
  const best = own.find(isIn) ?? own[0];
  if (best === undefined) return <p class="why-answer">Nothing of this document is a candidate for this question.</p>;
  return (
    <div class="why-answer" aria-live="polite">
      <StatusLabel status={best.status} />
      <p>
        {isIn(best) ? "It is here: " : "Its best passage is "}
        rank {whole(best.rank)} of {whole(window.trace.length)} with a score of {score(best.score)}.{" "}
        {best.reason !== "" && `${sentence(best.reason)} `}
        {own.length > 1 && `${counted(own.length, "passage")} of it were compared.`}
      </p>
      <Strip trace={window.trace} own={own} />
      {(best.status === "over_budget" || best.status === "truncated") && (
        <FittingBudget
          key={`${best.chunk} ${JSON.stringify(bodyOf(settings))}`}
          settings={settings}
          document={document}
          chunk={best.chunk}
          onBudget={onBudget}
        />
      )}
    </div>
  );
}

/** The budget that holds a passage, which is looked for after its rank and reason are shown. */
function FittingBudget({
  settings,
  document,
  chunk,
  onBudget,
}: {
  settings: Settings;
  document: string;
  chunk: number;
  onBudget: (tokens: number) => void;
}) {
  const explained = useLoad(
    (signal) => api.explain({ ...bodyOf(settings), document, fits_from: true }, { signal }),
    [settings, document],
  );
  if (explained.error !== undefined) return null;
  const entry = explained.data?.trace.find((each) => each.chunk === chunk);
  if (entry === undefined) return <p class="idle" aria-busy="true">Looking for a budget that holds it …</p>;
  const { fits_from: tokens, fits_above: above } = entry;
  if (tokens !== null && tokens !== undefined) {
    return (
      <p>
        It is in the window whole with {whole(tokens)} tokens.{" "}
        <button class="link" type="button" onClick={() => onBudget(tokens)}>
          Use {whole(tokens)} tokens
        </button>
      </p>
    );
  }
  if (above === null || above === undefined) return null;
  return <p>It needs more than {whole(above)} tokens to be in the window whole.</p>;
}

/** All scores on one line, with the passages of the document marked. */
function Strip({ trace, own }: { trace: readonly Entry[]; own: readonly Entry[] }) {
  const most = Math.max(...trace.map((each) => each.score), 0.001);
  const x = (entry: Entry) => 4 + (Math.max(entry.score, 0) / most) * 592;
  return (
    <svg
      class="strip"
      viewBox="0 0 600 40"
      role="img"
      aria-label={`${own.length} of ${trace.length} scores are of this document; the highest is ${score(own[0]?.score ?? 0)}`}
    >
      <line x1="0" x2="600" y1="20" y2="20" class="strip-axis" />
      {trace.map((each) => (
        <line key={each.chunk} x1={x(each)} x2={x(each)} y1="14" y2="26" class={isIn(each) ? "strip-in" : "strip-out"} />
      ))}
      {own.map((each) => (
        <circle key={each.chunk} cx={x(each)} cy="20" r="5" class={isIn(each) ? "strip-own in" : "strip-own"} />
      ))}
    </svg>
  );
}

const sentence = (reason: string): string => `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;

/** The documents that came nearest without being in the window. */
function missing(window: Window): Named[] {
  const present = new Set(window.trace.filter(isIn).map((each) => each.document));
  const found = new Map<string, Named>();
  for (const entry of window.trace) {
    if (!present.has(entry.document)) found.set(entry.document, { id: entry.document, name: entry.key || entry.title });
  }
  return [...found.values()];
}

async function named(collection: string, signal: AbortSignal): Promise<Named[]> {
  const page = await api.listDocuments({ collection, limit: 1000 }, { signal });
  return page.documents.map((each) => ({ id: each.id, name: each.key || each.title }));
}

function merged(first: readonly Named[], second: readonly Named[]): Named[] {
  return [...new Map([...first, ...second].map((each) => [each.id, each])).values()];
}
