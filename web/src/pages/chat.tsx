// One conversation: read it, answer its questions where they arise, and go on with it.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, get, streamEvents } from "../api";
import { editedTo, failureOf, mainArgument, openTodos, storedEntries, withEvent, type Entry, type TextEntry, type ToolEntry } from "../conversation";
import { fieldsOf, type Todo } from "../results";
import { Markdown, Output, Picture, ResultView, Todos } from "../rich";
import type { Decided, Me, Session, Whole } from "../types";
import { answeredBy, clock, lasting, money, Tag, Text, took, Trouble, useAnswer, useNow, visible } from "../ui";
import { useWatch, watch } from "../watch";
import { Card } from "./approvals";

const STEP_MS = 900;
const POLL_SECONDS = 2;
const DRAW_MS = 60;
const NEAR_PX = 48;
const QUESTION_PX = 12;
const TOUCHED_MS = 1_000;
const INPUTS = ["wheel", "touchmove", "keydown", "pointerdown"];
const MAX_SHOWN = 150;
const PHONE_PX = 720; // as in style.css
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MAX_IMAGES = 10;
const MAX_IMAGE_BYTES = 5_000_000;
const MODES: Record<string, string> = {
  plan: "nothing that changes anything runs", ask: "it asks before edits and commands", auto: "it asks before anything destructive",
  yolo: "it never asks; blocked actions and your deny list still apply",
};

/** `id` is null for a conversation that has not begun. `onBegun` gets its id with the first message. */
export function Chat({ id, me, onBegun, onChanged }: {
  id: string | null; me: Me; onBegun: (id: string) => void; onChanged: () => void;
}) {
  const seen = useWatch();
  const [isRunning, setRunning] = useState(false);
  const { answer, trouble, again } = useAnswer<Whole | null>(
    () => (id ? get<Whole>(`/v1/sessions/${encodeURIComponent(id)}`) : Promise.resolve(null)), [id], isRunning ? POLL_SECONDS : 0);
  const turn = useTurn(id, onBegun, () => { again(); onChanged(); });
  useEffect(() => {
    if (isRunning && !answer?.is_running) onChanged();
    setRunning(answer?.is_running ?? false);
    if (!turn.isBusy) turn.settle();
  }, [answer]);
  const news = id ? seen.changes.get(id) : 0;
  useEffect(() => { if (news && !turn.isBusy) again(); }, [news]);
  const [step, setStep] = useReplay(answer?.messages.length ?? 0);
  const entries = useMemo(() => {
    const messages = (answer?.messages ?? []).filter((each) => turn.since === null || each.id <= turn.since);
    return storedEntries(step === null ? messages : messages.slice(0, step), answer?.calls ?? []);
  }, [answer, turn.since, step]);
  const written: Entry[] = !turn.entries.length && answer?.written ? [{ kind: "assistant", id: "written", text: answer.written, pictures: [] }] : [];
  const all = [...entries, ...turn.entries, ...written].map((each) => (each.kind === "tool" && each.result === undefined && !each.progress && id
    ? { ...each, progress: seen.progressOf(id, each.callId) } : each));
  const questions = id ? seen.waiting.filter((each) => each.session && seen.isBelow(each.session, id)) : [];
  const { box, isAway, toEnd } = useFollowing();
  const busy = turn.isBusy || isRunning;
  const lastStored = answer?.messages.at(-1)?.id ?? 0;
  const mayTalk = me.role === "operate";
  return (
    <div class="chat">
      {answer && <Head answer={answer} step={step} setStep={setStep} again={again} />}
      <div class="talk-box" ref={box} tabIndex={0} role="log" aria-label="Conversation">
        <div>
          <Trouble text={trouble} />
          {!id && !all.length && <div class="empty"><h2>New conversation</h2><p>The agent works in the folder of the server, with its tools.
            What needs your approval appears here.</p></div>}
          <Entries entries={all} isBusy={busy} asking={questions.filter((each) => each.session === id).map((each) => each.tool)} />
          {questions.map((question) => <Card key={question.id} question={question} within={id ?? ""} mayAnswer={me.role !== "watch"} onAnswered={() => { toEnd(); box.current!.focus(); }} />)}
          {busy && !questions.length && <p class="working" role="status">Working…</p>}
          {busy && id && seen.childrenOf(id).length > 0 && <p><small>Child agents: {seen.childrenOf(id).map((child) => <> <a href={`#/sessions/${child}`}>{visible(answer?.children.find((each) => each.id === child)?.title || child)}</a></>)}</small></p>}
          {answer && answer.decisions.length > 0 && !busy && <Decisions decisions={answer.decisions} />}
        </div>
      </div>
      <div class="end-line">{isAway && <button class="to-end" onClick={toEnd}>↓ Latest</button>}</div>
      <TodoStrip todos={openTodos(all)} />
      {mayTalk && (answer || !id || !trouble) && <Composer id={id} busy={busy} trouble={turn.trouble} draft={turn.draft} mode={answer?.mode ?? null}
        onMode={again} onSend={(text, mode, pictures) => { toEnd(); void (busy && id ? turn.steer(id, text, lastStored) : turn.send(text, lastStored, mode, pictures)); }} />}
    </div>
  );
}

