// Login: a token that is typed once becomes a cookie that scripts cannot read, and a key for this page.
import { useState } from "preact/hooks";
import { logIn } from "./api";
import { Trouble } from "./ui";

export function Login({ onEntered, trouble: before }: { onEntered: () => void; trouble: string }) {
  const [token, setToken] = useState("");
  const [trouble, setTrouble] = useState(before);
  async function enter(event: Event) {
    event.preventDefault();
    try {
      await logIn({ token });
      onEntered();
    } catch (error) {
      setTrouble((error as Error).message);
    }
  }
  return (
    <main class="login">
      <h1><img src="/assets/icon.svg" alt="" width="32" height="32" /> Handrail</h1>
      <form onSubmit={(event) => void enter(event)}>
        <label>Token
          <input type="password" autocomplete="current-password" value={token} required
            onInput={(event) => setToken(event.currentTarget.value)} />
        </label>
        <button class="main">Log in</button>
      </form>
      <Trouble text={trouble} />
      <p>
        <code>handrail serve</code> prints a login link when it starts in a terminal; it works once. For another device create a token
        with <code>handrail serve token new NAME</code>, or a link in a browser that is logged in (the “?” at the top).
      </p>
    </main>
  );
}
