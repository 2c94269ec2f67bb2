// The state of the server, kept up to date by its events: calls and open questions.
import { useLayoutEffect, useState } from "preact/hooks";
import { get, streamEvents, type Fields } from "./api";
import { withProgress } from "./results";
import type { Call, Grant, Question, Session } from "./types";

const MAX_CALLS = 10_000;
const DRAW_MS = 100;
export const RETRY_MS = 2_000;
const MAX_CLOSED = 20;
const AWAKE_MS = 5_000;

class Watch {
  calls = new Map<Call["call"], Call>();
  waiting: Question[] = [];
  over: Question[] = [];
  grants: Grant[] = [];
  always: string[] = [];
  /** The parent of each session that was seen in a call; null for one that a user started. */
  private parents = new Map<string, string | null>();
  /** The latest progress of each running call of an agent, by session and the model's id of the call. */
  private progressOfCalls = new Map<string, string>();
  /** How often something happened in each session. */
  changes = new Map<string, number>();
  isConnected = false;
  private connections = 0;
  /** Called when there is a connection again: what was fetched before may be old. */
  readonly onReconnect = new Set<() => void>();
  onAsked: (question: Question) => void = () => {};
  private listeners = new Set<() => void>();
  private source: AbortController | null = null;
  private timer = 0;
  private edits = 0;
  /** Events since the full list was requested: they are newer than its answer. */
  private since: Map<Call["call"], Call> | null = null;
  version = 0;

  start(): void {
    this.stop();
    const source = (this.source = new AbortController());
    void this.follow(source).catch(() => undefined).then(() => {
      if (this.source !== source) return;
      this.isConnected = false;
      this.draw(0);
      this.later(source, () => this.start());
    });
  }

  /** Connect again, unless nobody is logged in. */
  restart(): void {
    if (this.source) this.start();
  }

  /** Read the events until the connection ends. */
  private async follow(source: AbortController): Promise<void> {
    for await (const [kind, data] of streamEvents("/v1/events", undefined, source.signal)) this.heard(kind, data);
  }

  private heard(kind: string, data: Fields): void {
    switch (kind) {
      case "hello":
        this.isConnected = true;
        if (this.connections++) for (const each of [...this.onReconnect]) each();
        return void this.refresh();
      case "missed": return void this.refresh();
      case "call.started": case "call.ended": return this.note(data as unknown as Call);
      case "call.progress": return this.progress(data as unknown as { tool: string; task: string; message: string });
      case "agent.ToolProgress": return this.agentProgress(data as unknown as { session: string; call_id: string; message: string });
      case "session.changed": case "turn.ended": case "agent.MessageEnded": case "agent.ToolStarted": case "agent.ToolEnded":
        return this.changed(String(data.session));
      case "approval.asked": return this.asked(data as unknown as Question);
      case "approval.over": return this.closed(data as unknown as Question);
      case "grants.changed": return void this.refreshApprovals();
    }
  }

  stop(): void {
    this.source?.abort();
    this.source = null;
    this.isConnected = false;
  }

  async refreshApprovals(): Promise<void> {
    const { source, edits } = this;
    try {
      const found = await get<{ waiting: Question[]; grants: Grant[]; always: string[] }>("/v1/approvals");
      // An event that overtook the answer is newer.
      if (edits !== this.edits) return this.refreshApprovals();
      Object.assign(this, found);
    } catch {
      this.later(source, () => void this.refreshApprovals());
    }
    this.draw(0);
  }

  closed(question: Question): void {
    this.edits++;
    this.waiting = this.waiting.filter((each) => each.id !== question.id);
    this.over = [question, ...this.over.filter((each) => each.id !== question.id)].slice(0, MAX_CLOSED);
    void this.refreshApprovals();
    this.draw(0);
  }

  private changed(session: string): void {
    this.changes.set(session, (this.changes.get(session) ?? 0) + 1);
    this.draw(DRAW_MS);
  }

  /** Whether a session is another one or was delegated by it. */
  isBelow(session: string, other: string): boolean {
    for (let at: string | null | undefined = session, steps = 0; at && steps < 8; steps++) {
      if (at === other) return true;
      at = this.parents.get(at);
    }
    return false;
  }

  /** The child agents of a session that were seen at work. */
  childrenOf(session: string): string[] {
    return [...this.parents].filter(([, parent]) => parent === session).map(([child]) => child);
  }

  /** How deep a call is below the session that a user started. */
  depth(call: Call): number {
    let depth = 0;
    for (let at = this.parents.get(call.session ?? ""); at && depth < 8; depth++) at = this.parents.get(at);
    return depth;
  }