/** Send messages, and receive the events of the turn, which continues when you leave this page. */
function useTurn(id: string | null, onBegun: (id: string) => void, onEnded: () => void) {
  const [entries, setEntries] = useState<Entry[]>([]);
  const [since, setSince] = useState<number | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState("");
  const [draft, setDraft] = useState("");
  const listening = useRef<AbortController | null>(null);
  const current = useRef<Entry[]>([]);
  // Of the latest render: a turn that began without an id must not end with that of its start.
  const ended = useRef(onEnded);
  ended.current = onEnded;
  const isGone = useRef(false);
  useEffect(() => {
    // Events that were missed do not come again; the conversation is read instead.
    const drop = () => listening.current?.abort();
    watch.onReconnect.add(drop);
    return () => { watch.onReconnect.delete(drop); isGone.current = true; drop(); };
  }, []);
  async function send(text: string, last: number, mode: string | null, pictures: string[]) {
    const { signal } = (listening.current = new AbortController());
    current.current = [{ kind: "user", id: "live", text, pictures }];
    let timer = 0;
    let took = 0;
    // Many pieces of text make one render, and the longer a render takes the fewer there are.
    const draw = () => {
      timer ||= setTimeout(() => {
        timer = 0;
        const begun = performance.now();
        setEntries(current.current);
        setTimeout(() => { took = performance.now() - begun; });
      }, Math.max(DRAW_MS, 4 * took)) as unknown as number;
    };
    setBusy(true); setTrouble(""); setDraft(""); setSince(last); setEntries(current.current);
    let failure = "";
    let begun = id ?? "";
    try {
      const body = { text, detached: true, ...(mode ? { mode } : {}), ...(pictures.length ? { images: pictures } : {}) };
      for await (const [kind, data] of streamEvents(id ? `/v1/sessions/${id}/turns` : "/v1/sessions", body, signal)) {
        if (kind === "session" && !begun) onBegun(begun = String(data.id));
        if (kind === "error") failure = String(data.error);
        if (kind === "TurnEnded" && data.end !== "answered") failure = String(data.reason || data.end);
        current.current = withEvent(current.current, kind, data);
        draw();
      }
    } catch (error) {
      if (isGone.current) return;
      // A turn that has begun continues although its events are no longer received.
      failure = begun ? "" : (error as Error).message;
    } finally {
      clearTimeout(timer);
    }
    if (failure) { setTrouble(failure); if (current.current.length < 2) setDraft(text); }
    setEntries(current.current);
    setBusy(false);
    ended.current();
  }
  /** Say something while it works. If it has just ended, that begins another turn. */
  async function steer(session: string, text: string, last: number) {
    try {
      const { heard } = await ask<{ heard: boolean }>("POST", `/v1/sessions/${session}/steer`, { text });
      if (!heard) return void send(text, last, null, []);
      current.current = [...current.current, { kind: "user", id: `said${current.current.length}`, text, pictures: [] }];
      setEntries(current.current);
    } catch (error) {
      setTrouble((error as Error).message);
      setDraft(text);
    }
  }
  /** What the events told is in the stored conversation now. */
  const settle = () => { current.current = []; setEntries([]); setSince(null); };
  return { entries, since, isBusy, trouble, draft, send, steer, settle };
}

