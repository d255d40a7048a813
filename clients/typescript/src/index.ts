/** A client of a Conspectus server. */
import { streamChatEvents, subscribe, type ChatEvent, type LiveCaption, type SubscribeOptions } from "./events.js";
import { Transport, type ClientOptions } from "./request.js";
import { ROUTES, type Operations } from "./routes.js";
import type { Arguments, CallOptions, Schemas } from "./types.js";

export { each } from "./pages.js";
export { ProblemError, type Problem } from "./problem.js";
export type { Arguments, Call, CallOptions, Result, Schemas } from "./types.js";
export type { ChatEvent, ClientOptions, LiveCaption, Operations, SubscribeOptions };

/** Answers that come as events. Leaving the loop closes the connection; one that is lost is opened again. */
export interface Streams {
  /** The answer of the chat model as it comes. */
  streamChat(args: Arguments<"chat">, options?: CallOptions): AsyncGenerator<ChatEvent, void, undefined>;
  /** Matches of alerts. */
  subscribeAlerts(
    args?: Arguments<"subscribe_alerts">,
    options?: SubscribeOptions,
  ): AsyncGenerator<Schemas["AlertEvent"], void, undefined>;
  /** New captions of a stream. */
  subscribeCaptions(
    args: Arguments<"subscribe_captions">,
    options?: SubscribeOptions,
  ): AsyncGenerator<LiveCaption, void, undefined>;
}

export type Client = Omit<Operations, keyof Streams> & Streams;

/** A client of the server at `url`, for example `http://127.0.0.1:8642`. No request is sent yet. */
export function connect(url: string, options: ClientOptions = {}): Client {
  const transport = new Transport(url, options);
  const calls = Object.entries(ROUTES).map(([name, route]) => {
    const call = (args: Readonly<Record<string, unknown>> = {}, callOptions: CallOptions = {}) =>
      transport.call(route, args, callOptions);
    return [name, call];
  });
  const chat: Client["chat"] = (args, callOptions = {}) =>
    transport.call(ROUTES.chat, { ...args, stream: false }, callOptions) as ReturnType<Client["chat"]>;
  const streams: Streams = {
    streamChat: (args, callOptions = {}) => streamChatEvents(transport, args, callOptions),
    subscribeAlerts: (args = {}, callOptions = {}) => subscribe(transport, ROUTES.subscribeAlerts, args, callOptions),
    subscribeCaptions: (args, callOptions = {}) => subscribe(transport, ROUTES.subscribeCaptions, args, callOptions),
  };
  return { ...Object.fromEntries(calls), chat, ...streams } as Client;
}
