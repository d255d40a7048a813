import assert from "node:assert/strict";
import { test } from "node:test";
import { ListCache } from "../src/api/list-cache.ts";

test("a list is read once until its time is over or it is forgotten", async () => {
  let [now, reads] = [0, 0];
  const cache = new ListCache(5_000, () => now);
  const load = () => Promise.resolve((reads += 1));
  assert.deepEqual(await Promise.all([cache.read("a", load), cache.read("a", load)]), [1, 1]);
  now = 5_000;
  assert.equal(await cache.read("a", load), 2);
  cache.forget("a");
  assert.equal(await cache.read("a", load), 3);
  assert.equal(await cache.read("b", load), 4);
});

test("a list that failed is read again", async () => {
  const cache = new ListCache(5_000);
  await assert.rejects(cache.read("a", () => Promise.reject(new Error("down"))), /down/);
  assert.equal(await cache.read("a", () => Promise.resolve(1)), 1);
});
