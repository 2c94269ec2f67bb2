// Conversations: search, read with their calls and cost, replay, continue.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, get, streamEvents, type Fields } from "../api";
import type { Hit, PageProps, Session } from "../types";
import { clock, Empty, lasting, Rows, Split, Tag, Text, Trouble, useAnswer, visible } from "../ui";
import { useWatch } from "../watch";

type Asked = { id: string; function: { name: string; arguments: string } };
type Message = { id: number; at: number; role: string; content?: string | Fields[] | null; tool_calls?: Asked[]; tool_call_id?: string };
type Ran = { tool: string; call_id: string; at: number; seconds: number; error_type: string };
type Decided = { text: string; decision: string; by: string; why: string };
type Whole = {
  session: Session; messages: Message[]; calls: Ran[]; children: Session[]; decisions: Decided[]; is_running: boolean;
};
type Done = { role: "user" | "assistant" | "tool"; text: string };
const STEP_MS = 900;
const POLL_SECONDS = 2;

export function Sessions({ me, chosen }: PageProps) {
  const [query, setQuery] = useState("");
  const [wanted, setWanted] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setWanted(query), 200);
    return () => clearTimeout(timer);
  }, [query]);
  const address = `/v1/sessions?limit=${wanted.trim() ? 100 : 10000}&query=${encodeURIComponent(wanted)}`;
  const { answer, trouble, again } = useAnswer(() => get<{ sessions: Session[]; hits: Hit[] }>(address), [address]);
  const isSearch = wanted.trim() !== "";
  const goTo = (id: string) => { location.hash = `#/sessions/${id}`; };
  const mayTalk = me.role === "operate";
  return (
    <Split onBack={() => { location.hash = "#/sessions"; }}
      detail={chosen === "new" ? <Talk session={null} onSaid={(id) => { again(); goTo(id); }} />
        : chosen ? <Detail key={chosen} id={chosen} mayTalk={mayTalk} onChanged={again} /> : null}
      list={<>
        <div class="line bar">
          <input type="search" aria-label="Search all conversations" placeholder="Search all conversations" value={query}
            onInput={(event) => setQuery(event.currentTarget.value)} />
          {mayTalk && <button onClick={() => goTo("new")}>New</button>}
        </div>
        <Trouble text={trouble} />
        {answer && !isSearch && !answer.sessions.length && (
          <Empty title="No conversations yet"><p>Every conversation with an agent is kept: its messages, the calls in it, what was
            decided and what it cost. Start one with <b>New</b>, with <code>handrail chat</code>, or over the API.</p></Empty>
        )}
        {answer && isSearch && !answer.hits.length && <Empty title="No matches"><p>Words match in any order; "quoted" text matches exactly.</p></Empty>}
        {answer && (isSearch
          ? <Rows items={answer.hits} height={76} label="Matching messages" keyOf={(hit) => hit.message_id} chosen={null}
              onChoose={(hit) => goTo(hit.session)} row={(hit) => (
                <><div class="line"><b>{visible(hit.title || hit.session)}</b><Tag>{hit.role}</Tag><span class="left">{clock(hit.at)}</span></div>
                  <div class="two">{visible(hit.excerpt)}</div></>
              )} />
          : <Rows items={answer.sessions} height={54} label="Conversations" keyOf={(each) => each.id} chosen={chosen || null}
              onChoose={(each) => goTo(each.id)} row={(each) => (
                <><div class="line"><b>{visible(each.title || each.id)}</b>{each.is_running && <Tag kind="busy">running</Tag>}
                  {each.parent && <Tag>{each.kind}</Tag>}<span class="left">{clock(each.updated)}</span></div>
                  <div class="cut">{each.platform} · {each.model} · {cost(each)}</div></>
              )} />)}
      </>} />
  );
}

function Detail({ id, mayTalk, onChanged }: { id: string; mayTalk: boolean; onChanged: () => void }) {
  const [isRunning, setRunning] = useState(false);
  const { answer, trouble, again } = useAnswer(() => get<Whole>(`/v1/sessions/${encodeURIComponent(id)}`), [id], isRunning ? POLL_SECONDS : 0);
  useEffect(() => {
    if (isRunning && !answer?.is_running) onChanged();
    setRunning(answer?.is_running ?? false);
  }, [answer]);
  const [step, setStep] = useState<number | null>(null);
  const count = answer?.messages.length ?? 0;
  useEffect(() => {
    if (step === null) return;
    const timer = setTimeout(() => setStep(step < count ? step + 1 : null), STEP_MS);
    return () => clearTimeout(timer);
  }, [step, count]);
  if (!answer) return <Trouble text={trouble} />;
  const { session, calls, decisions, children } = answer;
  const ran = new Map(calls.map((call) => [call.call_id, call]));
  const results = new Map(answer.messages.filter((each) => each.role === "tool").map((each) => [each.tool_call_id, each]));
  const shown = step === null ? answer.messages : answer.messages.slice(0, step);
  return (
    <>
      <h2>{visible(session.title || session.id)} {answer.is_running && <Tag kind="busy">running</Tag>}</h2>
      <p><small>{session.model} · {session.cwd} · {clock(session.created)} · {calls.length === 1 ? "1 call" : `${calls.length} calls`} · {cost(session)}</small></p>
      <p class="line">
        <button onClick={() => setStep(step === null ? 1 : null)}>{step === null ? "Replay" : "Show all"}</button>
        {step !== null && <label class="grow">Message <input type="range" min={1} max={count} value={step}
          onInput={(event) => setStep(Number(event.currentTarget.value))} /></label>}
        <button onClick={again}>Refresh</button>
        {answer.is_running && mayTalk && <button class="deny" onClick={() => void ask("POST", `/v1/sessions/${id}/stop`).then(again, again)}>Stop</button>}
        {session.parent && <a href={`#/sessions/${session.parent}`}>parent session</a>}
        {children.map((child) => <a href={`#/sessions/${child.id}`}>{visible(child.title || child.id)}</a>)}
      </p>
      <ol class="talk">
        {shown.filter((each) => each.role !== "tool").map((message) => (
          <li key={message.id} class={message.role}>
            <small>{message.role} · {clock(message.at)}</small>
            {textOf(message) && <div class="words">{visible(textOf(message))}</div>}
            {message.tool_calls?.map((call) => <Called key={call.id} call={call} ran={ran.get(call.id)} result={results.get(call.id)} />)}
          </li>
        ))}
      </ol>
      {decisions.length > 0 && <><h3>Decisions</h3><ul>{decisions.map((each) => (
        <li><Tag kind={each.decision === "deny" ? "bad" : "good"}>{each.decision}</Tag> <code>{visible(each.text)}</code> <small>by {each.by}{each.why && `: ${visible(each.why)}`}</small></li>
      ))}</ul></>}
      {mayTalk && !answer.is_running && <Talk session={id} onSaid={() => { again(); onChanged(); }} />}
    </>
  );
}

