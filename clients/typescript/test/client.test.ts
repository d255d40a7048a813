/** The client with a real server: its address and the key of its owner are in the environment. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, each, ProblemError, type ChatEvent, type LiveCaption } from "@conspectus/client";

const url = process.env["CONSPECTUS_URL"] ?? "";
const apiKey = process.env["CONSPECTUS_API_KEY"] ?? "";
const client = connect(`${url}/`, { apiKey });
const HOSTILE = "a/b ?&#%\u2028<script>é";

const problem = (status: number, code: string) => (error: unknown) => {
  assert(error instanceof ProblemError, String(error));
  assert.deepEqual([error.status, error.code], [status, code]);
  return true;
};

async function collection(name: string, texts: readonly string[]): Promise<string> {
  await client.createCollection({ name });
  const documents = texts.map((text, at) => ({ text, title: `Page ${at}` }));
  const written = await client.addDocuments({ collection: name, documents });
  assert.deepEqual(written.map((document) => document.outcome), texts.map(() => "added"));
  return name;
}

test("a document that was added is found and is in a window", async () => {
  const name = await collection("invoices", ["Invoices are paid on Fridays.", "The backup runs at two."]);
  const { hits } = await client.search({ query: "when are invoices paid?", collection: name, limit: 1 });
  assert.deepEqual(hits.map((hit) => hit.chunk.text), ["Invoices are paid on Fridays."]);
  const window = await client.context({ query: "when are invoices paid?", collection: name, max_tokens: 200 });
  assert.match(window.text, /paid on Fridays/);
  assert.equal(window.citations[0]?.document, hits[0]?.document.id);
});

test("arguments reach the path, the query and the body as they are", async () => {
  const name = await collection(HOSTILE, ["one"]);
  assert.equal((await client.getCollection({ collection: name })).name, HOSTILE);
  const filter = [`metadata.a=${HOSTILE}`, "role=é&b=c"];
  assert.deepEqual((await client.listDocuments({ collection: name, filter })).documents, []);
  assert.equal(await client.deleteUser({ user: (await client.createUser({ name: "guest" })).id }), undefined);
});

test("a name that an address cannot have does not reach another route", async () => {
  for (const collection of ["", ".", ".."]) await assert.rejects(client.deleteCollection({ collection }), TypeError);
});

test("a list is read page by page to its end", async () => {
  const name = await collection("pages", ["1", "2", "3", "4", "5"]);
  const titles: string[] = [];
  for await (const document of each(client.listDocuments, { collection: name, limit: 2 })) titles.push(document.title);
  assert.deepEqual(titles.sort(), ["Page 0", "Page 1", "Page 2", "Page 3", "Page 4"]);
});

test("files are uploaded as a form", async () => {
  const name = await collection("uploads", []);
  const files = [new File(["Tea is served at four."], "tea.md"), new File(["Coffee is at ten."], "coffee.md")];
  let job = await client.ingestFiles({ collection: name, files, source: "menu" });
  while (job.state === "queued" || job.state === "running") job = await client.getJob({ job: job.id, wait: 5 });
  assert.equal((await client.countDocuments({ collection: name })).count, 2);
});

test("an answer that is no JSON is text", async () => {
  assert.match(String(await client.readMetrics()), /^# HELP/);
});

test("a write with the same key is done once", async () => {
  await client.createCollection({ name: "once" });
  const write = () => client.addDocuments({ collection: "once", documents: [{ text: "x" }] }, { idempotencyKey: "k" });
  assert.deepEqual(await write(), await write());
});

test("a refusal is a problem document", async () => {
  await assert.rejects(client.search({ query: "x", collection: "nowhere" }), problem(404, "not_found"));
  await assert.rejects(connect(url, { apiKey: "csp_wrong" }).whoami(), problem(401, "unauthenticated"));
  const unchecked = { query: 1 } as unknown as { query: string };
  await assert.rejects(client.search(unchecked), (error: unknown) => {
    assert(error instanceof ProblemError);
    return error.status === 422 && error.requestId !== "" && error.message !== "";
  });
});

test("a server that does not answer is a problem as well", async () => {
  await assert.rejects(connect("http://127.0.0.1:1").status(), problem(0, "unreachable"));
});

test("a signal and a timeout end a call", async () => {
  await assert.rejects(client.status({}, { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
  const hanging = connect(url, { apiKey, fetch: (_, how) => fetch(`${url}/api/v1/alerts/stream`, how), timeout: 200 });
  await assert.rejects(hanging.status(), { name: "TimeoutError" });
});

test("the chat model answers in pieces and then says what it read", async () => {
  await collection("handbook", ["Backups run every night."]);
  const events: ChatEvent[] = [];
  for await (const event of client.streamChat({ message: "When do backups run?", collection: "handbook" })) events.push(event);
  const text = events.flatMap((event) => (event.type === "delta" ? [event.data.text] : [])).join("");
  assert.equal(text, (await client.chat({ message: "When do backups run?", collection: "handbook" })).answer);
  const sources = events.find((event) => event.type === "sources");
  assert.equal(sources?.data.sources[0]?.title, "Page 0");
});

test("a chat that does not begin is a problem", async () => {
  const events = client.streamChat({ message: "x", collection: "nowhere" });
  await assert.rejects(events.next(), problem(404, "not_found"));
});

/** Sends what the real fetch brings, and breaks the first body off in the event after some whole ones. */
function lossy(eventCount: number): { fetch: typeof fetch; paths: string[] } {
  const paths: string[] = [];
  const lost: typeof fetch = async (input, how) => {
    paths.push(new URL(String(input)).pathname);
    const response = await fetch(input, how);
    return paths.length > 1 ? response : new Response(await beginning(response, eventCount), response);
  };
  return { fetch: lost, paths };
}

