// Open questions: what would run, why it needs approval, and what each answer covers.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask } from "../api";
import type { Decision, PageProps, Question } from "../types";
import { answeredBy, clock, Command, countdown, Empty, isTyping, Preview, Tag, Trouble, useNow, visible } from "../ui";
import { useWatch, watch } from "../watch";

/** What each answer is called, and the key that gives it. */
const ANSWERS: Record<Decision, [name: string, key: string]> = {
  once: ["Allow once", "o"], try: ["Try", "r"], task: ["Task", "t"], session: ["Session", "s"], always: ["Always", "a"], deny: ["Deny", "d"],
  edit: ["Edit", "e"],
};
// These last: they are one step further away than a single yes.
const LONGER: Decision[] = ["task", "session", "always"];
// The rule of a question about a command that was tried: it has run, and its changes are kept or not.
const TRIED = "effect.tried";
// A key press meant for something else must not answer a card that just appeared.
const CALM_MS = 600;

watch.onAsked = (question) => {
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification("Handrail needs your approval", { body: `${question.tool}: ${question.reason}`, tag: question.id });
  shown.onclick = () => { window.focus(); location.hash = "#/approvals"; shown.close(); };
};

export function Approvals({ me }: PageProps) {
  const { waiting, over } = useWatch();
  const list = useRef<HTMLDivElement>(null);

  function move(step: number) {
    const cards = [...list.current!.querySelectorAll<HTMLElement>(".card")];
    const at = cards.findIndex((card) => card.contains(document.activeElement));
    cards[at < 0 ? 0 : Math.min(cards.length - 1, Math.max(0, at + step))]?.focus();
  }
  /** The card in focus goes away: to the next one, the one before, or the page. */
  function leave() {
    const cards = [...list.current!.querySelectorAll<HTMLElement>(".card")];
    const at = cards.findIndex((card) => card.contains(document.activeElement));
    (cards[at + 1] ?? cards[at - 1] ?? list.current!.closest("main"))?.focus();
  }
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      if (event.key === "j") move(1);
      if (event.key === "k") move(-1);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);

  return (
    <div class="page" ref={list}>
      <div class="line bar">
        <p class="grow" role="status">{waiting.length > 0 && `${waiting.length} ${waiting.length === 1 ? "question" : "questions"} waiting for you`}</p>
        <Notify />
      </div>
      {waiting.map((question) => <Card key={question.id} question={question} mayAnswer={me.role !== "watch"} onAnswered={leave} />)}
      {!waiting.length && (
        <Empty title="No open questions">
          <p>When an agent wants to do something dangerous, its command appears here, with the dangerous part marked.
            Until you answer it waits; without an answer it is denied.</p>
          <p>Try it: <code>handrail call terminal command='rm -rf build'</code> in another terminal, or run
            the tool <a href="#/tools/terminal">terminal</a> with <code>rm -rf build</code>.</p>
        </Empty>
      )}
      {over.length > 0 && <h2>Recently answered</h2>}
      {over.map((question) => <Over key={question.id} question={question} />)}
    </div>
  );
}

type CardProps = { question: Question; mayAnswer: boolean; onAnswered: () => void; within?: string };

