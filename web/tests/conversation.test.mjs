import assert from "node:assert/strict";
import { test } from "node:test";
import { editedTo, failureOf, mainArgument, openTodos, storedEntries, withEvent } from "../src/conversation.ts";

const asked = (id, name, args) => ({ id, function: { name, arguments: JSON.stringify(args) } });

test("results belong to their calls, also when a model uses an id twice", () => {
  const messages = ["one", "two"].flatMap((word, index) => [
    { id: 2 * index, at: 0, role: "assistant", tool_calls: [asked("same", "terminal", { command: word })] },
    { id: 2 * index + 1, at: 0, role: "tool", tool_call_id: "same", content: `result ${word}` },
  ]);
  assert.deepEqual(storedEntries(messages, []).map((each) => [each.args.command, each.result]), [["one", "result one"], ["two", "result two"]]);
});

test("the events of a turn become entries", () => {
  const events = [
    ["TextDelta", { text: "I " }], ["TextDelta", { text: "look." }], ["ToolStarted", { call_id: "c", tool: "terminal", arguments: { command: "ls" } }],
    ["ToolProgress", { call_id: "c", message: "half" }], ["ToolEnded", { call_id: "c", result: "all", error_type: "", seconds: 2 }],
    ["TextDelta", { text: "Done." }], ["Unknown", {}],
  ];
  const entries = events.reduce((before, [kind, data]) => withEvent(before, kind, data), []);
  assert.deepEqual(entries.map((each) => each.text ?? each.result), ["I look.", "all", "Done."]);
});

test("a call without a result began when it was asked for, and one with a result did not", () => {
  const messages = [
    { id: 1, at: 5, role: "assistant", tool_calls: [asked("a", "terminal", {}), asked("b", "terminal", {})] },
    { id: 2, at: 6, role: "tool", tool_call_id: "a", content: "done" },
  ];
  assert.deepEqual(storedEntries(messages, []).map((each) => [each.callId, each.at]), [["a", undefined], ["b", 5]]);
});

test("images are apart from the text", () => {
  const content = [{ type: "text", text: "see" }, { type: "image_url", image_url: { url: "data:image/png;base64,AA" } }];
  const [entry] = storedEntries([{ id: 1, at: 0, role: "user", content }], []);
  assert.deepEqual([entry.text, entry.pictures], ["see", ["data:image/png;base64,AA"]]);
});

test("a todo list is in view until all of it is done", () => {
  const list = (...states) => ({ kind: "tool", result: JSON.stringify({ todos: states.map((status) => ({ content: "x", status })) }) });
  assert.equal(openTodos([list("completed", "pending")]).length, 2);
  assert.equal(openTodos([list("pending"), list("completed")]), null);
  assert.equal(openTodos([{ kind: "tool", result: "no JSON" }]), null);
});

test("the argument that says most stands for a call", () => {
  assert.equal(mainArgument({ timeout: 3, note: "n", command: "make\nmore" }), "make");
  assert.equal(mainArgument({ count: 1 }), "");
});

test("a refusal is short, and what a person changed a call to is told", () => {
  const who = (by) => `<${by}>`;
  const denied = "Not run: denied by web:link by op: use git clean. Or not. It needs approval: deletes a tree (fs.rm). Do not try another way.";
  assert.equal(failureOf(denied, "denied", who), "Denied by <web:link by op>: use git clean. Or not");
  assert.equal(failureOf("Not run: denied by the user. It needs approval: x (y). Stop.", "denied", who), "Denied by <the user>");
  assert.equal(failureOf("Not run: formats a disk (fs.mkfs). Nobody can allow it.", "denied", who), "Not run: formats a disk (fs.mkfs)");
  assert.equal(failureOf("No file. Look again.", "not_found", who), "No file. Look again.");
  assert.equal(editedTo({ edited: { edited_by: "web:op", command: "rm -rf b" } }), "rm -rf b");
  assert.equal(editedTo({ edited: ["a.py"] }), "");
});
