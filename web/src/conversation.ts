// A conversation as a list of entries: from the stored messages, and from the events of a turn that runs now.
import type { Fields } from "./api";
import type { Asked, Message, Ran } from "./types";
import { fieldsOf, todosOf, withProgress, type Todo } from "./results";

export type ToolEntry = {
  kind: "tool"; id: string; callId: string; tool: string; args: Fields; at?: number; seconds?: number; waited?: number; errorType?: string; result?: string; progress?: string;
  pictures: string[];
};
export type TextEntry = { kind: "user" | "assistant" | "system" | "notice"; id: string; text: string; at?: number; pictures: string[] };
export type Entry = ToolEntry | TextEntry;

// How the agent marks what comes while it works.
const NOTE = "[Notification, not from the user] ";
const SAID = "[The user says while you work] ";

function withoutMark(text: string): string {
  const mark = [NOTE, SAID].find((each) => text.startsWith(each)) ?? "";
  return text.slice(mark.length);
}

export function storedEntries(messages: Message[], calls: Ran[]): Entry[] {
  const ran = byId(calls, (call) => call.call_id);
  const results = byId(messages.filter((each) => each.role === "tool"), (each) => each.tool_call_id ?? "");
  const entries: Entry[] = [];
  for (const message of messages) {
    if (message.role === "tool") continue;
    const [whole, pictures] = [textOf(message), picturesOf(message)];
    const text = message.role === "user" ? withoutMark(whole) : whole;
    const kind = message.role === "user" && whole.startsWith(NOTE) ? "notice" : message.role === "user" || message.role === "system" ? message.role : "assistant";
    if (text || pictures.length) entries.push({ kind, id: `m${message.id}`, text, at: message.at, pictures });
    for (const call of message.tool_calls ?? []) {
      entries.push({ ...stored(call, message.at, ran.get(call.id)?.shift(), results.get(call.id)?.shift()), id: `m${message.id} ${call.id}` });
    }
  }
  return entries;
}

/** In their order: some models use an id more than once. */
function byId<T>(items: T[], idOf: (item: T) => string): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const item of items) found.set(idOf(item), [...(found.get(idOf(item)) ?? []), item]);
  return found;
}

/** A call that still runs began when it was asked for. */
function stored(call: Asked, asked: number | undefined, ran?: Ran, result?: Message): ToolEntry {
  return {
    kind: "tool", id: call.id, callId: call.id, tool: call.function.name, args: fieldsOf(call.function.arguments) ?? {}, at: ran?.at ?? (result ? undefined : asked), seconds: ran?.seconds, waited: ran?.waited,
    errorType: ran?.error_type, result: result && textOf(result), pictures: result ? picturesOf(result) : [],
  };
}

/** The entries after one more event of a running turn. */
export function withEvent(entries: Entry[], kind: string, data: Fields): Entry[] {
  const last = entries.at(-1);
  switch (kind) {
    case "TextDelta":
      if (last?.kind === "assistant") return [...entries.slice(0, -1), { ...last, text: last.text + String(data.text ?? "") }];
      return [...entries, { kind: "assistant", id: `live${entries.length}`, text: String(data.text ?? ""), pictures: [] }];
    case "Notice":
      return [...entries, { kind: "notice", id: `live${entries.length}`, text: String(data.text ?? ""), pictures: [] }];
    case "ToolStarted":
      return [...entries, {
        kind: "tool", id: String(data.call_id), callId: String(data.call_id), tool: String(data.tool), args: (data.arguments ?? {}) as Fields, at: Date.now() / 1000, pictures: [],
      }];
    case "ToolProgress":
      return changed(entries, data, (entry) => ({ ...entry, progress: withProgress(entry.progress, String(data.message ?? "")) }));
    case "ToolEnded":
      return changed(entries, data, (entry) => ({
        ...entry, seconds: Number(data.seconds), waited: Number(data.waited ?? 0), errorType: String(data.error_type ?? ""), result: String(data.result ?? ""),
      }));
  }
  return entries;
}

function changed(entries: Entry[], data: Fields, change: (entry: ToolEntry) => ToolEntry): Entry[] {
  const at = entries.findLastIndex((each) => each.kind === "tool" && each.id === String(data.call_id));
  return entries.map((each, index) => (index === at ? change(each as ToolEntry) : each));
}

/** The latest todo list that is not done. */
export function openTodos(entries: Entry[]): Todo[] | null {
  for (const entry of [...entries].reverse()) {
    const todos = entry.kind === "tool" && entry.result ? todosOf(fieldsOf(entry.result)) : null;
    if (todos) return todos.some(({ status }) => status === "pending" || status === "in_progress") ? todos : null;
  }
  return null;
}

const MAIN = ["command", "path", "file_path", "pattern", "query", "url", "goal", "code", "name", "action"];

/** Why a call failed, for a person: what follows the first sentence of a refusal is advice for the model, and the question gave the reasons.
 *  `who` says in words who denied it. */
export function failureOf(error: string, errorType: string, who: (by: string) => string): string {
  if (errorType !== "denied") return error;
  const [, by, why] = /^Not run: denied by ((?:\w+:)?[^:]*?)(: .*?)?\. It needs approval: /s.exec(error) ?? [];
  return by === undefined ? error.split(". ")[0] : `Denied by ${who(by)}${why ?? ""}`;
}

/** What a person changed a call to before allowing it. */
export function editedTo(result: Fields | null): string {
  const edit = result?.edited;
  if (!edit || typeof edit !== "object" || Array.isArray(edit) || !("edited_by" in edit)) return "";
  return Object.entries(edit).filter(([name]) => name !== "edited_by").map(([, value]) => String(value)).join("\n");
}

/** The argument that says most about a call. */
export function mainArgument(args: Fields): string {
  const name = MAIN.find((each) => typeof args[each] === "string") ?? Object.keys(args).find((each) => typeof args[each] === "string");
  return name ? String(args[name]).trim().split("\n")[0].slice(0, 300) : "";
}

export function textOf(message: Message): string {
  if (typeof message.content === "string") return message.content;
  return (message.content ?? []).filter((part) => part.type !== "image_url")
    .map((part) => (typeof part.text === "string" ? part.text : `[${String(part.type)}]`)).join("\n");
}

function picturesOf(message: Message): string[] {
  if (!Array.isArray(message.content)) return [];
  return message.content.filter((part) => part.type === "image_url").map((part) => String((part.image_url as Fields | undefined)?.url ?? ""));
}
