// The frame around the pages: login, navigation, and the state of the connection.
import { render, type ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type ApiError, get, logIn, logOut, whenSignedOut } from "./api";
import { Login } from "./login";
import { Approvals } from "./pages/approvals";
import { Batches } from "./pages/batches";
import { Calls } from "./pages/calls";
import { Live } from "./pages/live";
import { Policy } from "./pages/policy";
import { Sessions } from "./pages/sessions";
import { Stats } from "./pages/stats";
import { Terminal } from "./pages/terminal";
import { Tools } from "./pages/tools";
import { Help } from "./help";
import type { Me, PageProps } from "./types";
import { isTyping, Trouble } from "./ui";
import { RETRY_MS, useWatch, watch } from "./watch";

const PAGES: [string, string, ComponentType<PageProps>][] = [
  ["live", "Live", Live], ["approvals", "Approvals", Approvals], ["terminal", "Terminal", Terminal],
  ["tools", "Tools", Tools], ["sessions", "Sessions", Sessions], ["policy", "Policy", Policy], ["stats", "Stats", Stats], ["calls", "Changes", Calls],
  ["batches", "Batches", Batches],
];

/** A page and what is chosen on it: `#/sessions/ID`. */
function place(): [string, string] {
  const [page, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  let chosen = rest.join("/");
  try { chosen = decodeURIComponent(chosen); } catch { /* it stays as it was typed */ }
  return [PAGES.some(([name]) => name === page) ? page : "live", chosen];
}

/** Log in with the code in the address, if there is one. It leaves the address, and so the history, at once. */
async function byLink(onTrouble: (text: string) => void): Promise<void> {
  if (location.pathname !== "/login") return;
  const code = new URLSearchParams(location.search).get("code") ?? "";
  history.replaceState(null, "", `/${location.hash}`);
  // Somebody who is in already stays in when their link was used before.
  await logIn({ code }).catch((error: Error) => onTrouble(error.message));
}

function App() {
  const [me, setMe] = useState<Me | null>(null);
  const [isOut, setOut] = useState(false);
  const [trouble, setTrouble] = useState("");
  const enter = () => get<Me>("/v1/me").then((found) => { setMe(found); setOut(false); setTrouble(""); watch.start(); }, (error: ApiError) => {
    if (error.status === 401) return; // the login is shown already
    setTrouble(error.message);
    setTimeout(enter, RETRY_MS);
  });
  useEffect(() => {
    whenSignedOut(() => { watch.stop(); setOut(true); });
    void byLink(setTrouble).then(enter);
  }, []);
  if (isOut) return <Login onEntered={() => void enter()} trouble={trouble} />;
  return me ? <Console me={me} /> : <main class="login"><Trouble text={trouble} /></main>;
}

function Console({ me }: { me: Me }) {
  const seen = useWatch();
  const [[page, chosen], setPlace] = useState(place());
  const [helps, setHelps] = useState(false);
  const main = useRef<HTMLElement>(null);
  // Listeners are added before the first paint, so that no address change or key press is missed.
  useLayoutEffect(() => {
    const moved = () => setPlace(place());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  // On a narrow screen not all page names are visible.
  useEffect(() => document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [page]);
  useEffect(() => {
    const title = PAGES.find(([name]) => name === page)![1];
    document.title = `${seen.waiting.length ? `(${seen.waiting.length}) ` : ""}${title} · Handrail`;
  });
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key === "?" && !isTyping(event)) setHelps(true);
      if (!event.altKey || event.ctrlKey || event.metaKey) return;
      const number = Number(event.code.replace("Digit", "")) - 1;
      if (!PAGES[number]) return;
      event.preventDefault();
      location.hash = `#/${PAGES[number][0]}`;
      main.current?.focus();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const Page = PAGES.find(([name]) => name === page)![2];
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to content</a>
      <header>
        <span class="brand"><img src="/assets/icon.svg" alt="" width="22" height="22" /> Handrail</span>
        <nav aria-label="Pages">
          {PAGES.map(([name, title]) => (
            <a href={`#/${name}`} aria-current={name === page ? "page" : undefined}>
              {title}
              {name === "approvals" && seen.waiting.length > 0 && (
                <b class="count" aria-label={`${seen.waiting.length} waiting`}>{seen.waiting.length}</b>
              )}
            </a>
          ))}
        </nav>
        <span class={seen.isConnected ? "state on" : "state"} role="status">
          {seen.isConnected ? "connected" : "connecting…"}
        </span>
        <button class="plain" onClick={() => setHelps(true)} aria-label="Help and devices">?</button>
      </header>
      <main ref={main} id="main" tabIndex={0}>
        <h1 class="unseen">{PAGES.find(([name]) => name === page)![1]}</h1>
        <Page key={page} me={me} chosen={chosen} />
      </main>
      {helps && <Help me={me} onClose={() => setHelps(false)} onLeave={() => void logOut().finally(() => location.reload())} />}
    </>
  );
}

render(<App />, document.getElementById("app")!);
