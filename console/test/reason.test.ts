import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonOf } from "../src/screens/evaluation/reason.ts";

const EVIDENCE = { document: "1", name: "backup.md", start: 10, end: 30 };
const DOCUMENTS: Record<string, string> = { "backup.md": "1", "a.md": "2", "b.md": "3" };
const place = (name: string, start: number, end: number) => ({ document: DOCUMENTS[name]!, name, start, end });
const before = { name: "before", passages: [place("a.md", 0, 9), place("backup.md", 0, 40)] };

test("a window that has the evidence needs no reason", () => {
  assert.equal(reasonOf(EVIDENCE, before, { name: "after", passages: [] }), "");
});

test("a reason says what the window has in its place, and where the other one has it", () => {
  const reasons: [ReturnType<typeof place>[], string][] = [
    [[], "Nothing is in the window of after; in before it is passage 2 of 2."],
    [[place("b.md", 0, 99)], "after has one passage, none of backup.md; in before it is passage 2 of 2."],
    [[place("backup.md", 40, 99)], "after has other places of backup.md; in before it is passage 2 of 2."],
    [
      [place("backup.md", 20, 99), place("backup.md", 25, 28)],
      "after has 10 of its 20 characters; in before it is passage 2 of 2.",
    ],
  ];
  for (const [passages, reason] of reasons) assert.equal(reasonOf(EVIDENCE, { name: "after", passages }, before), reason);
  const neither = reasonOf(EVIDENCE, { name: "after", passages: [] }, { name: "before", passages: [] });
  assert.equal(neither, "Nothing is in the window of after, and before does not have it either.");
});