/** `within` is the session that the card is shown in, which needs no link to itself. */
export function Card({ question, mayAnswer, onAnswered, within }: CardProps) {
  const [form, setForm] = useState<"" | "deny" | "edit">("");
  const [why, setWhy] = useState("");
  const [text, setText] = useState(question.editable ?? "");
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [showsAll, setShowsAll] = useState(false);
  const [showsLonger, setShowsLonger] = useState(false);
  const card = useRef<HTMLElement>(null);
  const field = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const shown = useRef(performance.now());
  const left = question.expires_at - useNow(1000);
  const isTried = question.rule_key === TRIED;
  const offers = isTried || question.editable === null ? question.offers
    : [...question.offers, { decision: "edit" as const, covers: "change it first; what you write is judged again" }];
  const shownOffers = showsLonger ? offers : offers.filter((each) => !LONGER.includes(each.decision));

  async function answer(decision: Decision, lines = text) {
    if (isBusy) return;
    setBusy(true);
    const hadFocus = card.current?.contains(document.activeElement);
    try {
      const body = decision === "edit" ? { decision, text: lines } : why && decision === "deny" ? { decision, why } : { decision };
      const answered = await ask<{ holds: boolean; request: Question }>("POST", `/v1/approvals/${question.id}`, body);
      if (hadFocus) onAnswered();
      watch.closed(answered.request);
    } catch (error) {
      setTrouble((error as Error).message);
      setBusy(false);
    }
  }
  function press(event: KeyboardEvent) {
    if (event.key === "Escape") { leaveForm(); return; }
    if (event.key === "v" && !isTyping(event)) { setShowsAll(true); return; }
    const decision = offers.find((each) => ANSWERS[each.decision][1] === event.key)?.decision;
    if (isTyping(event) || !mayAnswer || !decision) return;
    if (performance.now() - shown.current < CALM_MS) return;
    event.preventDefault();
    choose(decision);
  }
  function choose(decision: Decision) {
    if (isTried) { card.current!.querySelector<HTMLElement>(decision === "deny" ? "button.deny" : "button.allow")?.click(); return; }
    if (decision === "deny" || decision === "edit") setForm(decision);
    else void answer(decision);
  }
  function leaveForm() {
    setForm("");
    card.current!.focus();
  }
  useLayoutEffect(() => { if (form) field.current?.focus(); }, [form]);

  return (
    <article class="card" ref={card} tabIndex={0} aria-label={`${question.tool}: ${question.reason}`} onKeyDown={press}>
      <div class="line"><b>{question.tool}</b>
        {!question.concerns.length && <span>{question.reason}</span>}
        {question.asker && <Tag>{question.asker}</Tag>}
        <span class={left < 30 ? "left soon" : "left"}>{!question.is_waiting ? "the process that asked has exited; your answer applies if it asks again"
          : left > 0 ? `auto-deny in ${countdown(left)}` : "timed out"}</span></div>
      {isTried ? <p>The command has run, and nothing is final yet. Keep what it changed?</p> : <Command pieces={question.pieces} />}
      <Preview preview={question.preview} label={isTried ? "What it changed" : "What would be written"} all={showsAll} onAll={() => setShowsAll(true)} />
      <dl class="facts">
        {question.cwd && <><dt>in</dt><dd>{question.cwd}</dd></>}
        {!["", "local"].includes(question.environment) && <><dt>on</dt><dd>{question.environment}</dd></>}
        {question.session && question.session !== within && <><dt>session</dt><dd><a href={`#/sessions/${question.session}`}>{question.session}</a></dd></>}
        {!isTried && question.concerns.map((each) => <><dt>rule</dt><dd><a href={`#/policy/${each.rule}`}>{each.rule}</a> {each.why}</dd></>)}
      </dl>
      {isTried && <Tried question={question} isBusy={isBusy} mayAnswer={mayAnswer} onAnswer={(decision, lines) => void answer(decision, lines)} />}
      {mayAnswer ? !form && !isTried && (
        <ul class="answers">
          {shownOffers.map(({ decision, covers }) => (
            <li>
              <button class={decision === "deny" ? "deny" : "allow"} disabled={isBusy} onClick={() => choose(decision)}>
                {ANSWERS[decision][0]} <kbd aria-hidden="true">{ANSWERS[decision][1]}</kbd>
              </button>
              <small>{covers}</small>
            </li>
          ))}
          {shownOffers.length < offers.length && <li class="longer"><button aria-expanded={false} onClick={() => setShowsLonger(true)}>Allow for longer…</button>
            <small>this kind in this task, this session, or always</small></li>}
        </ul>
      ) : <p>Read-only: answering needs the role “approve”.</p>}
      {form === "edit" && (
        <form class="line denying" onSubmit={(event) => { event.preventDefault(); void answer("edit"); }}>
          <label class="grow">What should run instead? It is judged again, and may ask you again.
            <textarea ref={field} class="command" value={text} maxLength={10_000} rows={Math.min(12, text.split("\n").length + 1)}
              spellcheck={false} onInput={(event) => setText(event.currentTarget.value)}
              onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void answer("edit"); }} /></label>
          <button class="allow" disabled={isBusy || !text.trim() || text === question.editable}>Run this instead</button>
          <button type="button" onClick={leaveForm}>Cancel</button>
        </form>
      )}
      {form === "deny" && (
        <form class="line denying" onSubmit={(event) => { event.preventDefault(); void answer("deny"); }}>
          <label class="grow">Why not? The model reads it, and can try something else.
            <input ref={field} value={why} maxLength={1000} placeholder="optional: move it to trash/ instead"
              onInput={(event) => setWhy(event.currentTarget.value)} /></label>
          <button class="deny" disabled={isBusy}>Deny</button>
          <button type="button" onClick={leaveForm}>Cancel</button>
        </form>
      )}
      <Trouble text={trouble} />
    </article>
  );
}

