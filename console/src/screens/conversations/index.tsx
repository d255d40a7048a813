/** Channels as they were written: who answered whom, and what a question finds in place. */
import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { readPages, sourcesOf, type Rows } from "../../api/lists";
import { Failure } from "../../ui/action";
import { useFields } from "../../ui/address";
import { AskForm } from "../../ui/controls";
import { counted, score, whole } from "../../ui/format";
import { Show, State, useLoad } from "../../ui/load";
import type { Entry } from "../../window/anatomy";
import { Messages } from "./messages";
import "./conversations.css";

const FIRST = 100;
const PAGE = 1000;
const BUDGET = 2000;

interface Channel {
  collection: string;
  name: string;
}

export default function Conversations() {
  const [fields, setFields] = useFields();
  const channels = useLoad(allChannels, []);
  return (
    <Show of={channels} what="the channels">
      {(found) => {
        const name = fields.get("channel") ?? found[0]?.name;
        const chosen = found.find((each) => each.name === name) ?? found[0];
        if (chosen === undefined) {
          return (
            <State title="There are no conversations yet">
              <p class="sub">This screen shows channels and their threads. Import an export of Slack, Discord or IRC:</p>
              <p class="mono">conspectus messages import ARCHIVE</p>
            </State>
          );
        }
        return (
          <>
            <div class="chips" role="group" aria-label="Channels">
              {found.map((each) => (
                <button
                  key={`${each.collection}/${each.name}`}
                  class="chip"
                  type="button"
                  aria-pressed={each === chosen}
                  onClick={() => setFields({ channel: each.name, query: undefined })}
                >
                  <span class="ellipsis">#{each.name}</span>
                </button>
              ))}
            </div>
            <ChannelView
              key={`${chosen.collection}/${chosen.name}`}
              channel={chosen}
              query={fields.get("query") ?? ""}
              onQuery={(query) => setFields({ query })}
            />
          </>
        );
      }}
    </Show>
  );
}

const allChannels = (signal: AbortSignal): Promise<Channel[]> =>
  sourcesOf("channel", signal, (collection, name) => ({ collection, name }));

function ChannelView({
  channel,
  query,
  onQuery,
}: {
  channel: Channel;
  query: string;
  onQuery: (query: string) => void;
}) {
  const [wanted, want] = useState(FIRST);
  const messages = useLoad((signal) => newest(channel, wanted, signal), [wanted]);
  const answer = useLoad((signal) => (query === "" ? undefined : asked(channel, query, signal)), [query]);
  const found = query === "" ? undefined : answer.data;
  return (
    <Show of={messages} what="the messages">
      {({ rows: shown, next }) => (
        <>
          <div class="head after">
            <h1>{found === undefined ? summary(channel, shown, next !== null) : result(found, query)}</h1>
            <AskForm label={`Question in #${channel.name}`} placeholder="Ask in this channel" action="Ask" query={query} onAsk={onQuery} />
          </div>
          <Failure text={query === "" ? "" : (answer.error?.message ?? "")} />
          {next !== null && (
            <p class="cluster">
              <button class="btn" type="button" onClick={() => want(Math.max(wanted * 4, wanted + PAGE))}>
                Load earlier messages
              </button>
            </p>
          )}
          <Messages messages={withFound(shown, found)} hits={hitsOf(found)} />
        </>
      )}
    </Show>
  );
}

type ChannelMessage = Schemas["ChannelMessage"];

/** The newest messages of a channel, oldest first. */
async function newest({ name, collection }: Channel, wanted: number, signal: AbortSignal): Promise<Rows<ChannelMessage>> {
  const { rows, next } = await readPages(wanted, PAGE, async (limit, before) => {
    const page = await api.listMessages({ channel: name, collection, limit, before }, { signal });
    return { rows: page.reverse(), next: page.length < limit ? null : (page.at(-1)?.document.id ?? null) };
  });
  return { rows: rows.reverse(), next };
}

/** The window of a question, and its messages with their texts. */
interface Found {
  window: Schemas["ContextWindow"];
  tokens: number;
  messages: ChannelMessage[];
}

async function asked({ name, collection }: Channel, query: string, signal: AbortSignal): Promise<Found> {
  const body = { query, channel: name, collection, max_tokens: BUDGET };
  const { window, tokens, messages } = await api.channelContext(body, { signal });
  const ids = messages.map((each) => each.id);
  const { texts } = await api.getTexts({ ids }, { signal });
  const found = messages.map((document) => ({
    document,
    text: texts[document.id] ?? document.text,
    inferred: "answers" in (document.metadata ?? {}),
  }));
  return { window, tokens, messages: found };
}

function summary(channel: Channel, shown: readonly ChannelMessage[], more: boolean): string {
  const threads = new Set(shown.map((each) => each.document.thread ?? each.document.id)).size;
  return `${more ? "The newest " : ""}${counted(shown.length, "message")} of #${channel.name}, in ${counted(threads, "thread")}`;
}

function result(found: Found, query: string): string {
  return found.messages.length === 0
    ? `Nothing in this channel answers “${query}”`
    : `${counted(found.messages.length, "message")}, ${whole(found.tokens)} tokens, for “${query}”`;
}

/** What the trace says of each message, by its document. */
function hitsOf(found: Found | undefined): ReadonlyMap<string, string> | undefined {
  if (found === undefined) return undefined;
  const inside = new Set(found.messages.map((each) => each.document.id));
  const describe = (entry: Entry) =>
    "thread_message" in entry.parts ? "in the window, for its thread" : `in the window, score ${score(entry.score)}`;
  return new Map(
    found.window.trace.filter((each) => inside.has(each.document)).map((each) => [each.document, describe(each)]),
  );
}

/** Once a question was asked, what it found, and what else was loaded of the same threads, in order of time. */
function withFound(shown: readonly ChannelMessage[], found: Found | undefined): readonly ChannelMessage[] {
  if (found === undefined) return shown;
  const threadOf = ({ document }: ChannelMessage) => document.thread ?? document.key;
  const threads = new Set(found.messages.map(threadOf));
  const all = [...shown.filter((each) => threads.has(threadOf(each))), ...found.messages];
  const unique = new Map(all.map((each) => [each.document.id, each]));
  const time = ({ document }: ChannelMessage) => document.occurred?.start ?? "";
  return [...unique.values()].sort((one, other) => (time(one) < time(other) ? -1 : 1));
}
