/** The playground: a question, and what the model will see of it, and why. */
import { useMemo, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { api } from "../../api/client";
import { readCollections, usualOf } from "../../api/lists";
import { useFields, type Fields } from "../../ui/address";
import { Segmented } from "../../ui/controls";
import { counted, milliseconds, percent } from "../../ui/format";
import { useKeys } from "../../ui/keys";
import { Failed, Show, State, useLoad } from "../../ui/load";
import { LocationLink, pathOf } from "../../ui/location";
import { isIn, passagesOf, type Entry, type Passage, type Window } from "../../window/anatomy";
import { BudgetBar, BudgetLegend } from "../../window/budget-bar";
import { Candidates } from "../../window/candidates";
import { PassagePanel, type SourceNames } from "../../window/passage-panel";
import { Filled, Funnel } from "../../window/sentence";
import { WindowMap } from "../../window/window-map";
import { WindowText } from "../../window/window-text";
import { ComparePicker, Comparison, keptOf, useComparison, type Other } from "./compare";
import { CachePlan, explainInTurn, StableBeginning } from "./conversation";
import { Judge } from "./judge";
import { Question } from "./question";
import { fieldsOf, settingsOf, type Settings } from "./settings";
import { Why } from "./why";

export default function Playground() {
  const [fields, setFields] = useFields();
  const collections = useLoad(readCollections, []);
  const requested = settingsOf(fields);
  const names = collections.data?.map((collection) => collection.name) ?? [];
  const settings = { ...requested, collection: requested.collection || (usualOf(names) ?? "") };
  const change = (changes: Partial<Settings>) => setFields(fieldsOf(changes));
  return (
    <Show of={collections} what="the collections">
      {(collectionList) =>
        collectionList.length === 0 ? (
          <State title="Nothing is stored yet">
            <p class="sub">A collection holds documents, threads or memories. Add the first with:</p>
            <p class="mono">conspectus add FOLDER</p>
          </State>
        ) : (
          <>
            <Question settings={settings} collections={collectionList} onChange={change} />
            {settings.query === "" ? (
              <State title="See what the model will see">
                <p class="sub">
                  Ask a question: this shows the window that fits the budget, every candidate, and the reason for each.
                </p>
                <p class="small">
                  <Link class="link" href="/answers">
                    See what people were given
                  </Link>
                </p>
              </State>
            ) : (
              <Answer
                settings={settings}
                document={fields.get("document") ?? ""}
                other={(fields.get("compare") ?? "") as Other}
                savedSettings={fields.get("kept") ?? ""}
                asText={fields.get("view") === "text"}
                onChange={change}
                onFields={setFields}
              />
            )}
          </>
        )
      }
    </Show>
  );
}

const VIEWS = [
  ["map", "Map"],
  ["text", "Text"],
] as const;

interface AnswerOf {
  settings: Settings;
  document: string;
  other: Other;
  /** The settings that were kept to compare with. */
  savedSettings: string;
  /** Whether the window is shown as its text. */
  asText: boolean;
  onChange: (changes: Partial<Settings>) => void;
  onFields: (changes: Fields) => void;
}

function Answer({ settings, ...rest }: AnswerOf) {
  const body = JSON.stringify(settings);
  const answer = useLoad(
    async (signal) => {
      const window = await explainInTurn(settings, signal);
      const sources = await api.listSources({ collection: settings.collection }, { signal });
      return { window, sources: new Map(sources.map((source) => [source.id, source.name])) };
    },
    [body],
  );
  const stable = useMemo(() => settings, [body]);
  if (answer.error !== undefined && answer.data === undefined) {
    return <Failed problem={answer.error} what="the window" retry={answer.reload} />;
  }
  return (
    <Show of={answer} what="the window">
      {({ window, sources }) => (
        <Anatomy
          window={window}
          sources={sources}
          settings={stable}
          {...rest}
          reload={answer.reload}
        />
      )}
    </Show>
  );
}

function Anatomy({
  window,
  sources,
  settings,
  document,
  other,
  savedSettings,
  asText,
  onChange,
  onFields,
  reload,
}: AnswerOf & { window: Window; sources: SourceNames; reload: () => void }) {
  const passages = useMemo(() => passagesOf(window), [window]);
  const trace = window.trace;
  const most = Math.max(...trace.map((entry) => entry.score), 0);
  const [chunk, choose] = useState<number>();
  const entry = trace.find((candidate) => candidate.chunk === chunk) ?? passages[0]?.entries[0] ?? trace[0];
  const passage = passages.find((passage) => entry !== undefined && isIn(entry) && passage.citation.chunks.includes(entry.chunk));
  const comparison = useComparison(settings, other, savedSettings, window);
  const [, go] = useLocation();
  const compareWith = (value: Other) => onFields({ compare: value, kept: value === "kept" ? keptOf(settings) : undefined });
  const select = (number: number) => choose(passages.find((passage) => passage.number === number)?.entries[0]?.chunk);
  const step = (by: number) => {
    const next = trace[trace.findIndex((candidate) => candidate === entry) + by];
    if (next !== undefined) choose(next.chunk);
  };
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    o: () => entry !== undefined && go(pathOf({ document: entry.document, chunk: entry.chunk })),
  });
  return (
    <>
      <Sentence window={window} passages={passages} />
      <div class="anatomy-head">
        <BudgetLegend parts={window.parts} />
        <Segmented
          label="Show the window as"
          options={VIEWS}
          value={asText ? "text" : "map"}
          onChange={(view) => onFields({ view: view === "map" ? undefined : view })}
        />
      </div>
      <StableBeginning window={window} />
      <BudgetBar
        parts={window.parts}
        cut={new Set(passages.filter((passage) => passage.cut).map((passage) => passage.number))}
        selected={passage?.number}
        onSelect={select}
      />
      {entry !== undefined && (
        <div class="anatomy">
          <div>
            <Funnel window={window} />
            {asText ? (
              <WindowText window={window} passages={passages} selected={passage?.number} onSelect={select} />
            ) : (
              <WindowMap passages={passages} selected={passage?.number} onSelect={select} />
            )}
          </div>
          <PassagePanel entry={entry} passage={passage} candidates={trace.length} most={most} sources={sources}>
            <Judge
              query={settings.query}
              collection={settings.collection}
              chunks={passage?.citation.chunks ?? [entry.chunk]}
              onChange={() => {
                choose(entry.chunk);
                reload();
              }}
            />
            <p class="small">
              <LocationLink location={{ document: entry.document, chunk: entry.chunk }} />
            </p>
          </PassagePanel>
        </div>
      )}
      <Comparison window={window} comparison={comparison} />
      <Why
        settings={settings}
        window={window}
        document={document}
        onDocument={(id) => onFields({ document: id })}
        onBudget={(maxTokens) => onChange({ maxTokens })}
      />
      <section>
        <div class="tools">
          <h2>Every candidate, and what became of it</h2>
          <ComparePicker other={other} settings={settings} onOther={compareWith} />
        </div>
        <Candidates
          trace={trace}
          sources={sources}
          most={most}
          selected={entry?.chunk}
          marks={comparison.marks}
          onSelect={(candidate: Entry) => choose(candidate.chunk)}
        />
      </section>
    </>
  );
}

