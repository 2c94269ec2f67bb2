// Keyboard shortcuts, and how to log in another device.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask } from "./api";
import type { Me } from "./types";
import { Trouble } from "./ui";

const KEYS = [
  ["Alt+1 … Alt+7", "go to a page"],
  ["↑ ↓ Page Home End", "move in a list"],
  ["j k", "next and previous question, on Approvals"],
  ["o t s a", "allow the question in focus: once, for the task, the session, always"],
  ["d", "deny it: write a reason, then Enter"],
  ["Esc", "close, or back"],
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
      <Trouble text={trouble} />
      <p class="line"><button class="main" onClick={() => dialog.current!.close()}>Close</button>
        <button onClick={onLeave}>Log this browser out</button></p>
    </dialog>
  );
}
