// What an agent says and does, as in the terminal chat: Markdown, diffs with line numbers, output, todo lists and images.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Fields } from "./api";
import { diffRows, firstOfDiff, type DiffRow } from "./diff";
import { isFields, todosOf, type Todo } from "./results";
import { visible } from "./ui";

type Formats = typeof import("./markdown");
let formats: Formats | null = null;

/** Loaded once; until then text is shown as it is. A page that will show text can begin with it. */
export function useFormats(): Formats | null {
  const [, loaded] = useState(0);
  useEffect(() => {
    if (!formats) void import("./markdown").then((found) => { formats = found; loaded(1); }, () => undefined);
  }, []);
  return formats;
}

export function Markdown({ text }: { text: string }) {
  const ready = useFormats();
  const html = useMemo(() => ready?.toHtml(visible(text)), [ready, text]);
  return html === undefined ? <div class="words">{visible(text)}</div> : <div class="markdown" dangerouslySetInnerHTML={{ __html: html }} />;
}

const FEW_ROWS = 40;
const FEW_LINES = 12;
const FEW_MORE = 3; // so few are shown at once: a button takes as much room

export function Diff({ diff, path }: { diff: string; path: string }) {
  const ready = useFormats();
  const rows = useMemo(() => diffRows(visible(diff)), [diff]);
  return (
    <Folded count={rows.length} few={FEW_ROWS} unit="lines">{(shown) => (
      <pre class="diff" tabIndex={0} aria-label={`Changes in ${path || "the file"}`}>
        {firstOfDiff(rows, shown, (row) => row.sign === "-").map((row) => <Row row={row} html={ready && ready.codeHtml(row.text, languageOf(path), row.marked)} />)}
      </pre>
    )}</Folded>
  );
}

function Row({ row, html }: { row: DiffRow; html: string | null }) {
  if (row.sign === "gap") return <span class="gap">⋯{"\n"}</span>;
  const kind = row.sign === "+" ? "plus" : row.sign === "-" ? "minus" : "same";
  const [start, end] = row.marked ?? [0, 0];
  return (
    <span class={kind}><span class="number">{String(row.number).padStart(4)} </span><span class="sign">{row.sign} </span>
      {html !== null ? <span dangerouslySetInnerHTML={{ __html: html }} />
        : row.marked ? <>{row.text.slice(0, start)}<b class="word">{row.text.slice(start, end)}</b>{row.text.slice(end)}</> : row.text}
      {"\n"}</span>
  );
}

function languageOf(path: string): string {
  const name = path.split("/").at(-1) ?? "";
  return /^(dockerfile|makefile)$/i.test(name) ? name.toLowerCase() : name.includes(".") ? name.split(".").at(-1)! : "";
}

/** The last lines of what a command printed; all of them on request. */
export function Output({ text }: { text: string }) {
  const lines = visible(text).replace(/\n+$/, "").split("\n");
  return (
    <Folded count={lines.length} few={FEW_LINES} unit="lines above" isAbove>{(shown) => (
      <pre class="output" tabIndex={0} aria-label="Output">{lines.slice(lines.length - shown).join("\n")}</pre>
    )}</Folded>
  );
}

function Folded({ count, few, unit, isAbove, children }: {
  count: number; few: number; unit: string; isAbove?: boolean; children: (shown: number) => ComponentChildren;
}) {
  const [all, setAll] = useState(false);
  const isCut = !all && count > few + FEW_MORE;
  const more = isCut && <button class="plain more" onClick={() => setAll(true)}>Show {(count - few).toLocaleString()} more {unit}</button>;
  return <>{isAbove && more}{children(isCut ? few : count)}{!isAbove && more}</>;
}

const MARKS: Record<string, [string, string]> = {
  pending: ["☐", "to do"], in_progress: ["▶", "in progress"], completed: ["☑", "done"], cancelled: ["☒", "cancelled"],
};

export function Todos({ items }: { items: Todo[] }) {
  return (
    <ul class="todos">{items.map(({ content, status }) => {
      const [mark, word] = MARKS[status] ?? MARKS.pending;
      return <li class={status}><span role="img" aria-label={word}>{mark}</span> {visible(content)}</li>;
    })}</ul>
  );
}

export function Picture({ url }: { url: string }) {
  // Only what is in the message itself: fetching a picture would tell its server about this conversation.
  return /^data:image\/(png|jpeg|gif|webp);base64,/.test(url)
    ? <img class="picture" src={url} alt="Image in the conversation" /> : <p><small>image: {visible(url.slice(0, 200))}</small></p>;
}

/** What a result shows of itself depends on what it holds, not on which tool returned it. Null: nothing special. */
export function ResultView({ result: whole, args }: { result: Fields; args: Fields }) {
  const result = isFields(whole.partial) ? whole.partial : whole; // of a call that was stopped
  const path = typeof args.path === "string" ? args.path : "";
  if (typeof result.diff === "string" && result.diff) return <Diff diff={result.diff} path={path} />;
  if (result.created === true && typeof args.content === "string") {
    return <Diff diff={args.content.replace(/\n$/, "").split("\n").map((line) => `+${line}`).join("\n")} path={path} />;
  }
  if (typeof result.output === "string") return result.output.trim() ? <Output text={result.output} /> : null;
  // All that there is, as of most tools of MCP servers.
  if (typeof result.content === "string" && Object.keys(result).length === 1) return <Output text={result.content} />;
  const todos = todosOf(result);
  if (todos) return <Todos items={todos} />;
  if (Array.isArray(result.results)) {
    const children = result.results.filter((each): each is Fields => isFields(each) && "summary" in each);
    return children.length ? <ul class="todos">{children.map((each) => <li>{visible(`${String(each.status ?? "")}: ${String(each.summary)}`)}
      {typeof each.session_id === "string" && <> <a href={`#/sessions/${encodeURIComponent(each.session_id)}`}>Open</a></>}</li>)}</ul> : null;
  }
  return null;
}
