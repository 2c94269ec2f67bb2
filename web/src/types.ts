// What the server tells, as far as the console shows it.
import type { Fields } from "./api";

export type Decision = "once" | "try" | "task" | "session" | "always" | "deny" | "edit";
export type Piece = { text: string; marked: boolean; ours: boolean };

export type Line = { kind: "plain" | "header" | "place" | "added" | "removed"; pieces: Piece[] };

export type Question = {
  id: string; state: string; tool: string; kind: string; rule_key: string; asker: string; reason: string; pieces: Piece[];
  preview: { lines: Line[]; is_excerpt: boolean } | null;
  /** The text, where you may change it before it runs. */
  editable: string | null;
  cwd: string; environment: string; session: string | null; task: string | null;
  concerns: { rule: string; why: string; covers: string }[];
  offers: { decision: Decision; covers: string }[];
  asked_at: number; expires_at: number; is_waiting: boolean;
  decision: Decision | null; by: string | null; why: string | null; answered_at: number | null;
};

export type Call = {
  /** A number for calls of this server, a text for those of other processes. */
  call: number | string; tool: string; arguments?: Fields; task: string | null; session?: string | null; tool_call_id?: string; started?: number;
  status?: string; error_type?: string | null; seconds?: number; waited?: number; result?: string; progress?: string;
};

export type Grant = {
  id: string; scope: string; key: string; by: string; granted_at: number; expires_at: number | null; uses_left: number | null;
};
export type Process = {
  id: string; command: string; task: string | null; environment: string; has_pty: boolean; rows: number; columns: number;
  started_at: number; state: string; exit_code: number | null; ended_at: number | null; reason: string;
};
export type Tool = {
  name: string; toolset: string; description: string; parameters: Schema; available: boolean;
  reason: string; fix: string; offered: boolean;
};
export type Schema = {
  type?: string | string[]; description?: string; enum?: (string | number)[]; default?: unknown; minimum?: number;
  maximum?: number; properties?: Record<string, Schema>; required?: string[]; items?: Schema;
};
export type Session = {
  id: string; created: number; updated: number; title: string; platform: string; model: string; cwd: string;
  parent: string | null; kind: string; input_tokens: number; output_tokens: number; cost: number | null;
  is_running?: boolean;
};
export type Asked = { id: string; function: { name: string; arguments: string } };
export type Message = { id: number; at: number; role: string; content?: string | Fields[] | null; tool_calls?: Asked[]; tool_call_id?: string };
export type Ran = { tool: string; call_id: string; at: number; seconds: number; error_type: string; waited?: number };
export type Decided = { text: string; decision: string; by: string; why: string };
export type Whole = {
  session: Session; messages: Message[]; calls: Ran[]; children: Session[]; decisions: Decided[]; is_running: boolean; mode: string;
  /** The message that the agent is writing now. */
  written: string;
};
export type Hit = { session: string; title: string; message_id: number; at: number; role: string; excerpt: string };
export type Batch = {
  id: string; folder: string; engine: string; state: string; problem: string; questions: number;
  waiting: number | null; running: number | null; done: number | null; failed: number | null; tokens: number | null;
  per_second: number | null; cost: number | null; eta: number | null; mean_reward: number | null;
};
export type Failure = { id: string; attempt: number; worker: string; error: string };
export type Login = {
  id: string; name: string; role: Me["role"]; created: number; used: number; address: string; agent: string; is_this_one: boolean;
};
export type Me = { name: string; role: "watch" | "approve" | "operate" };
/** `chosen` is what the address names on the page: `#/sessions/ID`. */
export type PageProps = { me: Me; chosen: string };
