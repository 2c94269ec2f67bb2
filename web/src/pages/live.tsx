// Calls as they run, the newest first; those of delegated agents are indented below their parents'.
import { useMemo, useState } from "preact/hooks";
import type { Call } from "../types";
import { clock, Empty, lasting, pretty, Rows, Split, Tag, Text, useNow, visible } from "../ui";
import { useWatch } from "../watch";

const ROW = 54;

export function Live() {
  const seen = useWatch();
  const now = useNow(500);
  const [chosen, setChosen] = useState<number | null>(null);
  const [wanted, setWanted] = useState("");
  const calls = useMemo(() => [...seen.calls.values()].reverse(), [seen.version]);
  const shown = wanted ? calls.filter((call) => `${call.tool} ${summary(call)}`.toLowerCase().includes(wanted.toLowerCase())) : calls;
  const call = chosen === null ? undefined : seen.calls.get(chosen);
  const running = calls.filter((each) => !each.status).length;
  if (!calls.length) {
    return (
      <Empty title="No calls yet">
        <p>Every tool call of this server shows here as it runs: its arguments, how long it takes, and its latest progress.</p>
        <p>Try a tool on <a href="#/tools">Tools</a>, start a conversation on <a href="#/sessions">Sessions</a>, or point an
          MCP client at <code>{location.origin}/mcp</code>.</p>
      </Empty>
    );
  }
  return (
    <Split onBack={() => setChosen(null)} detail={call ? <Detail call={call} now={now} /> : null} list={
      <>
        <div class="line bar">
          <input type="search" aria-label="Find calls" placeholder="Find a tool or an argument" value={wanted}
            onInput={(event) => setWanted(event.currentTarget.value)} />
          <small role="status">{running ? `${running} running · ` : ""}{shown.length === 1 ? "1 call" : `${shown.length.toLocaleString()} calls`}</small>
        </div>
        <Rows items={shown} height={ROW} label="Calls" keyOf={(each) => each.call} chosen={chosen}
          onChoose={(each) => setChosen(each.call)} row={(each) => <Row call={each} now={now} depth={seen.depth(each)} />} />
      </>
    } />
  );
}

function Row({ call, now, depth }: { call: Call; now: number; depth: number }) {
  return (
    <div class="call" style={{ paddingLeft: `${depth * 20}px` }}>
      <div class="line">{depth > 0 && <span aria-label="delegated">↳</span>}<b>{call.tool}</b><State call={call} />
        <span class="left">{took(call, now)}</span></div>
      <div class="cut">{call.progress && !call.status ? visible(call.progress) : summary(call)}</div>
    </div>
  );
}

function Detail({ call, now }: { call: Call; now: number }) {
  return (
    <>
      <h2>{call.tool} <State call={call} /></h2>
      <dl class="facts">
        {call.started !== undefined && <><dt>started</dt><dd>{clock(call.started)}</dd></>}
        <dt>duration</dt><dd>{took(call, now)}</dd>
        <dt>task</dt><dd>{call.task ?? "none"}</dd>
        {call.session && <><dt>session</dt><dd><a href={`#/sessions/${call.session}`}>{call.session}</a></dd></>}
        {call.error_type && <><dt>error</dt><dd>{call.error_type}</dd></>}
      </dl>
      <h3>Arguments</h3>
      <pre class="text" tabIndex={0} aria-label="Arguments">{pretty(call.arguments ?? {})}</pre>
      {call.progress && !call.status && <><h3>Progress</h3><Text value={call.progress} label="Progress" /></>}
      {call.result !== undefined && <><h3>End of the result</h3><Text value={call.result} label="Result" /></>}
    </>
  );
}

function State({ call }: { call: Call }) {
  if (!call.status) return <Tag kind="busy">running</Tag>;
  return <Tag kind={call.status === "ok" ? "good" : "bad"}>{call.status === "ok" ? "ok" : call.error_type ?? call.status}</Tag>;
}

function took(call: Call, now: number): string {
  return lasting(call.seconds ?? Math.max(0, now - (call.started ?? now)));
}

function summary(call: Call): string {
  const parts = Object.entries(call.arguments ?? {})
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return visible(parts.join(" "));
}
