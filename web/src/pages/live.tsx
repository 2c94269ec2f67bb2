// Calls as they run, in all processes that use this state folder, the newest first; those of delegated agents are indented.
import { useMemo, useState } from "preact/hooks";
import type { Call } from "../types";
import { clock, Empty, pretty, Rows, Split, Tag, Text, took as times, useNow, visible } from "../ui";
import { useWatch, watch } from "../watch";

const ROW = 54;
const OUTCOMES: Record<string, (call: Call) => boolean> = {
  running: (call) => !call.status && !watch.isAsking(call), waiting: (call) => watch.isAsking(call), ok: (call) => call.status === "ok",
  failed: (call) => Boolean(call.status) && call.status !== "ok" && call.error_type !== "denied", denied: (call) => call.error_type === "denied",
};

export function Live() {
  const seen = useWatch();
  const now = useNow(500);
  const [chosen, setChosen] = useState<Call["call"] | null>(null);
  const [wanted, setWanted] = useState("");
  const [tool, setTool] = useState("");
  const [session, setSession] = useState("");
  const [outcome, setOutcome] = useState("");
  const calls = useMemo(() => [...seen.calls.values()].sort((a, b) => (b.started ?? 0) - (a.started ?? 0)), [seen.version]);
  const shown = useMemo(() => calls.filter((call) => (!tool || call.tool === tool) && (!session || (call.session ?? NO_SESSION) === session)
    && (!outcome || OUTCOMES[outcome](call)) && (!wanted || `${call.tool} ${summary(call)}`.toLowerCase().includes(wanted.toLowerCase()))),
    [calls, tool, session, outcome, wanted, seen.waiting]);
  const call = chosen === null ? undefined : seen.calls.get(chosen);
  const running = calls.filter((each) => !each.status).length;
  if (!calls.length) {
    return (
      <Empty title="No calls yet">
        <p>Every tool call shows here as it runs: its arguments, how long it takes, and its latest progress. That includes calls
          of <code>handrail chat</code> and <code>ask</code>, of scheduled jobs, and of other programs that use the same state folder.</p>
        <p>Try a tool on <a href="#/tools">Tools</a>, start a conversation on <a href="#/sessions">Sessions</a>, or point an
          MCP client at <code>{location.origin}/mcp</code>.</p>
      </Empty>
    );
  }
  const sessions = [...new Set(calls.map((each) => each.session ?? NO_SESSION))].slice(0, MAX_SESSIONS);
  return (
    <Split onBack={() => setChosen(null)} detail={call ? <Detail call={call} now={now} /> : null} list={
      <>
        <div class="line bar filters">
          <input type="search" aria-label="Find calls" placeholder="Find a tool or an argument" value={wanted}
            onInput={(event) => setWanted(event.currentTarget.value)} />
          <Choice label="Tool" any="all tools" value={tool} onChange={setTool} options={[...new Set(calls.map((each) => each.tool))].sort()} />
          <Choice label="Session" any="all sessions" value={session} onChange={setSession} options={sessions} />
          <Choice label="Outcome" any="all outcomes" value={outcome} onChange={setOutcome} options={Object.keys(OUTCOMES)} />
          <small role="status">{running ? `${running} running · ` : ""}{shown.length === 1 ? "1 call" : `${shown.length.toLocaleString()} calls`}</small>
        </div>
        <Rows items={shown} height={ROW} label="Calls" keyOf={(each) => each.call} chosen={chosen}
          onChoose={(each) => setChosen(each.call)} row={(each) => <Row call={each} now={now} depth={seen.depth(each)} />} />
      </>
    } />
  );
}

const NO_SESSION = "no session";
const MAX_SESSIONS = 200;

function Choice({ label, any, value, options, onChange }: {
  label: string; any: string; value: string; options: string[]; onChange: (value: string) => void;
}) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      <option value="">{any}</option>
      {options.map((each) => <option value={each}>{visible(each)}</option>)}
    </select>
  );
}

function Row({ call, now, depth }: { call: Call; now: number; depth: number }) {
  return (
    <div class="call" style={{ paddingLeft: `${depth * 20}px` }}>
      <div class="line">{depth > 0 && <span aria-label="delegated" role="img">↳</span>}<b>{visible(call.tool)}</b><State call={call} />
        <span class="left">{took(call, now)}{call.started !== undefined && <time> {clock(call.started)}</time>}</span></div>
      <div class="cut">{call.progress && !call.status ? visible(call.progress.split("\n").at(-1)!) : summary(call)}</div>
    </div>
  );
}

function Detail({ call, now }: { call: Call; now: number }) {
  return (
    <>
      <h2>{call.tool} <State call={call} /></h2>
      <dl class="facts">
        {call.started !== undefined && <><dt>started</dt><dd>{clock(call.started)}</dd></>}
        <dt>duration</dt><dd>{took(call, now) || "not known"}</dd>
        {call.task && <><dt>task</dt><dd>{call.task}</dd></>}
        {call.session && <><dt>session</dt><dd><a href={`#/sessions/${call.session}`}>{call.session}</a></dd></>}
        {call.error_type && <><dt>error</dt><dd>{call.error_type}</dd></>}
      </dl>
      <h3>Arguments</h3>
      <pre class="text" tabIndex={0} aria-label="Arguments">{pretty(call.arguments ?? {})}</pre>
      {call.progress && !call.status && <><h3>Progress</h3><Text value={call.progress} label="Progress" /></>}
      {call.result !== undefined && <><h3>Result (last part)</h3><Text value={call.result} label="Result" /></>}
      {call.status && call.result === undefined && call.session && <p>The result is in <a href={`#/sessions/${call.session}`}>its conversation</a>.</p>}
    </>
  );
}

function State({ call }: { call: Call }) {
  if (watch.isAsking(call)) return <Tag kind="bad">waiting for an answer</Tag>;
  if (!call.status) return <Tag kind="busy">running</Tag>;
  return <Tag kind={call.status === "ok" ? "good" : "bad"}>{call.status === "ok" ? "ok" : call.error_type ?? call.status}</Tag>;
}

/** Without the wait for an answer, which is told apart. Empty if it is not known. */
function took(call: Call, now: number): string {
  if (call.status && call.seconds === undefined) return "";
  const seconds = call.seconds ?? Math.max(0, now - (call.started ?? now));
  return times(seconds, call.waited, call.error_type);
}

function summary(call: Call): string {
  const parts = Object.entries(call.arguments ?? {})
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return visible(parts.join(" "));
}