/** Keep the end in view, unless you have scrolled up. */
function useFollowing() {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const at = useRef(Infinity); // where the view was last
  const [isAway, setAway] = useState(false);
  /** To the end; if a question is there that does not fit, to its start: you see what you answer before the answers. */
  const scroll = () => {
    const outer = box.current!;
    const question = outer.querySelector(".card");
    const start = question ? question.getBoundingClientRect().top - outer.getBoundingClientRect().top + outer.scrollTop - QUESTION_PX : Infinity;
    outer.scrollTop = Math.min(outer.scrollHeight, start);
    at.current = outer.scrollTop;
  };
  const toEnd = () => { follows.current = true; setAway(false); scroll(); };
  useLayoutEffect(() => {
    const outer = box.current!;
    let touched = -Infinity;
    const follow = (does: boolean) => { follows.current = does; setAway(!does); };
    const scrolled = () => {
      // Our own scrolling is heard late, perhaps after your wheel: it does not take back what you did.
      if (outer.scrollTop === at.current) return;
      // Nor do the first steps of your way up, which are near the end still.
      const end = outer.scrollHeight - outer.scrollTop - outer.clientHeight, isUp = outer.scrollTop < at.current;
      at.current = outer.scrollTop;
      if (end < (isUp ? 1 : NEAR_PX)) follow(true);
      // Content that changes its height moves the view too: that is not you.
      else if (performance.now() - touched < TOUCHED_MS) follow(false);
    };
    const touch = (event: Event) => {
      touched = performance.now();
      // A wheel is heard before its scrolling, which the next piece of text would undo.
      if (event instanceof WheelEvent && event.deltaY < 0 && outer.scrollTop > 0) follow(false);
    };
    const sized = new ResizeObserver(() => { if (follows.current) scroll(); });
    sized.observe(outer);
    sized.observe(outer.firstElementChild!);
    outer.addEventListener("scroll", scrolled, { passive: true });
    for (const name of INPUTS) outer.addEventListener(name, touch, { passive: true });
    return () => sized.disconnect(); // the listeners go with the box
  }, []);
  return { box, isAway, toEnd };
}

function useReplay(count: number): [number | null, (step: number | null) => void] {
  const [step, setStep] = useState<number | null>(null);
  useEffect(() => {
    if (step === null) return;
    const timer = setTimeout(() => setStep(step < count ? step + 1 : null), STEP_MS);
    return () => clearTimeout(timer);
  }, [step, count]);
  return [step, setStep];
}

function Head({ answer, step, setStep, again }: {
  answer: Whole; step: number | null; setStep: (step: number | null) => void; again: () => void;
}) {
  const { session, calls, children } = answer;
  return (
    <div class="chat-head">
      <h2 class="titled"><span class="one-line">{visible(session.title || session.id)}</span> {answer.is_running && <Tag kind="busy">running</Tag>}</h2>
      <div class="line">
        <small class="grow">{session.model} · {session.cwd} · {clock(session.created)} · {calls.length === 1 ? "1 call" : `${calls.length} calls`} · {cost(session)}</small>
        {step !== null && <label class="line">Message <input type="range" min={1} max={answer.messages.length} value={step}
          onInput={(event) => setStep(Number(event.currentTarget.value))} /></label>}
        {session.parent && <a href={`#/sessions/${session.parent}`}>parent session</a>}
        {children.length > 0 && <small>Child agents:</small>}{children.map((child) => <a class="one-line" href={`#/sessions/${child.id}`}>{visible(child.title || child.id)}</a>)}
        <button class="small" onClick={() => setStep(step === null ? 1 : null)}>{step === null ? "Replay" : "Show all"}</button>
        <button class="small" onClick={again}>Refresh</button>
      </div>
    </div>
  );
}

/** `asking`: the tools of which a call waits for an answer. */
function Entries({ entries, isBusy, asking }: { entries: Entry[]; isBusy: boolean; asking: string[] }) {
  const [most, setMost] = useState(MAX_SHOWN);
  const first = Math.max(0, entries.length - most);
  return (
    <>
      {first > 0 && <button class="plain" onClick={() => setMost(most + 1000)}>Show {first.toLocaleString()} earlier entries</button>}
      <ol class="talk">
        {entries.slice(first).map((entry, index) => (
          <li key={`${first + index} ${entry.id}`} class={entry.kind}>{entry.kind === "tool" ? <Called entry={entry} isBusy={isBusy} isAsking={asking.includes(entry.tool)} /> : <Said entry={entry} />}</li>
        ))}
      </ol>
    </>
  );
}

