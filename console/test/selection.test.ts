import assert from "node:assert/strict";
import { test } from "node:test";
import { filterOf, restrictionsOf, SELECTION, statusOf } from "../src/screens/documents/selection.ts";
import { readFields } from "../src/ui/address-fields.ts";

const NOON = Date.UTC(2026, 0, 8, 12);
const selectionOf = (address: string) => readFields(SELECTION, new URLSearchParams(address));

test("without restrictions there is no filter", () => {
  assert.equal(filterOf(selectionOf("words=+&sort=-size"), NOON), undefined);
  assert.equal(statusOf(selectionOf("status=unknown")), undefined);
});

test("words are a part of the title or the key, and all conditions hold together", () => {
  const words = { or: [{ field: "title", contains: "a \"b" }, { field: "key", contains: "a \"b" }] };
  assert.deepEqual(filterOf(selectionOf("words=+a+%22b"), NOON), words);
  const selection = selectionOf("source=s1&words=a+%22b&media=text/csv&days=7&status=error");
  assert.deepEqual(filterOf(selection, NOON), {
    and: [
      { field: "source", eq: "s1" },
      words,
      { field: "metadata.media_type", eq: "text/csv" },
      { field: "recorded", from: { time: "2026-01-01T12:00:00.000Z" } },
    ],
  });
  assert.deepEqual(
    restrictionsOf(selection).map(({ label }) => label),
    ["“a \"b”", "CSV and Excel", "Failed", "Added in 7 days"],
  );
});

test("an address may name what no menu has; a time before all clocks is none", () => {
  assert.deepEqual(restrictionsOf(selectionOf("days=3&media=x/y")).map(({ label }) => label), ["x/y", "Added in 3 days"]);
  assert.equal(filterOf(selectionOf("days=999999999999999"), NOON), undefined);
});
