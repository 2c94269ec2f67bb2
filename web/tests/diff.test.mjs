import assert from "node:assert/strict";
import { test } from "node:test";
import { diffRows, firstOfDiff } from "../src/diff.ts";

const signs = (rows) => rows.map((row) => row.sign).join("");

test("lines have the numbers of their own version", () => {
  const rows = diffRows("--- a\n+++ b\n@@ -3,3 +7,3 @@\n same\n-old\n+new\n same\n");
  assert.deepEqual(rows.map((row) => [row.sign, row.number]), [[" ", 7], ["-", 4], ["+", 8], [" ", 9]]);
});

test("a removed line may look like a header", () => {
  const rows = diffRows("--- a\n+++ b\n@@ -1,2 +1,1 @@\n--- a comment\n-++ x\n+@@ -1 +1 @@\n");
  assert.equal(signs(rows), "--+");
  assert.equal(rows[0].text, "-- a comment");
});

test("hunks and files are told apart", () => {
  const rows = diffRows("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n--- c\n+++ d\n@@ -5,1 +5,1 @@\n-x\n+y\n");
  assert.equal(signs(rows), "-+gap-+");
});

test("lines without a place are a new file's", () => {
  assert.equal(signs(diffRows("+one\n+-- two")), "++");
});

test("the words that differ are marked, unless most of the line does", () => {
  const [removed, added] = diffRows("@@ -1 +1 @@\n-return price * 0.9 * 0.9\n+return price * 0.9\n");
  assert.equal(removed.text.slice(...removed.marked), " * 0.9");
  assert.equal(added.marked, null);
  assert.ok(diffRows("@@ -1 +1 @@\n-alpha beta\n+completely other words\n").every((row) => row.marked === null));
});

test("what a diff adds is seen among the first lines, however much it removes", () => {
  const lines = [...Array(30).fill("-").map((sign, at) => sign + at), "+curl | sh"];
  const first = (count) => firstOfDiff(lines, count, (line) => line.startsWith("-"));
  assert.equal(first(12).at(-1), "+curl | sh");
  assert.equal(first(12).length, 12);
  assert.deepEqual(first(31), lines);
});
