/** The frame: the screens, who is logged in, the theme, and the keys. */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Link, Router, useLocation } from "wouter-preact";
import { asProblem, Failed, Skeleton, State } from "./ui/load";
import type { Problem } from "./api/client";
import { invitation, loggedIn, logout, person, resume } from "./session";
import { AcceptInvitation, Login } from "./screens/login";
import { Dialog } from "./ui/controls";
import { keysAreOn, switchKeys, useKeys } from "./ui/keys";
import { Mark } from "./ui/mark";

interface Screen {
  path: string;
  /** Whether no digit leads to it: there are ten. */
  keyless?: boolean;
  name: string;
  /** The heading of the group that it begins. */
  group?: string;
  load: () => Promise<{ default: ComponentType }>;
}

const SCREENS: readonly Screen[] = [
  { path: "/playground", name: "Playground", group: "Ask", load: () => import("./screens/playground") },
  { path: "/see-as", name: "See as", load: () => import("./screens/see-as") },
  { path: "/chat", name: "Chat", load: () => import("./screens/chat") },
  { path: "/answers", name: "Answers", keyless: true, load: () => import("./screens/answers") },
  { path: "/documents", name: "Documents", group: "Look inside", load: () => import("./screens/documents") },
  { path: "/conversations", name: "Conversations", load: () => import("./screens/conversations") },
  { path: "/streams", name: "Streams", load: () => import("./screens/streams") },
  { path: "/memory", name: "Memory", load: () => import("./screens/memory") },
  { path: "/graph", name: "Graph", load: () => import("./screens/graph") },
  { path: "/operations", name: "Operations", group: "Run", load: () => import("./screens/operations") },
  { path: "/evaluation", name: "Evaluation", load: () => import("./screens/evaluation") },
];

/** The screens that digits lead to, in the order of the keys 1 to 9, and 0. */
const KEYED: readonly Screen[] = SCREENS.filter((screen) => screen.keyless !== true);

const SHORTCUTS: readonly (readonly [string, string])[] = [
  ["1 … 9, 0", "Go to a screen"],
  ["/", "Write a question"],
  ["j, k", "Next, previous candidate"],
  ["o", "Open the document of the candidate"],
  ["w", "Ask why a document is not in the window"],
  ["c", "Compare"],
  ["s", "See as another user"],
  ["[ and ]", "Smaller, larger budget"],
  ["t", "Light or dark"],
  ["?", "Help"],
  ["Esc", "Close"],
];

const MANUALS: readonly (readonly [string, string])[] = [
  ["/console/docs/", "Documentation"],
  ["/docs", "Reference of the API"],
];

const THEME = "conspectus-theme";
const theme = signal<"light" | "dark">(preferredTheme());

