// Components that the pages share. Everything from outside is treated as text, never as markup.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "./api";
import { firstOfDiff } from "./diff";
import type { Line, Piece, Question } from "./types";
import { RETRY_MS, watch } from "./watch";

/** A command with its dangerous parts marked, and invisible characters written out. */
export function Command({ pieces }: { pieces: Piece[] }) {
  return (
    <pre class="command" tabIndex={0} aria-label="Command text">
      {pieces.map((piece) =>
        piece.ours ? <b class={piece.marked ? "ours marked" : "ours"}>{piece.text}</b>
        : piece.marked ? <mark>{piece.text}</mark>
        : piece.text)}
    </pre>
  );
}

const PREVIEW_LINES = 16;

/** What would be written: the first lines, and the rest on request. `all` is kept by the caller, who has a key for it. */
export function Preview({ preview, label, all, onAll }: { preview: Question["preview"]; label: string; all: boolean; onAll: () => void }) {
  if (!preview) return null;
  const { lines } = preview;
  const shown = all ? lines : preview.is_excerpt ? [] : firstOfDiff(lines, PREVIEW_LINES, (line) => line.kind === "removed");
  const left = lines.length - shown.length;
  return (
    <div class="preview">
      {shown.length > 0 && (
        <pre class="text" tabIndex={0} aria-label={label}>
          {shown.map((line) => <span class={line.kind}><LineText line={line} />{"\n"}</span>)}
        </pre>
      )}
      {left > 0 && <button class="plain" onClick={onAll}>
        {shown.length ? `Show ${left.toLocaleString()} more lines` : `Show all ${left.toLocaleString()} lines`} <kbd aria-hidden="true">v</kbd>
      </button>}
    </div>
  );
}

function LineText({ line }: { line: Line }) {
  return <>{line.pieces.map((piece) => piece.ours ? <b class="ours">{piece.text}</b> : piece.text)}</>;
}

export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return <div class="empty"><h2>{title}</h2>{children}</div>;
}

export function Trouble({ text }: { text: string }) {
  return text ? <p class="trouble" role="alert">{text}</p> : null;
}

export function Tag({ kind, children }: { kind?: string; children: ComponentChildren }) {
  return <span class={`tag ${kind ?? ""}`}>{children}</span>;
}

/** A list beside the details of the chosen entry; on a narrow screen one of them at a time. */
export function Split({ list, detail, onBack }: {
  list: ComponentChildren; detail: ComponentChildren | null; onBack: () => void;
}) {
  return (
    <div class={detail ? "split chosen" : "split"}>
      <div class="split-list">{list}</div>
      {detail && (
        <section class="split-detail" aria-label="Details">
          <button class="back" onClick={onBack}>← Back</button>
          {detail}
        </section>
      )}
    </div>
  );
}

/** Rows of one height, of which only the visible ones are rendered. Arrow keys, Page keys, Home and End move the selection.
 *  The scroll position is kept when rows are added above it; at the top the newest rows are shown. */
