import { useState } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { day } from "../../ui/format";

type ChannelMessage = Schemas["ChannelMessage"];

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

interface Reply {
  to: ChannelMessage;
  /** Whether the platform says so; otherwise it was inferred. */
  stated: boolean;
}

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
  const byKey = new Map(messages.map((each) => [each.document.key, each]));
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
          seems to answer
        </span>
      </p>
      <ol class="messages" aria-label="Messages">
        {messages.map((each) => {
          const date = each.document.occurred === null ? "" : day(each.document.occurred.start);
          const begins = date !== before;
          before = date;
          const own = each.document.thread ?? each.document.key;
          return (
            <li key={each.document.id}>
              {begins && date !== "" && <h2 class="message-day">{date}</h2>}
              <Message
                message={each}
                reply={replyOf(each, byKey)}
                hit={hits?.get(each.document.id)}
                lit={own === thread}
                onChoose={() => choose(own === thread ? undefined : own)}
              />
            </li>
          );
        })}
      </ol>
    </>
  );
}

function replyOf(message: ChannelMessage, byKey: ReadonlyMap<string, ChannelMessage>): Reply | undefined {
  const { reply_to: stated, answers } = message.document.metadata as { reply_to?: string; answers?: string };
  const to = byKey.get(stated ?? answers ?? "");
  return to === undefined ? undefined : { to, stated: stated !== undefined };
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
          <span class={reply.stated ? "reply" : "reply inferred"}>
            <span class="sr">{reply.stated ? "answers " : "seems to answer "}</span>
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