  /** Whether it waits for somebody to answer a question. */
  isAsking(call: Call): boolean {
    return !call.status && this.waiting.some((each) => each.tool === call.tool && each.task === call.task
      && each.session === (call.session ?? null));
  }

  listen(notify: () => void): () => void {
    this.listeners.add(notify);
    return () => this.listeners.delete(notify);
  }

  private async refresh(): Promise<void> {
    const since = new Map<Call["call"], Call>();
    this.since = since;
    const { source } = this;
    try {
      const found = await get<{ running: Call[]; ended: Call[] }>("/v1/calls?limit=2000");
      if (since !== this.since) return;
      const all = [...found.ended, ...found.running].sort((a, b) => (a.started ?? 0) - (b.started ?? 0));
      this.calls = new Map(all.map((call) => [call.call, { ...call, progress: this.progressOf(call.session ?? "", call.tool_call_id ?? "") }]));
      for (const [number, call] of since) this.calls.set(number, { ...this.calls.get(number), ...call });
      this.since = null;
      for (const { session } of this.calls.values()) if (session && !this.parents.has(session)) void this.loadParents(session);
    } catch {
      this.later(source, () => void this.refresh());
    }
    await this.refreshApprovals();
  }

  /** Retry after a while, if the connection is still the same: a new one refreshes by itself. */
  private later(source: AbortController | null, act: () => void): void {
    setTimeout(() => { if (source && this.source === source) act(); }, RETRY_MS);
  }

  private note(call: Call): void {
    if (call.status) this.progressOfCalls.delete(`${call.session} ${call.tool_call_id}`);
    for (const calls of [this.calls, this.since]) calls?.set(call.call, { ...calls.get(call.call), ...call });
    if (this.calls.size > MAX_CALLS) this.calls.delete(this.calls.keys().next().value!);
    if (call.session && !this.parents.has(call.session)) void this.loadParents(call.session);
    this.draw(DRAW_MS);
  }

  private async loadParents(wanted: string): Promise<void> {
    this.parents.set(wanted, null);
    const found = await get<{ sessions: Session[] }>("/v1/sessions?kind=child&limit=1000").catch(() => ({ sessions: [] }));
    for (const session of found.sessions) this.parents.set(session.id, session.parent);
    this.draw(DRAW_MS);
  }

  private progress(update: { tool: string; task: string; message: string }): void {
    for (const call of [...this.calls.values()].reverse()) {
      if (call.status || call.tool !== update.tool || call.task !== update.task) continue;
      this.calls.set(call.call, { ...call, progress: withProgress(call.progress, update.message) });
      break;
    }
    this.draw(DRAW_MS);
  }

  private agentProgress({ session, call_id, message }: { session: string; call_id: string; message: string }): void {
    const progress = withProgress(this.progressOf(session, call_id), message);
    this.progressOfCalls.set(`${session} ${call_id}`, progress);
    const call = [...this.calls.values()].findLast((each) => !each.status && each.session === session && each.tool_call_id === call_id);
    if (call) this.calls.set(call.call, { ...call, progress });
    this.draw(DRAW_MS);
  }

  progressOf(session: string, call: string): string {
    return this.progressOfCalls.get(`${session} ${call}`) ?? "";
  }

  private asked(question: Question): void {
    if (this.waiting.some((each) => each.id === question.id)) return;
    this.edits++;
    this.waiting = [...this.waiting, question];
    if (question.session && !this.parents.has(question.session)) void this.loadParents(question.session);
    this.onAsked(question);
    this.draw(0);
  }

  /** Notify the components soon: many events make one render. */
  private draw(soon: number): void {
    if (soon && this.timer) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.version++;
      for (const notify of this.listeners) notify();
    }, soon) as unknown as number;
  }
}

export const watch = new Watch();

let awakeAt = Date.now();

/** After sleep the connection may be dead without an end: open another one. */
function stayAwake(): void {
  if (document.hidden) return;
  const isBack = Date.now() - awakeAt > 4 * AWAKE_MS;
  awakeAt = Date.now();
  if (isBack) watch.restart();
}
setInterval(stayAwake, AWAKE_MS);
document.addEventListener("visibilitychange", stayAwake);

/** Render again at every change. */
export function useWatch(): Watch {
  const [, again] = useState(0);
  useLayoutEffect(() => watch.listen(() => again((count) => count + 1)), []);
  return watch;
}
