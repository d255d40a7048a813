import type { ComponentChildren } from "preact";
import { api } from "../api/client";
import { counted, score, sliceLetters, wholeNumber } from "../ui/format";
import { useLoad } from "../ui/load";
import { isIn, type Entry, type Passage } from "./anatomy";
import { ScoreBar, ScoreParts } from "./score-bar";
import { StatusLabel } from "./status";
import { TableHeader } from "./table-header";
import { TrustLabel } from "./trust";
import { lastHeading } from "./window-map";

export type SourceNames = ReadonlyMap<string, string>;

/** Where a candidate comes from: its source, its document, and the characters in it. */
export function placeOf(entry: Entry, sources: SourceNames): string {
  const source = sources.get(entry.source ?? "") ?? "";
  return `${source === "" ? "" : `${source} / `}${entry.key || entry.title}, ${wholeNumber(entry.start ?? 0)}–${wholeNumber(entry.end ?? 0)}`;
}

/** One candidate: what became of it and why, its score in parts, and its text as the model gets it. */
export function PassagePanel({
  entry,
  passage,
  candidates,
  most,
  sources,
  children,
}: {
  entry: Entry;
  /** The passage of the window that the candidate is part of, if it is in. */
  passage: Passage | undefined;
  candidates: number;
  /** The score that fills a bar. */
  most: number;
  sources: SourceNames;
  /** What can be done with it. */
  children?: ComponentChildren;
}) {
  return (
    <article class="panel passage" aria-label="The chosen passage">
      <div class="row">
        <StatusLabel status={entry.status} />
        <span class="dim small">
          {passage !== undefined && `[${passage.number}] · `}
          {counted(passage?.tokens ?? entry.tokens, "token")}
        </span>
      </div>
      <div>
        <h2 class="block-title">{lastHeading(entry.heading) || entry.title || entry.key || "Without a title"}</h2>
        <p class="small dim">{placeOf(entry, sources)}</p>
        <p class="small">
          <TrustLabel origin={entry.origin} trust={entry.trust} />
        </p>
      </div>
      <div>
        <p class="row">
          <span>
            score <b>{score(entry.score)}</b>
          </span>
          <span class="small dim">
            rank {wholeNumber(entry.rank)} of {wholeNumber(candidates)}
          </span>
        </p>
        <ScoreBar parts={entry.parts} most={most} large />
        <ScoreParts parts={entry.parts} />
        {entry.reason !== "" && <p class="small">{entry.reason}</p>}
      </div>
      {passage === undefined ? <ChunkText entry={entry} /> : <WindowText entry={entry} passage={passage} />}
      {children}
    </article>
  );
}

/** The text of a passage as it stands in the window, with the mark of where it was cut. */
function WindowText({ entry, passage }: { entry: Entry; passage: Passage }) {
  const isWhole = passage.entries.length < 2;
  return (
    <div class="text" tabIndex={0} role="region" aria-label="Text of the passage">
      {!isWhole && <p class="dim tiny">One passage of {passage.entries.length} candidates that follow each other.</p>}
      <TableHeader header={passage.citation.table_header} text={passage.text} />
      {passage.text}
      {entry.status === "truncated" && <span class="cut-line">cut here to fit the budget</span>}
    </div>
  );
}

/** The text of a candidate that is not in the window, read from its document. */
function ChunkText({ entry }: { entry: Entry }) {
  const text = useLoad(
    async (signal) => {
      const answer = await api.getText({ document: entry.document }, { signal });
      return sliceLetters(answer.text, entry.start ?? 0, entry.end ?? 0);
    },
    [entry.document, entry.chunk],
  );
  return (
    <div class="text" tabIndex={0} role="region" aria-label="Text of the candidate" aria-busy={text.busy}>
      {text.error === undefined ? text.data : text.error.message}
    </div>
  );
}

/** The candidate that stands for a passage: its best one. */
export function leadOf(passage: Passage, trace: readonly Entry[]): Entry | undefined {
  return passage.entries[0] ?? trace.find((entry) => isIn(entry));
}
