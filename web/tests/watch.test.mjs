import assert from "node:assert/strict";
import { test } from "node:test";

// What a page has and Node has not. Nothing here may keep the process alive.
const every = setInterval;
globalThis.setInterval = (...given) => every(...given).unref();
globalThis.document = { hidden: false, addEventListener: () => {} };
globalThis.localStorage = { getItem: () => "key" };
const { watch } = await import("../src/watch.ts");

const CALL = { tool: "terminal", task: "s", session: "s", started: 1 };
const frame = (kind, data) => `event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`;

/** Send these events, and wait until the page has drawn the last of them. */
async function heard(running, ...events) {
  const text = [["hello", {}], ...events].map((each) => frame(...each)).join("");
  const answers = { "/v1/events": () => new Response(text), "/v1/calls?limit=2000": () => Response.json({ running, ended: [] }) };
  globalThis.fetch = async (path) => (answers[path] ?? (() => Response.json({ waiting: [], grants: [], always: [], sessions: [] })))();
  const drawn = new Promise((done) => { const stop = watch.listen(() => { if (watch.calls.size === running.length) { stop(); done(); } }); });
  watch.start();
  await drawn;
  watch.stop();
}

test("the progress of an agent's call goes to that call, also if another of the same tool runs beside it", async () => {
  const running = ["a", "b"].map((id, index) => ({ ...CALL, call: index, tool_call_id: id }));
  const told = ["agent.ToolProgress", { session: "s", call_id: "a", tool: "terminal", message: "step 3" }];
  await heard(running, ...running.map((each) => ["call.started", each]), told);
  assert.deepEqual([watch.calls.get(0).progress, watch.calls.get(1).progress || ""], ["step 3", ""]);
  assert.equal(watch.progressOf("s", "a"), "step 3");
});

test("a call that has ended has no progress any more", async () => {
  const ended = { ...CALL, call: 0, tool_call_id: "a", status: "ok" };
  await heard([ended], ["agent.ToolProgress", { session: "s", call_id: "a", message: "step 3" }], ["call.ended", ended]);
  assert.equal(watch.progressOf("s", "a"), "");
});