const WHO = { user: "You", assistant: "Agent", system: "System prompt", notice: "Note" };

function Said({ entry }: { entry: TextEntry }) {
  const words = <>
    {entry.kind === "assistant" ? <Markdown text={entry.text} /> : entry.text && <div class="words">{visible(entry.text)}</div>}
    {entry.pictures.map((url) => <Picture url={url} />)}
  </>;
  if (entry.kind === "system") return <details><summary>{WHO.system}</summary>{words}</details>;
  return <><small>{WHO[entry.kind]}{entry.at !== undefined && ` · ${clock(entry.at)}`}</small>{words}</>;
}

function Called({ entry, isBusy, isAsking }: { entry: ToolEntry; isBusy: boolean; isAsking: boolean }) {
  const result = useMemo(() => (entry.result ? fieldsOf(entry.result) : null), [entry.result]);
  const isOver = entry.result !== undefined;
  const error = entry.errorType && typeof result?.error === "string" ? failureOf(result.error, entry.errorType, answeredBy) : "";
  const edited = editedTo(result);
  const mark = !isOver && isBusy ? ["…", "running", "busy"] : entry.errorType ? ["✗", "failed", "bad"] : isOver ? ["✓", "ok", "good"] : ["?", "no result", ""];
  return (
    <>
      <details class="called">
        <summary><span class={`sign ${mark[2]}`} role="img" aria-label={mark[1]}>{mark[0]}</span> <b>{entry.tool}</b>{" "}
          <code>{visible(mainArgument(entry.args))}</code> {!isOver && isAsking ? <small>waiting for an answer</small> : <Took entry={entry} isBusy={isBusy} />}
          {entry.errorType && <> <Tag kind="bad">{entry.errorType}</Tag></>}</summary>
        <Text value={entry.args} label="Arguments" />
        {isOver && <Text value={entry.result} label="Result" />}
      </details>
      {!isOver && isBusy && entry.progress && <Output text={entry.progress} />}
      {edited && <p>Changed to: <code>{visible(edited)}</code></p>}
      {error && <p class="failed">{visible(error)}</p>}
      {result && <ResultView result={result} args={entry.args} />}
      {typeof result?.call === "number" && <small><a href={`#/calls/${result.call}`}>Changes and undo</a></small>}
      {entry.pictures.map((url) => <Picture url={url} />)}
    </>
  );
}

function Took({ entry, isBusy }: { entry: ToolEntry; isBusy: boolean }) {
  if (entry.seconds !== undefined) return <small>{took(entry.seconds, entry.waited, entry.errorType)}</small>;
  return isBusy && entry.at !== undefined ? <Running since={entry.at} /> : null;
}

function Running({ since }: { since: number }) {
  return <small>{lasting(Math.max(0, useNow(500) - since))}</small>;
}

function Decisions({ decisions }: { decisions: Decided[] }) {
  return (
    <details class="decisions"><summary>{decisions.length === 1 ? "1 decision" : `${decisions.length} decisions`} about this conversation</summary>
      <ul>{decisions.map((each) => (
        <li><Tag kind={each.decision === "deny" ? "bad" : "good"}>{each.decision}</Tag> <code>{visible(each.text)}</code> <small>by {answeredBy(each.by)}{each.why && `: ${visible(each.why)}`}</small></li>
      ))}</ul></details>
  );
}

function TodoStrip({ todos }: { todos: Todo[] | null }) {
  if (!todos) return null;
  const current = todos.find((each) => each.status === "in_progress") ?? todos.find((each) => each.status === "pending");
  const done = todos.filter((each) => each.status === "completed").length;
  return <details class="todo-strip"><summary>Todo {done}/{todos.length}{current && ` · ${visible(current.content)}`}</summary><Todos items={todos} /></details>;
}