export function Rows<T>({ items, height, label, keyOf, chosen, onChoose, row }: {
  items: T[]; height: number; label: string; keyOf: (item: T) => string | number; chosen: string | number | null;
  onChoose: (item: T) => void; row: (item: T) => ComponentChildren;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [seen, setSeen] = useState(600);
  useLayoutEffect(() => {
    const watched = new ResizeObserver(() => setSeen(box.current?.clientHeight ?? 600));
    watched.observe(box.current!);
    return () => watched.disconnect();
  }, []);
  const read = useRef<{ key: string | number; index: number } | null>(null);
  function remember() {
    const index = Math.floor(box.current!.scrollTop / height);
    read.current = index > 0 && items[index] ? { key: keyOf(items[index]), index } : null;
    setTop(box.current!.scrollTop);
  }
  useLayoutEffect(() => {
    const before = read.current;
    const index = before ? items.findIndex((item) => keyOf(item) === before.key) : -1;
    if (before && index >= 0 && index !== before.index) box.current!.scrollTop += (index - before.index) * height;
    remember();
  }, [items]);
  const at = items.findIndex((item) => keyOf(item) === chosen);
  // What the address names is in sight.
  useLayoutEffect(() => { if (at > 0) show(at); }, []);
  const first = Math.max(0, Math.floor(top / height) - 5);
  const shown = items.slice(first, Math.ceil((top + seen) / height) + 5);

  function move(event: KeyboardEvent) {
    const page = Math.max(1, Math.floor(seen / height) - 1);
    const steps: Record<string, number> = {
      ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: items.length - 1,
    };
    const wanted = steps[event.key];
    if (wanted === undefined || !items.length) return;
    event.preventDefault();
    const next = Math.min(items.length - 1, Math.max(0, wanted));
    onChoose(items[next]);
    show(next);
  }
  function show(index: number) {
    const rows = box.current!;
    if (index * height < rows.scrollTop) rows.scrollTop = index * height;
    else if ((index + 1) * height > rows.scrollTop + rows.clientHeight) rows.scrollTop = (index + 1) * height - rows.clientHeight;
  }

  return (
    <div class="rows" ref={box} role="listbox" tabIndex={0} aria-label={label} onKeyDown={move}
      aria-activedescendant={at >= first && at < first + shown.length ? `row-${chosen}` : undefined}
      onScroll={remember}>
      <div role="presentation" style={{ height: `${items.length * height}px`, position: "relative" }}>
        {shown.map((item, index) => (
          <div key={keyOf(item)} id={`row-${keyOf(item)}`} class="row" role="option"
            aria-selected={keyOf(item) === chosen} aria-posinset={first + index + 1} aria-setsize={items.length}
            style={{ height: `${height}px`, top: `${(first + index) * height}px` }} onClick={() => onChoose(item)}>
            {row(item)}
          </div>
        ))}
      </div>
    </div>
  );
}

/** The answer of a request; repeated by `again`, after a lost connection, and every `seconds` if given. */
export function useAnswer<T>(load: () => Promise<T>, inputs: unknown[], seconds = 0) {
  const [answer, setAnswer] = useState<T | null>(null);
  const [trouble, setTrouble] = useState("");
  const turn = useRef(0);
  const again = useCallback(() => {
    const mine = ++turn.current;
    load().then(
      (found) => { if (mine === turn.current) { setAnswer(found); setTrouble(""); } },
      (error: ApiError) => {
        if (mine !== turn.current) return;
        setTrouble(error.message);
        if (error.status === 0) setTimeout(() => { if (mine === turn.current) again(); }, RETRY_MS);
      },
    );
  }, inputs);
  useEffect(() => {
    again();
    const timer = seconds ? setInterval(again, seconds * 1000) : 0;
    watch.onReconnect.add(again);
    return () => { clearInterval(timer); watch.onReconnect.delete(again); turn.current++; };
  }, [again, seconds]);
  return { answer, trouble, again };
}

/** Whether a key belongs to a field, or to the browser. */
export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  return (event.target as HTMLElement).closest("input, textarea, select") !== null;
}

/** The current time, updated regularly, for countdowns. */
export function useNow(ms: number): number {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}

// Created once: that takes longer than rendering a row.
const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const DAY_AND_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });

export function clock(at: number): string {
  const then = new Date(at * 1000);
  return (new Date().toDateString() === then.toDateString() ? TIME : DAY_AND_TIME).format(then);
}

export function lasting(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

export function money(dollars: number): string {
  return `$${dollars.toFixed(dollars < 1 ? 4 : 2)}`;
}

/** How long a call took: the wait for an answer apart, and of a denied call, which never ran, only that. */
export function took(seconds: number, waited = 0, errorType: string | null = ""): string {
  if (waited && errorType === "denied") return `waited ${lasting(waited)}`;
  return waited >= 1 ? `ran ${lasting(Math.max(0, seconds - waited))}, waited ${lasting(waited)}` : lasting(seconds);
}

/** Who answered, in words: `web:NAME` is the console, NAME a token or the link that it made. */
export function answeredBy(by: string): string {
  return visible(by.replace(/^web:(?:link by )?(.*)$/, "$1 (web console)").replace(/^(cli|the user)$/, "you (terminal)"));
}

export function countdown(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
}

/** Text with invisible and formatting characters written out. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g,
    (hidden) => `\\u${hidden.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function pretty(value: unknown): string {
  return visible(written(value));
}

function written(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  try {
    const read = JSON.parse(value) as unknown;
    return typeof read === "object" && read ? JSON.stringify(read, null, 2) : value;
  } catch {
    return value;
  }
}

/** A result in readable form: output as it was printed, the rest as JSON. */
export function Text({ value, label }: { value: unknown; label: string }) {
  const text = visible(readable(value));
  const isDiff = /^(---|\+\+\+|@@) /m.test(text);
  return (
    <pre class="text" tabIndex={0} aria-label={label}>
      {isDiff ? text.split("\n").map((line) => <span class={diffClass(line)}>{line + "\n"}</span>) : text}
    </pre>
  );
}

function diffClass(line: string): string {
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@@") ? "place" : "";
}

function readable(value: unknown): string {
  let read = value;
  if (typeof value === "string") {
    try { read = JSON.parse(value); } catch { return value; }
  }
  if (typeof read !== "object" || !read || Array.isArray(read)) return written(value);
  const long = Object.entries(read as Record<string, unknown>).filter(([, each]) => typeof each === "string" && each.includes("\n"));
  if (!long.length) return written(read);
  const rest = Object.fromEntries(Object.entries(read).filter(([name]) => !long.some(([each]) => each === name)));
  const head = Object.keys(rest).length ? JSON.stringify(rest) + "\n" : "";
  return head + long.map(([name, each]) => `${name}:\n${each as string}`).join("\n");
}