function Called({ call, ran, result }: { call: Asked; ran?: Ran; result?: Message }) {
  return (
    <details class="called">
      <summary><b>{call.function.name}</b> {ran && <small>{lasting(ran.seconds)}</small>} {ran?.error_type && <Tag kind="bad">{ran.error_type}</Tag>}
        <div class="cut">{visible(call.function.arguments)}</div></summary>
      <Text value={call.function.arguments} label="Arguments" />
      {result && <Text value={textOf(result)} label="Result" />}
    </details>
  );
}

/** Send a message to an agent and watch its turn, which continues when you leave this page. */
function Talk({ session, onSaid }: { session: string | null; onSaid: (session: string) => void }) {
  const { waiting } = useWatch();
  const [text, setText] = useState("");
  const [id, setId] = useState(session);
  const [done, setDone] = useState<Done[]>([]);
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  const listening = useRef<AbortController | null>(null);
  useEffect(() => () => listening.current?.abort(), []);
  async function say(event: Event) {
    event.preventDefault();
    if (!text.trim() || isBusy) return;
    setBusy(true); setTrouble(""); setText("");
    setDone([{ role: "user", text }]);
    const { signal } = (listening.current = new AbortController());
    let began = "";
    let failure = "";
    try {
      for await (const [kind, data] of streamEvents(session ? `/v1/sessions/${session}/turns` : "/v1/sessions", { text, detached: true }, signal)) {
        if (kind === "session") setId(began = String(data.id));
        if (kind === "TextDelta") setDone((before) => longer(before, String(data.text ?? "")));
        if (kind === "ToolStarted") setDone((before) => [...before, { role: "tool", text: `${String(data.tool)} ${JSON.stringify(data.arguments)}` }]);
        if (kind === "error") failure = String(data.error);
        if (kind === "TurnEnded" && data.end !== "answered") failure = String(data.reason || data.end);
      }
      if (!failure || session) onSaid(began);
    } catch (error) {
      if (signal.aborted) return;
      if (began) onSaid(began); // it continues although its events are no longer received
      else failure = (error as Error).message;
    }
    if (failure) { setTrouble(failure); setText(text); }
    setDone([]);
    setBusy(false);
  }
  const asks = waiting.filter((question) => question.session === id).length;
  return (
    <form class="say" onSubmit={(event) => void say(event)}>
      <div role="log" aria-label="Activity">{done.length > 0 && <ol class="talk">{done.map((each) => (
        <li class={each.role}><small>{each.role}</small><div class={each.role === "tool" ? "cut" : "words"}>{visible(each.text)}</div></li>
      ))}</ol>}</div>
      {isBusy && asks > 0 && <p class="trouble" role="status">The agent waits for you: <a href="#/approvals">answer on Approvals</a>.</p>}
      <textarea rows={3} aria-label="Message to the agent" placeholder={session ? "Reply…" : "What should the agent do?"} value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void say(event); }} />
      <p class="line"><button class="main" disabled={isBusy}>{isBusy ? "Working…" : "Send"}</button>
        {isBusy && id && <button type="button" onClick={() => void ask("POST", `/v1/sessions/${id}/stop`).catch(() => {})}>Stop</button>}
        <small>{isBusy ? "It continues when you leave this page." : "Ctrl+Enter"}</small></p>
      <Trouble text={trouble} />
    </form>
  );
}

/** The messages so far, with new text appended: a model's text arrives in pieces. */
function longer(done: Done[], text: string): Done[] {
  const last = done.at(-1);
  return last?.role === "assistant" ? [...done.slice(0, -1), { ...last, text: last.text + text }] : [...done, { role: "assistant", text }];
}

function textOf(message: Message): string {
  if (typeof message.content === "string") return message.content;
  return (message.content ?? []).map((part) => (typeof part.text === "string" ? part.text : `[${String(part.type)}]`)).join("\n");
}

function cost(session: Session): string {
  const tokens = `${(session.input_tokens + session.output_tokens).toLocaleString()} tokens`;
  return session.cost === null ? tokens : `${tokens} · $${session.cost.toFixed(4)}`;
}
