import { api, type Schemas } from "../../api/client";
import { Show, useLoad } from "../../ui/load";
import { clockOf } from "./lines";
import { offset } from "./view";

type Stream = Schemas["Stream"];

/** A line of a summary that is made of captions: from when to when, and what was said. */
const LINE = /^\[(\S+) - (\S+)\] (.*)$/;

/** What a stream is about; each line of captions leads to its time. */
export function Summary({
  collection,
  stream,
  onTime,
}: {
  collection: string;
  stream: Stream;
  onTime: (seconds: number) => void;
}) {
  const summarized = useLoad((signal) => api.getSummary({ stream: stream.source.id, collection }, { signal }), []);
  return (
    <section class="panel" aria-label="Summary">
      <h2>Summary</h2>
      <Show of={summarized} what="the summary">
        {({ text, by }) => (
          <>
            <p class="small dim">{by === "extractive" ? "made of captions, without a language model" : `by ${by}`}</p>
            <Text text={text} stream={stream} onTime={onTime} />
          </>
        )}
      </Show>
    </section>
  );
}

function Text({ text, stream, onTime }: { text: string; stream: Stream; onTime: (seconds: number) => void }) {
  const lines = text.split("\n").map((line) => LINE.exec(line));
  if (text === "" || lines.some((line) => line === null)) {
    return <p class="text small after">{text || "There is nothing to summarize."}</p>;
  }
  const clock = clockOf(stream);
  return (
    <ol class="summary-lines after">
      {lines.map((line, at) => {
        const seconds = secondsOf(line?.[1] ?? "", stream);
        return (
          <li key={at}>
            <button class="link small" type="button" onClick={() => onTime(seconds)}>
              {clock(seconds)}
            </button>
            <span class="small">{line?.[3]}</span>
          </li>
        );
      })}
    </ol>
  );
}

/** The seconds of an instant or of a timecode on the clock of a stream. */
function secondsOf(time: string, stream: Stream): number {
  if (time.includes("T")) return offset(stream, time) ?? 0;
  return time.split(":").reduce((sum, unit) => sum * 60 + Number(unit), 0);
}
