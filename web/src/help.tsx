// Keyboard shortcuts, and how to log in another device.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, get } from "./api";
import type { Login, Me } from "./types";
import { clock, Tag, Trouble, useAnswer, visible } from "./ui";

const KEYS: [keys: string[], does: string][] = [
  [["Alt+1", "…", "Alt+9"], "go to a page"],
  [["?"], "this help"],
  [["↑", "↓", "Page", "Home", "End"], "move in a list"],
  [["j", "k"], "Approvals: next and previous question"],
  [["o"], "allow the question in focus once"],
  [["r"], "try it: run it, then keep or undo what it changed"],
  [["t", "s", "a"], "allow this kind for the task, for the session, always"],
  [["e"], "edit it; Ctrl+Enter runs what you wrote, judged again"],
  [["d"], "deny it: type a reason, then Enter"],
  [["v"], "show all of what it would write or run"],
  [["Enter"], "conversation: send; Shift+Enter starts a new line"],
  [["Esc"], "conversation: stop the agent; elsewhere: close"],
];
const ROLES: Record<Me["role"], string> = { watch: "watch", approve: "watch and approve", operate: "do everything" };

export function Help({ me, onClose, onLeave }: { me: Me; onClose: () => void; onLeave: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [role, setRole] = useState<Me["role"]>("approve");
  const [url, setUrl] = useState("");
  const [trouble, setTrouble] = useState("");
  useLayoutEffect(() => dialog.current!.showModal(), []);
  const makeLink = () =>
    ask<{ url: string }>("POST", "/v1/links", { role }).then((made) => setUrl(made.url), (error: Error) => setTrouble(error.message));
  return (
    <dialog ref={dialog} onClose={onClose} aria-label="Help and devices" onClick={(event) => { if (event.target === dialog.current) dialog.current!.close(); }}>
      <div class="dialog-body">
        <button class="dialog-close" onClick={() => dialog.current!.close()}>Close</button>
        <section class="keyboard">
          <h2>Keyboard</h2>
          <dl class="keys">{KEYS.map(([keys, does]) => <><dt>{keys.map((key) => key === "…" ? " … " : <kbd>{key}</kbd>)}</dt><dd>{does}</dd></>)}</dl>
        </section>
        <h2>Another device</h2>
        <p>You are logged in as <b>{visible(me.name.replace("link by ", ""))}</b>, and may {ROLES[me.role]}.</p>
        {me.role === "operate" && (
          <p class="line">
            <label class="line">The other device may <select value={role} onChange={(event) => setRole(event.currentTarget.value as Me["role"])}>
              {Object.entries(ROLES).map(([name, may]) => <option value={name}>{may}</option>)}
            </select></label>
            <button onClick={() => void makeLink()}>Create link</button>
          </p>
        )}
        {url && <p role="status"><code class="wrap">{url}</code><br /><small>Open it there. It works once, within ten minutes.</small></p>}
        <h2>Logged in</h2>
        <Logins mayEnd={me.role === "operate"} onTrouble={setTrouble} />
        <Trouble text={trouble} />
        <p><button onClick={onLeave}>Log this browser out</button></p>
      </div>
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
          <span class="grow"><b>{visible(each.name.replace("link by ", ""))}</b> <Tag>{each.role}</Tag> <small>{each.is_this_one ? "this browser" : `last used ${clock(each.used)}`}
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
