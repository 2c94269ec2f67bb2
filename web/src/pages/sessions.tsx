// Conversations: search them, and open one.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { useFormats } from "../rich";
import type { Hit, PageProps, Session } from "../types";
import { clock, Empty, Rows, Split, Tag, Trouble, useAnswer, visible } from "../ui";
import { useWatch } from "../watch";
import { Chat, cost } from "./chat";

export function Sessions({ me, chosen }: PageProps) {
  useFormats();
  const [query, setQuery] = useState("");
  const [wanted, setWanted] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setWanted(query), 200);
    return () => clearTimeout(timer);
  }, [query]);
  const address = `/v1/sessions?limit=${wanted.trim() ? 100 : 10000}&query=${encodeURIComponent(wanted)}`;
  const { answer, trouble, again } = useAnswer(() => get<{ sessions: Session[]; hits: Hit[] }>(address), [address]);
  const isSearch = wanted.trim() !== "";
  // One that another process or tab has begun is not in the list yet.
  const seen = useWatch();
  const known = useMemo(() => new Set(answer?.sessions.map((each) => each.id)), [answer]);
  const unknown = answer && !isSearch ? [...seen.changes.keys()].filter((id) => !known.has(id)).join(" ") : "";
  useEffect(() => { if (unknown) again(); }, [unknown]);
  const goTo = (id: string) => { location.hash = `#/sessions/${id}`; };
  // A conversation that has just begun keeps its view, which receives its first answer.
  const begun = useRef("");
  const [last, started] = [useRef(""), useRef(0)];
  if (chosen === "new" && last.current !== "new") { begun.current = ""; started.current++; }
  last.current = chosen;
  const mayTalk = me.role === "operate";
  return (
    <Split onBack={() => { location.hash = "#/sessions"; }}
      detail={chosen && (chosen !== "new" || mayTalk)
        ? <Chat key={chosen === "new" || chosen === begun.current ? `new ${started.current}` : chosen} id={chosen === "new" ? null : chosen} me={me} onChanged={again}
            onBegun={(id) => { begun.current = id; goTo(id); again(); }} /> : null}
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
