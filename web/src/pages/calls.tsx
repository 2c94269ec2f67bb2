// Calls that changed something: what they changed, and taking them back.
import { useState } from "preact/hooks";
import { ApiError, ask, get } from "../api";
import { Diff } from "../rich";
import type { PageProps } from "../types";
import { clock, Empty, lasting, Rows, Split, Tag, Trouble, useAnswer, visible } from "../ui";

type Kind = "lost" | "changed" | "created" | "moved";
type CallRecord = {
  number: number; session: string | null; tool: string; head: string; folder: string; environment: string; begun: number; ended: number | null;
  coverage: string; reason: string; counts: Partial<Record<Kind, number>>; hosts: number; undoes: number; undone_by: number; outcome: string;
  can_be_undone_until: number | null; left_running: string[];
};
type Path = { path: string; kind: string; size: number; size_now?: number; to?: string; saved?: boolean; files?: number; diff?: string };
type Effects = Partial<Record<Kind, Path[]>> & {
  call: number; record: CallRecord; counts?: Partial<Record<Kind, number>>; can_undo: boolean; reason: string; undone_by: number; hosts?: string[]; unsaved?: { path: string; reason: string }[];
};
type Done = {
  status: string; reason: string; restored: number; conflicts: { path: string; call: number; when: number }[]; failed: { path: string; reason: string }[];
  kept_beside: Record<string, string>;
};
const WORDS: [Kind, string][] = [["lost", "deleted"], ["changed", "changed"], ["created", "created"], ["moved", "moved"]];
const POLL_SECONDS = 5;

export function Calls({ me, chosen }: PageProps) {
  const { answer, trouble, again } = useAnswer(
    () => get<{ calls: CallRecord[] }>("/v1/effects?limit=1000").catch((error: ApiError) => {
      if (error.status === 404) return null; // this server keeps no effects
      throw error;
    }), [], POLL_SECONDS);
  const calls = answer?.calls ?? [];
  if (!calls.length) {
    return trouble ? <Trouble text={trouble} /> : (
      <Empty title="No changes yet">
        <p>Every call that changes files shows here, with what it deleted, changed, created and moved. A call can be taken back, as a whole
          or path by path.</p>
        <p>Try it: run the tool <a href="#/tools/write_file">write_file</a>.</p>
      </Empty>
    );
  }
  return (
    <Split onBack={() => { location.hash = "#/calls"; }}
      detail={chosen ? <Detail key={chosen} number={chosen} mayUndo={me.role === "operate"} onChanged={again} /> : null}
      list={<>
        <Trouble text={trouble} />
        <div class="bar"><small role="status">{calls.length === 1 ? "1 call" : `${calls.length.toLocaleString()} calls`} with changes, the newest first</small></div>
        <Rows items={calls} height={54} label="Calls with changes" keyOf={(each) => String(each.number)} chosen={chosen || null}
          onChoose={(each) => { location.hash = `#/calls/${each.number}`; }} row={(each) => (
            <>
              <div class="line"><b>{each.number} {visible(each.tool)}</b><State call={each} /><span class="left">{clock(each.begun)}</span></div>
              <div class="cut">{counted(each)} · {visible(each.head)}</div>
            </>
          )} />
      </>} />
  );
}

function State({ call }: { call: CallRecord }) {
  if (call.undoes) return <Tag>undoes call {call.undoes}</Tag>;
  if (call.undone_by) return <Tag>undone</Tag>;
  if (call.outcome) return <Tag kind="bad">interrupted</Tag>;
  if (call.ended === null) return <Tag kind="busy">running</Tag>;
  return call.coverage === "full" ? null : <Tag kind="busy">watched: {call.coverage}</Tag>;
}

function counted(call: CallRecord): string {
  const parts = WORDS.filter(([kind]) => call.counts[kind]).map(([kind, word]) => `${call.counts[kind]!.toLocaleString()} ${word}`);
  if (call.hosts) parts.push(call.hosts === 1 ? "1 host" : `${call.hosts} hosts`);
  return parts.join(", ") || "nothing changed";
}

