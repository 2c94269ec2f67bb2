// How the console asks the server. A browser is known by its cookie and by a key that only this page can read: browsers
// send a cookie to all ports of a host, but keep the storage of each port apart.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Fields = { [name: string]: Json };

export class ApiError extends Error {
  constructor(readonly status: number, readonly kind: string, message: string) {
    super(message);
  }
}

const KEY = "handrail-page-key";

/** Log this browser in, with a token or with the code of a link. */
export async function logIn(shown: { token: string } | { code: string }): Promise<void> {
  const entered = await ask<{ page_key: string }>("POST", "/v1/login", shown);
  localStorage.setItem(KEY, entered.page_key);
}

export async function logOut(): Promise<void> {
  await ask("POST", "/v1/logout").catch(() => undefined);
  localStorage.removeItem(KEY);
}

let onSignedOut: () => void = () => {};

/** Called when the server does not know this browser (any more). */
export function whenSignedOut(tell: () => void): void {
  onSignedOut = tell;
}

export function get<T>(path: string): Promise<T> {
  return ask<T>("GET", path);
}

export async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await request(method, path, body);
  return (await response.json()) as T;
}

// The server sends something every 15 s. A connection that is silent for longer is dead, even if nothing has ended it: the
// phone was asleep, or the network is another one. Ticks are counted, not seconds, because a sleeping page has none.
const TICK_MS = 5_000;
const MAX_SILENT_TICKS = 5;
// To ask again takes another connection: those that the browser kept over a sleep may all be dead.
const MAX_GET_MS = 20_000;

/** The events of an answer that comes bit by bit. Without a body they are fetched, with one they are the answer to it.
 *  Throws if the connection is lost. */
export async function* streamEvents(path: string, body?: unknown, signal?: AbortSignal): AsyncGenerator<[string, Fields]> {
  const lost = new AbortController();
  let silent = body === undefined ? 0 : -Infinity; // to begin a turn may take long
  const timer = setInterval(() => { if (++silent > MAX_SILENT_TICKS) lost.abort(new ApiError(0, "offline", "the connection was lost")); }, TICK_MS);
  let reader: ReadableStreamDefaultReader<string> | null = null;
  let rest = "";
  try {
    const response = await request(body === undefined ? "GET" : "POST", path, body, AbortSignal.any([lost.signal, ...(signal ? [signal] : [])]));
    silent = 0;
    reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      silent = 0;
      if (done) return;
      const frames = (rest + value).split("\n\n");
      rest = frames.pop()!;
      for (const frame of frames) {
        const event = parsed(frame);
        if (event) yield event;
      }
    }
  } finally {
    clearInterval(timer);
    reader?.cancel().catch(() => undefined);
  }
}

function parsed(frame: string): [string, Fields] | null {
  let kind = "";
  for (const line of frame.split("\n")) {
    if (line.startsWith("event: ")) kind = line.slice(7);
    else if (line.startsWith("data: ")) return [kind, JSON.parse(line.slice(6)) as Fields];
  }
  return null;
}

async function request(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {};
  const key = localStorage.getItem(KEY);
  if (key) headers["x-handrail"] = key;
  if (body !== undefined) headers["content-type"] = "application/json";
  const sent = { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: signal ?? (method === "GET" ? AbortSignal.timeout(MAX_GET_MS) : undefined) };
  let response: Response;
  try {
    response = await fetch(path, sent);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "offline", "the server does not answer; is `handrail serve` running?");
  }
  if (response.ok) return response;
  const problem = (await response.json().catch(() => ({}))) as { error?: string; error_type?: string };
  if (response.status === 401 && path !== "/v1/login") onSignedOut();
  throw new ApiError(response.status, problem.error_type ?? "", problem.error ?? `the server answered ${response.status}`);
}
