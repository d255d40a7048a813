/** The window that a model got, and what it is made of, in the frame of a client that shows MCP Apps. */
import { render } from "preact";
import { useMemo, useState } from "preact/hooks";
import { isIn, passagesOf, type Window } from "../window/anatomy";
import { BudgetBar, BudgetLegend } from "../window/budget-bar";
import { PassagePanel } from "../window/passage-panel";
import { Filled, Funnel } from "../window/sentence";
import { WindowMap } from "../window/window-map";
import { connect, type ToolResult } from "./host";
import "../styles/base.css";
import "../styles/window.css";
import "./mcp-app.css";

const VIEW = "conspectus/window";

type AppWindow = Pick<Window, "text" | "tokens" | "max_tokens" | "parts" | "citations" | "trace"> & { candidates: number };

/** The window in a result: its text is the beginning of the result's text. */
function windowOf({ content, _meta }: ToolResult): AppWindow | undefined {
  const view = _meta?.[VIEW];
  if (typeof view !== "object" || view === null) return undefined;
  return { ...(view as Omit<AppWindow, "text">), text: content?.[0]?.text ?? "" };
}

function Result({ result }: { result: ToolResult }) {
  const window = useMemo(() => windowOf(result), [result]);
  if (window !== undefined) return <Anatomy window={window} />;
  return <p class="text">{result.content?.map((block) => block.text ?? "").join("\n")}</p>;
}

function Anatomy({ window }: { window: AppWindow }) {
  const passages = useMemo(() => passagesOf(window), [window]);
  const [number, select] = useState(passages[0]?.number);
  const passage = passages.find((passage) => passage.number === number);
  const entry = passage?.entries.find(isIn);
  const cut = new Set(passages.filter((passage) => passage.cut).map((passage) => passage.number));
  return (
    <>
      <Filled passages={passages.length} window={window} />
      <BudgetLegend parts={window.parts} />
      <BudgetBar parts={window.parts} cut={cut} selected={number} onSelect={select} />
      {passage !== undefined && entry !== undefined && (
        <div class="anatomy">
          <div>
            <Funnel window={window} />
            <WindowMap passages={passages} selected={number} onSelect={select} />
          </div>
          <PassagePanel
            entry={entry}
            passage={passage}
            candidates={window.candidates}
            most={Math.max(...window.trace.map((entry) => entry.score), 0)}
            sources={new Map()}
          />
        </div>
      )}
    </>
  );
}

function App() {
  const [result, show] = useState<ToolResult>();
  useMemo(() => connect(show), []);
  return <main>{result === undefined ? <p class="dim">Waiting for the window …</p> : <Result result={result} />}</main>;
}

const dark = matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.dataset["theme"] = dark ? "dark" : "light";
render(<App />, document.getElementById("app") as HTMLElement);
