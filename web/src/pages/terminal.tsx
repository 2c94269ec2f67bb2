// Background processes and their terminals: read-only, or interactive.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, get, streamEvents } from "../api";
import type { PageProps, Process } from "../types";
import { clock, Empty, lasting, Rows, Split, Tag, Trouble, useAnswer, useNow, visible } from "../ui";

// About as much as a terminal keeps; older output is in the log.
const LAST_BYTES = 300_000;
const AGAIN_MS = 1_500;

export function Terminal({ me, chosen }: PageProps) {
  const { answer, trouble, again } = useAnswer(() => get<{ processes: Process[] }>("/v1/processes"), [], 2);
  const now = useNow(1000);
  const processes = [...(answer?.processes ?? [])].sort((a, b) => b.started_at - a.started_at);
  const process = processes.find((each) => each.id === chosen);
  if (answer && !processes.length) {
    return (
      <Empty title="No background processes">
        <p>What an agent starts in the background shows here: servers, builds, programs that wait for input. Attach to one to see its
          screen, and type into it when it waits for you.</p>
        <p>Try it: run the tool <a href="#/tools/terminal">terminal</a> with the command <code>top</code>, and check
          <i> background</i> and <i>pty</i>.</p>
      </Empty>
    );
  }
  return (
    <Split onBack={() => { location.hash = "#/terminal"; }}
      detail={process ? <Attached key={process.id} process={process} mayType={me.role === "operate"} onChanged={again} /> : null}
      list={<>
        <Trouble text={trouble} />
        <div class="bar"><small role="status">{processes.filter((each) => each.ended_at === null).length} running · {processes.length} in all</small></div>
        <Rows items={processes} height={54} label="Processes" keyOf={(each) => each.id} chosen={chosen || null}
          onChoose={(each) => { location.hash = `#/terminal/${each.id}`; }} row={(each) => (
            <>
              <div class="line"><b>{visible(each.command)}</b><State process={each} />{each.has_pty && <Tag>terminal</Tag>}
                <span class="left">{lasting((each.ended_at ?? now) - each.started_at)}</span></div>
              <div class="cut">{each.id} · {each.environment} · {clock(each.started_at)}</div>
            </>
          )} />
      </>} />
  );
}

function State({ process }: { process: Process }) {
  if (process.ended_at === null) return <Tag kind="busy">{process.state}</Tag>;
  return <Tag kind={process.exit_code === 0 ? "good" : "bad"}>{process.exit_code === null ? process.state : `exit ${process.exit_code}`}</Tag>;
}

function Attached({ process, mayType, onChanged }: { process: Process; mayType: boolean; onChanged: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const [isTyping, setTyping] = useState(false);
  const [trouble, setTrouble] = useState("");
  const typing = useRef(isTyping);
  const screen = useRef<Screen | null>(null);
  typing.current = isTyping;
  const isOver = process.ended_at !== null;

  // Layout effects, because other effects are cleaned up only after the box is gone.
  useLayoutEffect(() => {
    let isGone = false;
    void import("../screen").then(({ openScreen }) => {
      if (isGone) return;
      const opened = openScreen(box.current!, process, {
        typed: (text) => { if (typing.current) write(text); },
        sized: (rows, columns) => {
          if (typing.current && process.has_pty) void ask("POST", `/v1/processes/${process.id}/size`, { rows, columns }).catch(() => {});
        },
      });
      screen.current = opened;
      opened.letType(typing.current); // it may have been switched on during loading
      stop = follow(process.id, opened.write, onChanged, setTrouble);
    }, () => setTrouble("the terminal could not be loaded; open it again when the server is there"));
    let stop = () => {};
    return () => { isGone = true; stop(); screen.current?.close(); screen.current = null; };
  }, []);

  // One after the other: keys must not overtake each other.
  const last = useRef<Promise<unknown>>(Promise.resolve());
  function write(raw: string) {
    last.current = last.current.then(() => ask("POST", `/v1/processes/${process.id}/input`, { raw }))
      .catch((error: Error) => setTrouble(error.message));
  }
  useLayoutEffect(() => { screen.current?.letType(isTyping); }, [isTyping]);
  const end = () => void ask("DELETE", `/v1/processes/${process.id}`).then(onChanged, (error: Error) => setTrouble(error.message));

  return (
    <div class="attached">
      <h2 class="titled"><span class="one-line">{visible(process.command)}</span> <State process={process} /></h2>
      <p class="line">
        {mayType && !isOver && <label class="check"><input type="checkbox" checked={isTyping}
          onChange={(event) => setTyping(event.currentTarget.checked)} /> Interactive</label>}
        {mayType && !isOver && <button class="deny" onClick={end}>Kill process</button>}
        {isOver && <small>{process.reason || `ended ${clock(process.ended_at!)}`}</small>}
        {!isOver && <small>{isTyping ? "Keys, including Tab, go to the program; Alt+1 to Alt+9 leave the terminal." : "Read-only"}</small>}
      </p>
      <Trouble text={trouble} />
      <div class="screen" ref={box} />
    </div>
  );
}

type Screen = { write(data: Uint8Array): void; letType(may: boolean): void; close(): void };

/** Stream the output, across lost connections. Returns a function that stops it. */
function follow(id: string, write: (data: Uint8Array) => void, onEnd: () => void, onTrouble: (text: string) => void): () => void {
  let source: AbortController | null = null;
  let next = 0;
  let isOver = false;
  const close = () => { source?.abort(); source = null; };
  const read = async (opened: AbortController) => {
    for await (const [kind, data] of streamEvents(`/v1/processes/${id}/output?offset=${next}`, undefined, opened.signal)) {
      if (kind === "output") {
        next = data.next as number;
        write(Uint8Array.from(atob(data.data as string), (byte) => byte.charCodeAt(0)));
      } else if (kind === "ended") { isOver = true; close(); onEnd(); return; }
    }
  };
  const open = () => {
    if (isOver || source || document.hidden) return;
    const opened = (source = new AbortController());
    void read(opened).catch(() => undefined).then(() => { if (source === opened) { close(); setTimeout(open, AGAIN_MS); } });
  };
  // A browser allows six connections per server for all tabs: a hidden tab leaves them to the others.
  const turned = () => document.hidden ? close() : open();
  get<{ end: number }>(`/v1/processes/${id}/log?limit=1`).then(({ end }) => {
    next = Math.max(0, end - LAST_BYTES);
    if (!isOver) document.addEventListener("visibilitychange", turned);
    open();
  }, (error: Error) => onTrouble(error.message));
  return () => { isOver = true; close(); document.removeEventListener("visibilitychange", turned); };
}