function Detail({ number, mayUndo, onChanged }: { number: string; mayUndo: boolean; onChanged: () => void }) {
  const { answer, trouble, again } = useAnswer(() => get<Effects>(`/v1/effects/${encodeURIComponent(number)}?diff=true`), [number]);
  const [done, setDone] = useState<[string, Done] | null>(null);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  if (!answer) return <Trouble text={trouble} />;
  const { record } = answer;
  const act = (what: "undo" | "redo", only = "", force = false) => {
    setBusy(true);
    ask<Done>("POST", `/v1/effects/${record.number}/${what}`, { ...(only ? { only } : {}), ...(force ? { force } : {}) })
      .then((found) => { setDone([only, found]); setProblem(""); again(); onChanged(); }, (error: Error) => setProblem(error.message))
      .finally(() => setBusy(false));
  };
  const mayAct = mayUndo && answer.can_undo && !isBusy;
  return (
    <>
      <h2>Call {record.number}: {visible(record.tool)} <State call={record} /></h2>
      <pre class="command" tabIndex={0} aria-label="What was called">{visible(record.head)}</pre>
      <dl class="facts">
        <dt>started</dt><dd>{clock(record.begun)}{record.ended !== null && `, took ${lasting(record.ended - record.begun)}`}</dd>
        <dt>in</dt><dd>{visible(record.folder)}</dd>
        <dt>on</dt><dd>{visible(record.environment)}</dd>
        {record.session && <><dt>session</dt><dd><a href={`#/sessions/${record.session}`}>{record.session}</a></dd></>}
        {record.outcome && <><dt>outcome</dt><dd>{visible(record.outcome)}</dd></>}
        {record.coverage !== "full" && <><dt>watched</dt><dd>{record.coverage}{record.reason && `: ${visible(record.reason)}`}</dd></>}
        {answer.hosts?.length ? <><dt>hosts</dt><dd>{visible(answer.hosts.join(", "))}</dd></> : null}
        {record.left_running.length > 0 && <><dt>left running</dt><dd>{visible(record.left_running.join(", "))} (<a href="#/terminal">Terminal</a>)</dd></>}
        {record.can_be_undone_until !== null && <><dt>kept until</dt><dd>{clock(record.can_be_undone_until)}</dd></>}
      </dl>
      <p class="line">
        {mayUndo && answer.can_undo && <button class="main" disabled={isBusy} onClick={() => act("undo")}>Undo this call</button>}
        {mayUndo && answer.undone_by > 0 && <button disabled={isBusy} onClick={() => act("redo")}>Redo</button>}
        {!answer.can_undo && answer.reason && <small>Cannot be undone: {visible(answer.reason)}.</small>}
      </p>
      <Trouble text={problem} />
      {done && <Outcome done={done[1]} onForce={mayAct ? () => act("undo", done[0], true) : null} />}
      {WORDS.map(([kind, word]) => answer[kind] && (
        <Changes key={kind} word={word} paths={answer[kind]} count={answer.counts?.[kind] ?? 0}
          onUndo={mayAct && total(answer) > 1 ? (path) => act("undo", path) : null} />
      ))}
      {answer.unsaved?.map((each) => <p><Tag kind="bad">not saved</Tag> <code>{visible(each.path)}</code> <small>{visible(each.reason)}</small></p>)}
    </>
  );
}

function total(effects: Effects): number {
  return WORDS.reduce((sum, [kind]) => sum + (effects[kind]?.length ?? 0), 0);
}

const FEW_PATHS = 100;

function Changes({ word, paths, count, onUndo }: { word: string; paths: Path[]; count: number; onUndo: ((path: string) => void) | null }) {
  const [most, setMost] = useState(FEW_PATHS);
  return (
    <>
      {paths.slice(0, most).map((each) => <Change key={each.path} word={word} each={each} onUndo={onUndo && (() => onUndo(each.path))} />)}
      {paths.length > most ? <button class="plain" onClick={() => setMost(Infinity)}>Show {(paths.length - most).toLocaleString()} more that were {word}</button>
        : count > paths.length && <p><small>and {(count - paths.length).toLocaleString()} more that were {word}</small></p>}
    </>
  );
}

function Change({ word, each, onUndo }: { word: string; each: Path; onUndo: (() => void) | null }) {
  return (
    <section class="change">
      <div class="line"><Tag kind={word === "deleted" ? "bad" : word === "created" ? "good" : ""}>{word}</Tag>
        <code class="grow">{visible(each.path)}{each.to && ` → ${visible(each.to)}`}</code>
        <small>{each.kind}{each.files && each.files > 1 ? `, ${each.files.toLocaleString()} files` : ""}, {bytes(each.size_now ?? each.size)}</small>
        {onUndo && <button class="small" onClick={onUndo} aria-label={`Undo ${each.path}`}>Undo</button>}</div>
      {each.diff && <Diff diff={each.diff} path={each.path} />}
    </section>
  );
}

function Outcome({ done, onForce }: { done: Done; onForce: (() => void) | null }) {
  if (done.status === "undone") {
    const kept = Object.entries(done.kept_beside);
    return (
      <div role="status">
        <p><Tag kind="good">done</Tag> {done.restored === 1 ? "1 path is" : `${done.restored.toLocaleString()} paths are`} as before.</p>
        {kept.map(([path, to]) => <p><small>What was at {visible(path)} is kept as {visible(to)}.</small></p>)}
        {done.failed.map((each) => <p class="failed">{visible(each.path)}: {visible(each.reason)}</p>)}
      </div>
    );
  }
  return (
    <div class="trouble" role="alert">
      {done.status === "conflict" ? "These paths were changed since. Nothing was done." : `Refused: ${visible(done.reason)}`}
      <ul>{done.conflicts.slice(0, FEW_PATHS).map((each) => <li>{visible(each.path)} by {each.call ? <a href={`#/calls/${each.call}`}>call {each.call}</a>
        : `someone else, ${clock(each.when)}`}</li>)}</ul>
      {done.status === "conflict" && onForce && <button class="deny" onClick={onForce}>Undo anyway, and keep what is there beside it</button>}
    </div>
  );
}

function bytes(size: number): string {
  return new Intl.NumberFormat(undefined, { style: "unit", unit: "byte", notation: "compact", unitDisplay: "narrow" }).format(size);
}