function Composer({ id, busy, trouble, draft, mode, onMode, onSend }: {
  id: string | null; busy: boolean; trouble: string; draft: string; mode: string | null; onMode: () => void;
  onSend: (text: string, mode: string | null, pictures: string[]) => void;
}) {
  const [text, setText] = useState("");
  const [first, setFirst] = useState("auto");
  const [problem, setProblem] = useState("");
  const [pictures, setPictures] = useState<string[]>([]);
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  /** Images that were chosen, pasted or dropped. Returns whether there were any. */
  function take(files: FileList | undefined | null): boolean {
    const found = [...files ?? []].filter((file) => IMAGES.includes(file.type));
    const small = found.filter((file) => file.size <= MAX_IMAGE_BYTES);
    setProblem(small.length < found.length ? `An image has at most ${MAX_IMAGE_BYTES / 1e6} MB.` : "");
    void Promise.all(small.map(dataUrl)).then((urls) => setPictures((before) => [...before, ...urls].slice(0, MAX_IMAGES)));
    return found.length > 0;
  }
  useEffect(() => { if (draft) setText(draft); }, [draft]);
  // As high as its text, up to a limit.
  useLayoutEffect(() => {
    const box = field.current!;
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight + 2, innerHeight * 0.35)}px`;
  }, [text]);
  const stop = () => void (id && ask("POST", `/v1/sessions/${id}/stop`).catch((error: Error) => setProblem(error.message)));
  const setMode = (wanted: string) => {
    if (!id) return setFirst(wanted);
    ask("PUT", `/v1/sessions/${id}/mode`, { mode: wanted }).then(() => { setProblem(""); onMode(); }, (error: Error) => setProblem(error.message));
  };
  useEffect(() => { if (!id) field.current!.focus(); }, []);
  // Wherever the focus is, unless Esc means something there.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key === "Escape" && busy && !(event.target as HTMLElement).closest("input, .card, dialog")) stop();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [id, busy]);
  function send(event: Event) {
    event.preventDefault();
    if (!text.trim() || (busy && (!id || pictures.length))) return;
    setText("");
    setPictures([]);
    onSend(text, id ? null : first, pictures);
  }
  function press(event: KeyboardEvent) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  }
  return (
    <form class="composer" onSubmit={send} onPaste={(event) => { if (take(event.clipboardData?.files)) event.preventDefault(); }}
      onDragOver={(event) => event.preventDefault()} onDrop={(event) => { event.preventDefault(); take(event.dataTransfer?.files); }}>
      <Trouble text={trouble || problem} />
      {pictures.length > 0 && <ul class="attached-images" aria-label="Attached images">{pictures.map((url, index) => (
        <li><img src={url} alt={`Image ${index + 1}`} /><button type="button" class="small" aria-label={`Remove image ${index + 1}`}
          onClick={() => setPictures(pictures.filter((_, at) => at !== index))}>✕</button></li>
      ))}</ul>}
      <textarea ref={field} rows={1} aria-label="Message to the agent" placeholder={busy ? "Sent before its next step" : (id ? "Reply" : "What should I do?") + (innerWidth > PHONE_PX ? " (Enter sends, Shift+Enter: new line)" : "")} value={text}
        onInput={(event) => setText(event.currentTarget.value)} onKeyDown={press} />
      <div class="line">
        <select aria-label="Mode" value={mode ?? first} onChange={(event) => setMode(event.currentTarget.value)}>
          {Object.keys(MODES).map((name) => <option value={name}>{name}</option>)}
        </select>
        <small class="hint wide-only">{busy ? "Esc stops it; it continues when you leave this page" : MODES[mode ?? first]}</small>
        <span class="push">
          <input ref={chooser} type="file" hidden accept={IMAGES.join(",")} multiple
            onChange={(event) => { take(event.currentTarget.files); event.currentTarget.value = ""; }} />
          <button type="button" onClick={() => chooser.current!.click()}>Image</button>
          <button type="button" class="deny" disabled={!busy || !id} onClick={stop}>Stop</button>
          <button class="main" disabled={busy && (!id || pictures.length > 0)}>Send</button>
        </span>
      </div>
    </form>
  );
}

function dataUrl(file: File): Promise<string> {
  return new Promise((found, failed) => {
    const reader = new FileReader();
    reader.onload = () => found(String(reader.result));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}

export function cost(session: Session): string {
  const tokens = `${(session.input_tokens + session.output_tokens).toLocaleString()} tokens`;
  return session.cost === null ? tokens : `${tokens} · ${money(session.cost)}`;
}
