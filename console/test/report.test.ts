import assert from "node:assert/strict";
import { test } from "node:test";
import { compare, estimateOf, isCovered } from "../src/screens/evaluation/report.ts";

test("evidence is covered by passages that leave no gap", () => {
  const span = { document: "a", name: "a", start: 10, end: 30 };
  assert.ok(isCovered(span, [{ document: "a", name: "a", start: 18, end: 40 }, { document: "a", name: "a", start: 0, end: 18 }]));
  assert.ok(!isCovered(span, [{ document: "a", name: "a", start: 19, end: 40 }, { document: "a", name: "a", start: 0, end: 18 }]));
  assert.ok(!isCovered(span, [{ document: "b", name: "a", start: 0, end: 40 }]));
});

test("the interval of equal runs is zero, and that of a better run is above zero", () => {
  const before = new Map(Array.from({ length: 40 }, (_, at) => [`q${at}`, at % 2]));
  const after = new Map([...before.keys()].map((id) => [id, 1]));
  const same = compare(before, before);
  assert.deepEqual([same.difference, same.low, same.high, same.questions], [0, 0, 0, 40]);
  const better = compare(before, after);
  assert.equal(better.difference, 50);
  assert.ok(better.low > 0 && better.high < 100);
});

test("a mean has an interval around it, which is a point for equal shares", () => {
  assert.deepEqual(estimateOf(new Map([["a", 1], ["b", 1]])), { mean: 100, low: 100, high: 100 });
  const { mean, low, high } = estimateOf(new Map(Array.from({ length: 40 }, (_, at) => [`q${at}`, at % 2])));
  assert.equal(mean, 50);
  assert.ok(0 < low && low < 50 && 50 < high && high < 100);
});
