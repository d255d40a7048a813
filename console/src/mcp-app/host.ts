/** The client that shows this page in a frame (MCP Apps, 2026-01-26): JSON-RPC by messages of windows. */

const PROTOCOL = "2026-01-26";
const INITIALIZE = 1;

/** The result of the tool, as far as this page reads it. */
export interface ToolResult {
  content?: readonly { type: string; text?: string }[];
  _meta?: Record<string, unknown>;
  isError?: boolean;
}

interface Message {
  id?: number | string;
  method?: string;
  params?: Record<string, unknown>;
  result?: { hostContext?: Record<string, unknown> };
}

const send = (message: object) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");

function theme(context: Record<string, unknown> | undefined): void {
  const theme = context?.["theme"];
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
}

/** Answers and follows the client; `shown` gets each result of the tool. */
export function connect(onResult: (result: ToolResult) => void): void {
  addEventListener("message", ({ source, data }: MessageEvent<Message>) => {
    if (source !== parent || typeof data !== "object" || data === null) return;
    const { id, method, params, result } = data;
    if (method === undefined) {
      if (id !== INITIALIZE) return;
      theme(result?.hostContext);
      send({ method: "ui/notifications/initialized" });
    } else if (method === "ui/notifications/tool-result") onResult((params ?? {}) as ToolResult);
    else if (method === "ui/notifications/host-context-changed") theme(params);
    else if (id !== undefined) send({ id, result: {} });
  });
  const appInfo = { name: "conspectus", version: "1" };
  const appCapabilities = { availableDisplayModes: ["inline", "fullscreen"] };
  send({ id: INITIALIZE, method: "ui/initialize", params: { protocolVersion: PROTOCOL, appInfo, appCapabilities } });
  new ResizeObserver(() => {
    const { scrollWidth: width, scrollHeight: height } = document.documentElement;
    send({ method: "ui/notifications/size-changed", params: { width, height } });
  }).observe(document.body);
}
