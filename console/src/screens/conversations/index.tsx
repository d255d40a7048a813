/** Channels as they were written: who answered whom, and what a question finds in place. */
import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { readPages, sourcesOf, type Rows } from "../../api/lists";
import { Failure } from "../../ui/action";
import { useAddress } from "../../ui/address";
import { textField } from "../../ui/address-fields";
import { AskForm } from "../../ui/controls";
import { counted, score, wholeNumber } from "../../ui/format";
import { Missing, Show, State, useLoad } from "../../ui/load";
import type { Entry } from "../../window/anatomy";
import { Messages } from "./messages";
import "./conversations.css";

const FIRST = 100;
const PAGE = 1000;
const BUDGET = 2000;

const FIELDS = { channel: textField(), query: textField() };

interface Channel {
  collection: string;
  name: string;
}

export default function Conversations() {
  const [fields, setFields] = useAddress(FIELDS);
  const channels = useLoad(allChannels, []);
  return (
    <Show of={channels} what="the channels">
      {(channels) => {
        const name = fields.channel || channels[0]?.name;
        const selected = channels.find((channel) => channel.name === name);
        if (channels.length === 0) {
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
              {channels.map((channel) => (
                <button
                  key={`${channel.collection}/${channel.name}`}
                  class="chip"
                  type="button"
                  aria-pressed={channel === selected}
                  onClick={() => setFields({ channel: channel.name, query: undefined })}
                >
                  <span class="ellipsis">#{channel.name}</span>
                </button>
              ))}
            </div>
            {selected === undefined ? (
              <Missing />
            ) : (
              <ChannelView
                key={`${selected.collection}/${selected.name}`}
                channel={selected}
                query={fields.query}
                onQuery={(query) => setFields({ query })}
              />
            )}
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
  const [count, setCount] = useState(FIRST);
  const messages = useLoad((signal) => newest(channel, count, signal), [count]);
  const answer = useLoad((signal) => (query === "" ? undefined : askChannel(channel, query, signal)), [query]);
  const matches = query === "" ? undefined : answer.data;
  return (
    <Show of={messages} what="the messages">
      {({ rows: shownMessages, next }) => (
        <>
          <div class="head after">
            <h1>{matches === undefined ? summary(channel, shownMessages, next !== null) : resultTitle(matches, query)}</h1>
            <AskForm label={`Question in #${channel.name}`} placeholder="Ask in this channel" action="Ask" query={query} onAsk={onQuery} />
          </div>
          <Failure text={query === "" ? "" : (answer.error?.message ?? "")} />
          {next !== null && (
            <p class="cluster">
              <button class="btn" type="button" onClick={() => setCount(Math.max(count * 4, count + PAGE))}>
                Load earlier messages
              </button>
            </p>
          )}
          <Messages messages={withMatches(shownMessages, matches)} hits={hitsOf(matches)} />
        </>
      )}
    </Show>
  );
}

type ChannelMessage = Schemas["ChannelMessage"];

/** The newest messages of a channel, oldest first. */
async function newest({ name, collection }: Channel, count: number, signal: AbortSignal): Promise<Rows<ChannelMessage>> {
  const { rows, next } = await readPages(count, PAGE, async (limit, before) => {
    const page = await api.listMessages({ channel: name, collection, limit, before }, { signal });
    return { rows: page.reverse(), next: page.length < limit ? null : (page.at(-1)?.document.id ?? null) };
  });
  return { rows: rows.reverse(), next };
}

/** The window of a question, and its messages with their texts. */
interface ChannelMatches {
  window: Schemas["ContextWindow"];
  tokens: number;
  messages: ChannelMessage[];
}

async function askChannel({ name, collection }: Channel, query: string, signal: AbortSignal): Promise<ChannelMatches> {
  const body = { query, channel: name, collection, max_tokens: BUDGET };
  const { window, tokens, messages } = await api.channelContext(body, { signal });
  const ids = messages.map((message) => message.id);
  const { texts } = await api.getTexts({ ids }, { signal });
  const matchingMessages = messages.map((document) => ({
    document,
    text: texts[document.id] ?? document.text,
    inferred: "answers" in (document.metadata ?? {}),
  }));
  return { window, tokens, messages: matchingMessages };
}

function summary(channel: Channel, messages: readonly ChannelMessage[], more: boolean): string {
  const threads = new Set(messages.map((message) => message.document.thread ?? message.document.id)).size;
  return `${more ? "The newest " : ""}${counted(messages.length, "message")} of #${channel.name}, in ${counted(threads, "thread")}`;
}

function resultTitle(matches: ChannelMatches, query: string): string {
  return matches.messages.length === 0
    ? `Nothing in this channel answers “${query}”`
    : `${counted(matches.messages.length, "message")}, ${wholeNumber(matches.tokens)} tokens, for “${query}”`;
}

/** What the trace says of each message, by its document. */
function hitsOf(matches: ChannelMatches | undefined): ReadonlyMap<string, string> | undefined {
  if (matches === undefined) return undefined;
  const inside = new Set(matches.messages.map((message) => message.document.id));
  const describe = (entry: Entry) =>
    "thread_message" in entry.parts ? "in the window, for its thread" : `in the window, score ${score(entry.score)}`;
  return new Map(
    matches.window.trace.filter((entry) => inside.has(entry.document)).map((entry) => [entry.document, describe(entry)]),
  );
}

/** Once a question was asked, what it found, and what else was loaded of the same threads, in order of time. */
function withMatches(messages: readonly ChannelMessage[], matches: ChannelMatches | undefined): readonly ChannelMessage[] {
  if (matches === undefined) return messages;
  const threadOf = ({ document }: ChannelMessage) => document.thread ?? document.key;
  const threads = new Set(matches.messages.map(threadOf));
  const all = [...messages.filter((message) => threads.has(threadOf(message))), ...matches.messages];
  const unique = new Map(all.map((message) => [message.document.id, message]));
  const time = ({ document }: ChannelMessage) => document.occurred?.start ?? "";
  return [...unique.values()].sort((one, other) => (time(one) < time(other) ? -1 : 1));
}
