import { api } from "../../api/client";
import { DocumentPicker } from "../../ui/document-picker";
import { counted, score, wholeNumber } from "../../ui/format";
import { useLoad } from "../../ui/load";
import { labelsOf, type NamedDocument } from "../../ui/naming";
import { isIn, type Entry, type Window } from "../../window/anatomy";
import { StatusLabel } from "../../window/status";
import { bodyOf, type Settings } from "./settings";

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
  const nearest = missingDocuments(window);
  const labels = labelsOf(nearest);
  return (
    <section class="panel why-panel" aria-label="Why is a document not in the window?">
      <div>
        <h2>
          <label for="why">Why isn’t … here?</label>
        </h2>
        <DocumentPicker
          id="why"
          collection={settings.collection}
          document={document}
          nearest={nearest}
          shortcut="w"
          onDocument={onDocument}
        />
        <div class="chips">
          {nearest.slice(0, 4).map((choice) => (
            <button
              key={choice.id}
              class="chip"
              type="button"
              aria-pressed={choice.id === document}
              onClick={() => onDocument(choice.id)}
            >
              <span class="ellipsis">
                <bdi>{labels.get(choice.id)}</bdi>
              </span>
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
  const documentEntries = window.trace.filter((entry) => entry.document === document);
  const best = documentEntries.find(isIn) ?? documentEntries[0];
  if (best === undefined) return <p class="why-answer">Nothing of this document is a candidate for this question.</p>;
  return (
    <div class="why-answer" aria-live="polite">
      <StatusLabel status={best.status} />
      <p>
        {isIn(best) ? "It is here: " : "Its best passage is "}
        rank {wholeNumber(best.rank)} of {wholeNumber(window.trace.length)} with a score of {score(best.score)}.{" "}
        {best.reason !== "" && `${sentence(best.reason)} `}
        {documentEntries.length > 1 && `${counted(documentEntries.length, "passage")} of it were compared.`}
      </p>
      <Strip trace={window.trace} documentEntries={documentEntries} />
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
  const entry = explained.data?.trace.find((candidate) => candidate.chunk === chunk);
  if (entry === undefined) return <p class="idle" aria-busy="true">Looking for a budget that holds it …</p>;
  const { fits_from: tokens, fits_above: above } = entry;
  if (tokens !== null && tokens !== undefined) {
    return (
      <p>
        It is in the window whole with {wholeNumber(tokens)} tokens.{" "}
        <button class="link" type="button" onClick={() => onBudget(tokens)}>
          Use {wholeNumber(tokens)} tokens
        </button>
      </p>
    );
  }
  if (above === null || above === undefined) return null;
  return <p>It needs more than {wholeNumber(above)} tokens to be in the window whole.</p>;
}

/** All scores on one line, with the passages of the document marked. */
function Strip({ trace, documentEntries }: { trace: readonly Entry[]; documentEntries: readonly Entry[] }) {
  const most = Math.max(...trace.map((entry) => entry.score), 0.001);
  const x = (entry: Entry) => 4 + (Math.max(entry.score, 0) / most) * 592;
  return (
    <svg
      class="strip"
      viewBox="0 0 600 40"
      role="img"
      aria-label={`${documentEntries.length} of ${trace.length} scores are of this document; the highest is ${score(documentEntries[0]?.score ?? 0)}`}
    >
      <line x1="0" x2="600" y1="20" y2="20" class="strip-axis" />
      {trace.map((entry) => (
        <line key={entry.chunk} x1={x(entry)} x2={x(entry)} y1="14" y2="26" class={isIn(entry) ? "strip-in" : "strip-out"} />
      ))}
      {documentEntries.map((entry) => (
        <circle key={entry.chunk} cx={x(entry)} cy="20" r="5" class={isIn(entry) ? "strip-own in" : "strip-own"} />
      ))}
    </svg>
  );
}

const sentence = (reason: string): string => `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;

/** The documents that came nearest without being in the window. */
function missingDocuments(window: Window): NamedDocument[] {
  const present = new Set(window.trace.filter(isIn).map((entry) => entry.document));
  const choicesById = new Map<string, NamedDocument>();
  for (const { document: id, title, key } of window.trace) {
    if (!present.has(id)) choicesById.set(id, { id, title, key });
  }
  return [...choicesById.values()];
}