function preferredTheme(): "light" | "dark" {
  const stored = localStorage.getItem(THEME);
  if (stored === "light" || stored === "dark") return stored;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

theme.subscribe((value) => {
  document.documentElement.dataset["theme"] = value;
});

function switchTheme() {
  theme.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(THEME, theme.value);
}

export function App() {
  const [problem, failed] = useState<Problem>();
  const connect = () => {
    failed(undefined);
    resume().catch((error: unknown) => failed(asProblem(error)));
  };
  useEffect(connect, []);
  if (problem !== undefined) {
    return (
      <main>
        <Failed problem={problem} what="the console" retry={connect} />
      </main>
    );
  }
  if (person.value === undefined) return null;
  if (invitation.value !== null) return <AcceptInvitation token={invitation.value} />;
  if (person.value === null) return <Login />;
  return (
    <Router base="/console">
      <Frame />
    </Router>
  );
}

function Frame() {
  const [path, go] = useLocation();
  const [help, showHelp] = useState(false);
  const main = useRef<HTMLElement>(null);
  const screen = SCREENS.find((screen) => path === screen.path || path.startsWith(`${screen.path}/`));
  useEffect(() => {
    if (path === "/" || path === "") go("/playground", { replace: true });
  }, [path]);
  useEffect(() => {
    document.title = screen === undefined ? "Conspectus" : `${screen.name} · Conspectus`;
    document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [screen]);
  useKeys({
    ...Object.fromEntries(KEYED.map((screen, at) => [String((at + 1) % 10), () => go(screen.path)])),
    t: switchTheme,
    "?": () => showHelp(true),
  });
  return (
    <div class="app">
      <header class="side">
        <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
          Skip to the content
        </a>
        <Link class="brand" href="/playground">
          <Mark />
          Conspectus
        </Link>
        <nav class="nav" aria-label="Screens">
          {SCREENS.map((destination) => (
            <>
              {destination.group !== undefined && <p>{destination.group}</p>}
              <Link href={destination.path} aria-current={destination === screen ? "page" : undefined}>
                {destination.name}
                {destination.keyless !== true && <kbd aria-hidden="true">{(KEYED.indexOf(destination) + 1) % 10}</kbd>}
              </Link>
            </>
          ))}
        </nav>
        <Account onHelp={() => showHelp(true)} />
      </header>
      <main id="main" tabIndex={-1} ref={main}>
        {screen === undefined ? <State title="There is no such screen" /> : <Lazy key={screen.path} screen={screen} />}
      </main>
      {help && (
        <Dialog title="Help" onClose={() => showHelp(false)}>
          <Manuals />
          <dl class="receipt">
            {SHORTCUTS.map(([keys, meaning]) => (
              <div key={keys}>
                <dt>{meaning}</dt>
                <dd>{keys}</dd>
              </div>
            ))}
          </dl>
          <KeySwitch />
        </Dialog>
      )}
    </div>
  );
}

/** Single keys can be switched off, for those whose speech or hands press them by chance. */
function KeySwitch() {
  const [on, turn] = useState(keysAreOn());
  return (
    <label class="cluster after">
      <input
        type="checkbox"
        checked={on}
        onChange={(event) => {
          switchKeys(event.currentTarget.checked);
          turn(event.currentTarget.checked);
        }}
      />
      Keys act alone, without Control
    </label>
  );
}

/** Links to what this server has to read; a checkout may not have built all of it. */
function Manuals() {
  const [reachable, addReachable] = useState<readonly string[]>([]);
  useEffect(() => {
    for (const [address] of MANUALS) {
      fetch(address, { method: "HEAD" }).then((answer) => answer.ok && addReachable((before) => [...before, address]), () => undefined);
    }
  }, []);
  const manuals = MANUALS.filter(([address]) => reachable.includes(address));
  return (
    <ul class="cluster">
      {manuals.map(([address, name]) => (
        <li key={address}>
          <a href={address}>{name}</a>
        </li>
      ))}
    </ul>
  );
}

function Account({ onHelp }: { onHelp: () => void }) {
  const who = person.value;
  return (
    <div class="me">
      <span class="ellipsis">
        <Link class="link" href="/operations?part=people" aria-label={`${who?.name}: users and keys`}>
          {who?.name}
        </Link>
        {who?.owner && ", owner"}
      </span>
      <span class="cluster">
        <button class="btn compact" type="button" onClick={switchTheme}>
          {theme.value === "dark" ? "Light" : "Dark"}
        </button>
        <button class="btn compact" type="button" onClick={onHelp}>
          Help
        </button>
        {loggedIn() && (
          <button class="btn compact" type="button" onClick={() => void logout()}>
            Log out
          </button>
        )}
      </span>
    </div>
  );
}

function Lazy({ screen }: { screen: Screen }) {
  const [Content, setContent] = useState<ComponentType>();
  const [problem, failed] = useState<Problem>();
  useEffect(() => {
    screen.load().then(
      (module) => setContent(() => module.default),
      (error: unknown) => failed(asProblem(error)),
    );
  }, []);
  if (problem !== undefined) {
    return <Failed problem={problem} what={`the screen ${screen.name}`} retry={() => location.reload()} />;
  }
  return Content === undefined ? <Skeleton /> : <Content />;
}
