// What the results of calls hold.
import type { Fields, Json } from "./api";

export type Todo = { content: string; status: string };

export function todosOf(result: Fields | null): Todo[] | null {
  if (!result || !Array.isArray(result.todos)) return null;
  return result.todos.filter(isFields).map((each) => ({ content: String(each.content ?? ""), status: String(each.status ?? "pending") }));
}

export function isFields(value: Json): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const MAX_LINES = 12;

/** The last lines of what a running call has told so far. */
export function withProgress(before: string | undefined, message: string): string {
  return [...(before ? before.split("\n") : []), ...message.replace(/\n$/, "").split("\n")].slice(-MAX_LINES).join("\n");
}

/** JSON text that holds an object, else null. */
export function fieldsOf(text: string): Fields | null {
  try {
    const read = JSON.parse(text) as Json;
    return isFields(read) ? read : null;
  } catch {
    return null;
  }
}
