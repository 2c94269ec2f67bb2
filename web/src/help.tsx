// Keyboard shortcuts, and how to log in another device.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, get } from "./api";
import type { Login, Me } from "./types";
import { clock, Trouble, useAnswer, visible } from "./ui";

const KEYS = [
  ["Alt+1 … Alt+9", "go to a page"],
  ["↑ ↓ Page Home End", "move in a list"],
  ["j k", "next and previous question, on Approvals"],
  ["o r t s a", "allow the question in focus: once, as a try, for the task, the session, always"],
  ["e", "change the command in focus, then Ctrl+Enter: it is judged again"],
  ["v", "show all that the question in focus would write or run"],
  ["d", "deny it: write a reason, then Enter"],
  ["Enter, Shift+Enter", "send, or a new line, in a conversation"],
  ["Esc", "close, or back; in a conversation stop the agent"],
];

export function Help({ me, onClose, onLeave }: { me: Me; onClose: () => void; onLeave: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [role, setRole] = useState<Me["role"]>("approve");
  const [url, setUrl] = useState("");
  const [trouble, setTrouble] = useState("");
  useLayoutEffect(() => dialog.current!.showModal(), []);
  const makeLink = () =>
    ask<{ url: string }>("POST", "/v1/links", { role }).then((made) => setUrl(made.url), (error: Error) => setTrouble(error.message));
  return (
    <dialog ref={dialog} onClose={onClose} aria-label="Help and devices">
      <h2>Keyboard</h2>
      <dl class="keys">{KEYS.map(([keys, does]) => <><dt><kbd>{keys}</kbd></dt><dd>{does}</dd></>)}</dl>
      <h2>Another device</h2>
      <p>You are <b>{me.name}</b>, and may {me.role === "operate" ? "do everything" : me.role === "approve" ? "watch and approve" : "watch"}.</p>
      {me.role === "operate" && (
        <p class="line">
          <label>It may <select value={role} onChange={(event) => setRole(event.currentTarget.value as Me["role"])}>
            <option value="watch">watch</option><option value="approve">watch and approve</option>
            <option value="operate">do everything</option>
          </select></label>
          <button onClick={() => void makeLink()}>Create link</button>
        </p>
      )}
      {url && <p><code class="wrap">{url}</code><br /><small>The link works once, within ten minutes.</small></p>}
      <h2>Logged in</h2>
      <Logins mayEnd={me.role === "operate"} onTrouble={setTrouble} />
      <Trouble text={trouble} />
      <p class="line"><button class="main" onClick={() => dialog.current!.close()}>Close</button>
        <button onClick={onLeave}>Log this browser out</button></p>
    </dialog>
  );
}

function Logins({ mayEnd, onTrouble }: { mayEnd: boolean; onTrouble: (text: string) => void }) {
  const { answer, again } = useAnswer(() => get<{ logins: Login[] }>("/v1/logins"), []);
  const end = (id: string) => void ask("DELETE", `/v1/logins/${id}`).then(again, (error: Error) => onTrouble(error.message));
  return (
    <ul class="plain-list">
      {answer?.logins.map((each) => (
        <li class="line">
          <span class="grow"><b>{visible(each.name)}</b> · {each.role} <small>{each.is_this_one ? "this browser" : `last used ${clock(each.used)}`}
            {each.address && ` · from ${each.address}`}{each.agent && ` · ${visible(brief(each.agent))}`}</small></span>
          {mayEnd && !each.is_this_one && <button onClick={() => end(each.id)} aria-label={`Log out ${each.name}`}>Log out</button>}
        </li>
      ))}
    </ul>
  );
}

/** The words of a browser's long name for itself that tell it from others. */
function brief(agent: string): string {
  const system = /\(([^;)]+)/.exec(agent)?.[1] ?? "";
  const program = /(Firefox|Edg|OPR|Chrome|Safari)\//.exec(agent)?.[1] ?? agent.slice(0, 40);
  return [program, system].filter(Boolean).join(" on ");
}
