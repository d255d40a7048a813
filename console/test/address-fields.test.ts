import assert from "node:assert/strict";
import { test } from "node:test";
import {
  choiceField,
  countField,
  flagField,
  labelledField,
  listField,
  readFields,
  shareField,
  textField,
  writeFields,
} from "../src/ui/address-fields.ts";

const FIELDS = { words: textField(), sort: choiceField(["added", "title"]), open: flagField(), days: countField(100) };

test("missing and wrong texts of an address are the defaults", () => {
  const search = new URLSearchParams("sort=colour&open=1&days=-3&other=x");
  assert.deepEqual(readFields(FIELDS, search), { words: "", sort: "added", open: false, days: 0 });
  assert.equal(readFields(FIELDS, new URLSearchParams("days=1e9")).days, 0);
});

test("what is written is read again, and defaults leave the address", () => {
  const values = { words: "a&b=c 🏴", sort: "title", open: true, days: 7 } as const;
  const search = new URLSearchParams(writeFields(FIELDS, values));
  assert.deepEqual(readFields(FIELDS, search), values);
  assert.deepEqual(writeFields(FIELDS, { words: "", sort: "added", days: undefined }), { words: "", sort: "", days: "" });
});

const GRAPH = { hops: labelledField([["1", "one"], ["2", "two"]] as const), types: listField(), weight: shareField() };

test("labels, lists and shares are read as they were written", () => {
  const values = { hops: "2", types: ["works at", "a,b"], weight: 0.35 } as const;
  assert.deepEqual(readFields(GRAPH, new URLSearchParams(writeFields(GRAPH, values))), values);
  assert.deepEqual(writeFields(GRAPH, { hops: "1", types: [], weight: 0 }), { hops: "", types: "", weight: "" });
});

for (const weight of ["-0.1", "1.01", "NaN", "much", "Infinity"]) {
  test(`${weight} is no share`, () => {
    const search = new URLSearchParams({ hops: "9", types: "", weight });
    assert.deepEqual(readFields(GRAPH, search), { hops: "1", types: [], weight: 0 });
  });
}