/** The answer in one sentence, with figures. */
function Sentence({ window, passages }: { window: Window; passages: readonly Passage[] }) {
  const spent = Object.values(window.timings).reduce((sum, milliseconds) => sum + milliseconds, 0);
  return (
    <div class="say">
      <div>
        <Filled passages={window.outcome === "no_match" ? 0 : passages.length} window={window} />
        <CachePlan window={window} />
        {window.notices.map((notice) => (
          <p key={notice} class="sub small">
            {notice}
          </p>
        ))}
      </div>
      <details class="small dim timings">
        <summary>
          {counted(window.trace.length, "candidate")} in {milliseconds(spent)} · {percent(window.confidence)} confidence
        </summary>
        <Profile timings={window.timings} spent={spent} />
      </details>
    </div>
  );
}

/** Where the time of the question went: its steps in the order in which they ran, to scale. */
function Profile({ timings, spent }: { timings: Readonly<Record<string, number>>; spent: number }) {
  return (
    <ol class="profile" aria-label="Where the time went">
      {Object.entries(timings).map(([step, value]) => (
        <li key={step}>
          <span>{step.replaceAll("_", " ")}</span>
          <span class="profile-track">
            <span class="meter" style={{ width: `${(value / (spent || 1)) * 100}%` }} />
          </span>
          <span class="num">{milliseconds(value)}</span>
          <span class="num">{percent(value / (spent || 1))}</span>
        </li>
      ))}
    </ol>
  );
}
