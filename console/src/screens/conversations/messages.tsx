import { useState } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { day, score } from "../../ui/format";
import { useAddress } from "../../ui/address";
import { flagField } from "../../ui/address-fields";

type ChannelMessage = Schemas["ChannelMessage"];

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

interface Reply {
  to: ChannelMessage;
  /** The probability of an inferred link; 1 where the platform says so, undefined where it was not stored. */
  confidence: number | undefined;
  stated: boolean;
}

const FIELDS = { unlikely: flagField() };
const LIKELY = 0.5;

/** Messages in the order in which they were written; a chosen one lights up its thread. */
export function Messages({
  messages,
  hits,
}: {
  messages: readonly ChannelMessage[];
  /** What a question found, by document; undefined where none was asked. */
  hits: ReadonlyMap<string, string> | undefined;
}) {
  const [thread, choose] = useState<string>();
  const [{ unlikely }, setFields] = useAddress(FIELDS);
  const byKey = new Map(messages.map((message) => [message.document.key, message]));
  let before = "";
  return (
    <>
      <p class="legend after">
        <span>
          <i class="reply-line" />
          answers, as the platform says
        </span>
        <span>
          <i class="reply-line inferred" />
          seems to answer; the paler, the less likely
        </span>
        <label class="cluster">
          <input
            type="checkbox"
            checked={unlikely}
            onChange={(event) => setFields({ unlikely: event.currentTarget.checked })}
          />
          Also links below {LIKELY.toFixed(2)}
        </label>
      </p>
      <ol class="messages" aria-label="Messages">
        {messages.map((message) => {
          const date = message.document.occurred === null ? "" : day(message.document.occurred.start);
          const begins = date !== before;
          before = date;
          const ownThread = message.document.thread ?? message.document.key;
          return (
            <li key={message.document.id}>
              {begins && date !== "" && <h2 class="message-day">{date}</h2>}
              <Message
                message={message}
                reply={shownReply(replyOf(message, byKey), unlikely)}
                hit={hits?.get(message.document.id)}
                lit={ownThread === thread}
                onChoose={() => choose(ownThread === thread ? undefined : ownThread)}
              />
            </li>
          );
        })}
      </ol>
    </>
  );
}

function replyOf(message: ChannelMessage, byKey: ReadonlyMap<string, ChannelMessage>): Reply | undefined {
  const { reply_to: stated, answers, answers_confidence: confidence } = message.document.metadata;
  const to = byKey.get(String(stated ?? answers ?? ""));
  if (to === undefined) return undefined;
  if (stated !== undefined) return { to, stated: true, confidence: 1 };
  return { to, stated: false, confidence: typeof confidence === "number" ? confidence : undefined };
}

/** An unlikely link is shown on demand only. */
function shownReply(reply: Reply | undefined, unlikely: boolean): Reply | undefined {
  return unlikely || (reply?.confidence ?? 1) >= LIKELY ? reply : undefined;
}

/** Only the line fades: text must stay readable. */
function lineOf({ confidence = 1, stated }: Reply) {
  return stated ? {} : { style: { borderLeftColor: `color-mix(in srgb, var(--ink) ${confidence * 100}%, transparent)` } };
}

function Message({
  message,
  reply,
  hit,
  lit,
  onChoose,
}: {
  message: ChannelMessage;
  reply: Reply | undefined;
  hit: string | undefined;
  lit: boolean;
  onChoose: () => void;
}) {
  const { document, text } = message;
  const shades = ["message", hit !== undefined && "hit", lit && "lit", document.role === "system" && "system"];
  return (
    <button class={shades.filter(Boolean).join(" ")} type="button" aria-pressed={lit} onClick={onChoose}>
      <time class="tiny dim">{document.occurred === null ? "" : CLOCK.format(new Date(document.occurred.start))}</time>
      <span class="message-body">
        {reply !== undefined && (
          <span class={reply.stated ? "reply" : "reply inferred"} {...lineOf(reply)}>
            <span class="sr">{reply.stated ? "answers " : "seems to answer "}</span>
            {!reply.stated && reply.confidence !== undefined && (
              <span class="num">
                <span class="sr">with confidence </span>
                {score(reply.confidence)}{" "}
              </span>
            )}
            <b>{reply.to.document.author ?? "someone"}</b> {reply.to.text}
          </span>
        )}
        {document.author !== null && <b>{document.author}</b>}
        <span class="text">{text}</span>
      </span>
      {hit !== undefined && <span class="tag good">{hit}</span>}
    </button>
  );
}
