import { counted, wholeNumber } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { Glyph } from "../../window/status";
import type { Run } from "./cells";
import { reasonOf } from "./reason";
import { isCovered, overlaps, type Asked, type Span } from "./report";

/** A question in both runs: its evidence, and its two windows, with what only one of them has marked. */
export function SideBySide({
  id,
  first,
  second,
  group,
  budget,
}: {
  /** The id of the question. */
  id: string;
  first: Run;
  second: Run;
  /** The kind of the question. */
  group: string;
  budget: number;
}) {
  const questions = useLoad(() => Promise.all([first, second].map(({ report }) => report.ask(group, id))), [first, second, group, id]);
  return (
    <div class="after">
      <Show of={questions} what="the windows">
        {([before, now]) => (
          <Windows id={id} first={first} second={second} before={before} now={now} budget={budget} />
        )}
      </Show>
    </div>
  );
}

function Windows({
  id,
  first,
  second,
  before,
  now,
  budget,
}: {
  id: string;
  first: Run;
  second: Run;
  before: Asked | undefined;
  now: Asked | undefined;
  budget: number;
}) {
  const questionRun = now ?? before;
  return (
    <>
      {questionRun !== undefined && <h3>{questionRun.query}</h3>}
      <p role="status">
        {questionRun === undefined && <span class="mono">{id}: </span>}
        {percent(first.shares.get(id))} of its evidence before, {percent(second.shares.get(id))} now.
      </p>
      {before === undefined || now === undefined ? (
        <p class="sub small">
          To see both windows here, run <span class="mono">conspectus eval evidence</span> with{" "}
          <span class="mono">--windows</span>.
        </p>
      ) : (
        <>
          <Evidence questionRun={now} windows={[passagesOf(before, budget), passagesOf(now, budget)]} names={[first, second]} />
          <p class="legend after">
            <span>
              <i class="swatch only-before" />
              only in {first.report.name}
            </span>
            <span>
              <i class="swatch only-now" />
              only in {second.report.name}
            </span>
            <span>
              <u class="evidence">evidence</u>
            </span>
          </p>
          <div class="columns">
            <WindowOf run={first} questionRun={before} other={now} budget={budget} shade="only-before" />
            <WindowOf run={second} questionRun={now} other={before} budget={budget} shade="only-now" />
          </div>
        </>
      )}
    </>
  );
}

const percent = (share: number | undefined): string => `${(100 * (share ?? 0)).toFixed(1)} %`;

const passagesOf = (questionRun: Asked, budget: number): readonly Span[] => questionRun.passages.get(budget) ?? [];

/** What answers the question, and whether the windows have all of it. */
function Evidence({
  questionRun,
  windows,
  names,
}: {
  questionRun: Asked;
  windows: readonly [readonly Span[], readonly Span[]];
  names: readonly [Run, Run];
}) {
  const named = [
    { name: names[0].report.name, passages: windows[0] },
    { name: names[1].report.name, passages: windows[1] },
  ] as const;
  return (
    <ul class="list after" aria-label="Evidence">
      {questionRun.evidence.map((evidenceSpan) => (
        <li key={`${evidenceSpan.document}/${evidenceSpan.start}`} class="evidence-row">
          <span>
            <span class="text small">{evidenceSpan.text}</span>
            <span class="small dim block-line">
              {reasonOf(evidenceSpan, named[1], named[0]) || reasonOf(evidenceSpan, named[0], named[1])}
            </span>
          </span>
          <span class="evidence-marks">
            {windows.map((window, at) => {
              const inside = isCovered(evidenceSpan, window);
              return (
                <span key={at} class={inside ? "status lit" : "status"}>
                  <Glyph status={inside ? "included" : "below_min_similarity"} />
                  {inside ? "in" : "not in"} {names[at]?.report.name}
                </span>
              );
            })}
          </span>
        </li>
      ))}
    </ul>
  );
}

function WindowOf({
  run,
  questionRun,
  other,
  budget,
  shade,
}: {
  run: Run;
  questionRun: Asked;
  /** The same question in the other run. */
  other: Asked;
  budget: number;
  /** The class of what the other window does not have. */
  shade: string;
}) {
  const passages = passagesOf(questionRun, budget);
  const others = passagesOf(other, budget);
  return (
    <section class="panel side-window" aria-label={`Window of ${run.report.name}`}>
      <p class="row">
        <b>{run.report.name}</b>
        <span class="small dim">{counted(passages.length, "passage")}</span>
      </p>
      {passages.length === 0 && <p class="sub small">Nothing is in this window.</p>}
      <ol class="side-passages" tabIndex={0} aria-label={`Passages of ${run.report.name}`}>
        {passages.map((passage, at) => (
          <li key={at}>
            <p class="tiny dim row">
              <span>
                [{at + 1}] <bdi>{passage.name}</bdi>, {wholeNumber(passage.start)}–{wholeNumber(passage.end)}
              </span>
              {!others.some((one) => overlaps(one, passage)) && <span class="tag">only here</span>}
            </p>
            <p class="text small">
              {pieces(passage, others, questionRun.evidence).map((piece, number) => (
                <Piece key={number} piece={piece} shade={shade} />
              ))}
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}

interface Piece {
  text: string;
  /** Whether the other window does not have it. */
  only: boolean;
  evidence: boolean;
}

function Piece({ piece, shade }: { piece: Piece; shade: string }) {
  const text = piece.evidence ? <u class="evidence">{piece.text}</u> : piece.text;
  return piece.only ? <mark class={shade}>{text}</mark> : <>{text}</>;
}

/** A passage, cut where the other window or the evidence begins or ends. */
function pieces(passage: Span, others: readonly Span[], evidence: readonly Span[]): Piece[] {
  const letters = Array.from(passage.text);
  const near = (spans: readonly Span[]) => spans.filter((span) => overlaps(span, passage));
  const [there, answers] = [near(others), near(evidence)];
  const borders = [...there, ...answers]
    .flatMap((span) => [span.start, span.end])
    .filter((position) => position > passage.start && position < passage.end);
  const cuts = [...new Set([passage.start, ...borders, passage.end])].sort((one, other) => one - other);
  const has = (spans: readonly Span[], at: number) => spans.some((span) => span.start <= at && at < span.end);
  return cuts.slice(0, -1).map((at, number) => ({
    text: letters.slice(at - passage.start, (cuts[number + 1] ?? at) - passage.start).join(""),
    only: !has(there, at),
    evidence: has(answers, at),
  }));
}