/** The changes of a command that was tried: keep all, some, or none. */
function Tried({ question, isBusy, mayAnswer, onAnswer }: {
  question: Question; isBusy: boolean; mayAnswer: boolean; onAnswer: (decision: Decision, lines: string) => void;
}) {
  const lines = (question.editable ?? question.pieces.map((piece) => piece.text).join("")).split("\n");
  const mayPick = mayAnswer && question.editable !== null && lines.length > 1;
  const [dropped, setDropped] = useState<string[]>([]);
  const kept = lines.filter((line) => !dropped.includes(line));
  // A folder goes with everything below it.
  const toggle = (line: string) => setDropped(dropped.includes(line) ? dropped.filter((each) => each !== line && !isBelow(line, each))
    : lines.filter((each) => each === line || dropped.includes(each) || isBelow(each, line)));
  return (
    <>
      <ul class="tried" aria-label="Changes">{lines.map((line) => (
        <li>{mayPick && SIGNS[line[0]] ? <label class="check"><input type="checkbox" checked={!dropped.includes(line)} onChange={() => toggle(line)} /><Changed line={line} /></label>
          : <Changed line={line} />}</li>
      ))}</ul>
      {mayAnswer && <p class="line">
        <button class="allow" disabled={isBusy || !kept.length} onClick={() => onAnswer(dropped.length ? "edit" : "once", kept.join("\n"))}>
          {dropped.length ? `Keep ${kept.length} of ${lines.length}` : "Keep"} <kbd aria-hidden="true">o</kbd></button>
        <button class="deny" disabled={isBusy} onClick={() => onAnswer("deny", "")}>Undo all <kbd aria-hidden="true">d</kbd></button>
      </p>}
    </>
  );
}

const SIGNS: Record<string, [word: string, kind: string]> = {
  "-": ["deleted", "bad"], "~": ["changed", ""], "+": ["created", "good"], ">": ["moved", ""],
};

function isBelow(line: string, folder: string): boolean {
  return SIGNS[folder[0]] !== undefined && line.slice(2).startsWith(`${folder.slice(2)}/`);
}

function Changed({ line }: { line: string }) {
  const [word, kind] = SIGNS[line[0]] ?? ["", ""];
  return word ? <span><Tag kind={kind}>{word}</Tag> <code>{visible(line.slice(2))}</code></span> : <span>{visible(line)}</span>;
}

function Over({ question }: { question: Question }) {
  const kind = question.decision === "edit" ? "" : question.decision && question.decision !== "deny" ? "good" : "bad";
  return (
    <article class="over">
      <Tag kind={kind}>{question.decision ?? question.state}</Tag>
      <code class="grow">{question.pieces.map((piece) => piece.text).join("")}</code>
      <small>{question.by ? `by ${answeredBy(question.by)}` : "nobody answered"}{question.why ? `: ${question.why}` : ""}
        {question.answered_at ? ` · ${clock(question.answered_at)}` : ""}</small>
    </article>
  );
}

function Notify() {
  const [state, setState] = useState("Notification" in window ? Notification.permission : "denied");
  if (state !== "default") return null;
  return <button class="small" onClick={() => void Notification.requestPermission().then(setState)}>Notify me when this page is hidden</button>;
}
