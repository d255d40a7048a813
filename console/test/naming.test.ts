import assert from "node:assert/strict";
import { test } from "node:test";
import { isId, labelsOf, nameOf } from "../src/ui/naming.ts";

test("a name is the title, or else the first words, or else the key", () => {
  assert.equal(nameOf({ title: "Keys", text: "The keys", key: "k.md" }), "Keys");
  assert.equal(nameOf({ title: " ", text: "\n The  keys ", key: "k.md" }), "The keys");
  assert.equal(nameOf({ title: "", text: "word ".repeat(500), key: "k.md" }), `${"word ".repeat(12)}…`);
  assert.equal(nameOf({ title: "", key: "k.md" }), "k.md");
  assert.equal(nameOf({ title: "", text: " ", key: "" }), "Without a title");
});

test("two documents never have one label", () => {
  const documents = [
    { id: "1", title: "Minutes", key: "a.md" },
    { id: "2", title: "Minutes", key: "b.md" },
    { id: "3", title: "Minutes", key: "b.md" },
    { id: "4", title: "Fees", key: "a.md" },
  ];
  const labels = [...labelsOf(documents).values()];
  assert.deepEqual(labels, ["Minutes (a.md)", "Minutes (b.md) (2)", "Minutes (b.md) (3)", "Fees"]);
  assert.equal(new Set(labels).size, documents.length);
});

test("only what can be the id of a document is one", () => {
  assert.ok(isId("b6782c74-e0bd-55d0-9797-faf76010f231"));
  for (const text of ["meetings", "b6782c74-e0bd-45d0-9797-faf76010f231", " b6782c74-e0bd-55d0-9797-faf76010f231"]) {
    assert.ok(!isId(text), text);
  }
});