async function beginning(response: Response, eventCount: number): Promise<ReadableStream<Uint8Array>> {
  const events = (await response.text()).split(/(?<=\n\n)/);
  const pieces = [...events.slice(0, eventCount), events[eventCount]?.slice(0, 12)].map((event) => new TextEncoder().encode(event));
  return new ReadableStream({
    pull(out) {
      const piece = pieces.shift();
      if (piece === undefined) out.error(new TypeError("the connection was lost"));
      else out.enqueue(piece);
    },
  }, { highWaterMark: 0 });
}

for (const eventCount of [1, 2, 4]) {
  test(`an answer goes on where the connection was lost: ${eventCount} events before`, async () => {
    const { fetch, paths } = lossy(eventCount);
    const texts: string[] = [];
    for await (const event of connect(url, { apiKey, fetch }).streamChat({ message: "Backups?" })) {
      if (event.type === "delta") texts.push(event.data.text);
    }
    assert.equal(texts.join(""), (await client.chat({ message: "Backups?" })).answer);
    assert.match(paths[1] ?? "", /^\/api\/v1\/chat\/[0-9a-f]+$/);
  });
}

test("an answer that is lost before its first event is not asked for again", async () => {
  const { fetch, paths } = lossy(0);
  await assert.rejects(connect(url, { apiKey, fetch }).streamChat({ message: "x" }).next(), problem(0, "unreachable"));
  assert.equal(paths.length, 1);
});

test("captions arrive as they are written, and after the last that was read", async () => {
  await client.putStream({ name: "camera" });
  const { source } = await client.getStream({ stream: "camera" });
  const write = (text: string, start: number) =>
    client.addCaptions({ stream: source.id, captions: [{ text, start, end: start + 1 }] });
  const leaving = new AbortController();
  const live = client.subscribeCaptions({ stream: "camera" }, { signal: leaving.signal });
  let value: LiveCaption | undefined;
  const first = live.next().then((read) => (value = read.value ?? undefined));
  // Those before the subscription began do not arrive.
  for (let at = 0; value === undefined; at += 1) await write(`A door opens ${at}.`, at);
  assert(value === (await first));
  assert.match(value.caption.text, /^A door opens/);
  leaving.abort();
  await assert.rejects(live.next(), { name: "AbortError" });
  await write("A car leaves.", 1000);
  for await (const next of client.subscribeCaptions({ stream: "camera" }, { after: value.sequence })) {
    assert(next.sequence > value.sequence);
    if (next.caption.text === "A car leaves.") break;
  }
});
