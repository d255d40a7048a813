import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import { AskForm } from "../../ui/controls";
import { day, score, wholeNumber } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { ScoreBar } from "../../window/score-bar";
import type { Scope } from "./lanes";

const LIMIT = 6;
const PAUSE = 200;

/** What recall answered at an instant, and what has changed since. */
export function Recall({
  scope,
  texts,
  at,
  query,
  onQuery,
}: {
  scope: Scope;
  /** The texts of memories, by id. */
  texts: ReadonlyMap<string, string>;
  /** Milliseconds. */
  at: number;
  query: string;
  onQuery: (query: string) => void;
}) {
  const instant = useSettled(at);
  const recalled = useLoad(
    (signal) => {
      if (query === "") return undefined;
      const body = { ...scope, query, limit: LIMIT, as_of: new Date(instant).toISOString() };
      return api.recall(body, { signal });
    },
    [query, instant, JSON.stringify(scope)],
  );
  return (
    <section class="recall" aria-label="Recall">
      <h2>Recall on {day(new Date(at))}</h2>
      <AskForm label="Question to the memory" placeholder="Ask what was known" action="Recall" query={query} onAsk={onQuery} />
      {query !== "" && (
        <Show of={recalled} what="what was recalled">
          {({ memories, since }) => (
            <>
              {memories.length === 0 && <p class="sub">Nothing was known.</p>}
              <ul class="list after">
                {memories.map((memory) => (
                  <li key={memory.memory.id}>
                    <p class="row">
                      <span class="text">{memory.memory.text}</span>
                      {(memory.parts["earlier_statement"] ?? 0) < 0 && <span class="tag bad">superseded by a later one</span>}
                      <span class="small">{score(memory.score)}</span>
                    </p>
                    <ScoreBar parts={memory.parts} most={Math.max(...memories.map((other) => other.score))} />
                    {memory.why.length > 0 && <p class="small dim">{readable(memory.why.join(" · "), texts)}</p>}
                  </li>
                ))}
              </ul>
              {since !== null && (
                <div class="figures after">
                  {Object.entries(since).map(([name, count]) => (
                    <p key={name} class="figure">
                      {wholeNumber(count)}
                      <span>{name} since</span>
                    </p>
                  ))}
                </div>
              )}
            </>
          )}
        </Show>
      )}
    </section>
  );
}

const ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** A reason with the texts of memories in place of their ids. */
const readable = (why: string, texts: ReadonlyMap<string, string>): string =>
  why.replace(ID, (id) => (texts.has(id) ? `“${texts.get(id)}”` : "another memory"));

/** A value once it has not changed for a moment. */
export function useSettled<T>(value: T): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), PAUSE);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
