// The policy: check a command, the rules, lasting approvals, and simulating another policy on past actions.
import { useState } from "preact/hooks";
import { ask, get } from "../api";
import type { PageProps, Piece } from "../types";
import { answeredBy, clock, Command, Tag, Trouble, useAnswer, visible } from "../ui";
import { useWatch, watch } from "../watch";

type Rule = { id: string; severity: string; why: string; match: string[]; spare: string[] };
type Verdict = { verdict: string; findings: { rule: string; severity: string; why: string }[]; pieces: Piece[] };
type Trial = { at: number; tool: string; text: string; was: string; would: string; rules: string[] };
type Simulated = { counts: Record<string, unknown>; changed: Trial[] };
type Decided = { tool: string; text: string; decision: string; by: string; why: string };

const SAYS: Record<string, string> = { allow: "It would run.", ask: "It would ask first.", block: "It would be blocked, without asking." };
const KINDS: Record<string, string> = { allow: "good", ask: "busy", block: "bad" };

export function Policy({ me, chosen }: PageProps) {
  return (
    <div class="page wide">
      <div class="columns">
        <div><Check /><Allowed mayRevoke={me.role !== "watch"} /><Decisions /></div>
        <div><Simulate /><Rules chosen={chosen} /></div>
      </div>
    </div>
  );
}

function Check() {
  const [command, setCommand] = useState("");
  const [found, setFound] = useState<Verdict | null>(null);
  const [trouble, setTrouble] = useState("");
  function check(event: Event) {
    event.preventDefault();
    ask<Verdict>("POST", "/v1/policy/check", { command }).then(
      (answer) => { setFound(answer); setTrouble(""); }, (error: Error) => setTrouble(error.message));
  }
  return (
    <section>
      <h2>What would this command do?</h2>
      <form onSubmit={check}>
        <textarea rows={2} aria-label="Command" required placeholder="rm -rf build && git push --force" value={command}
          onInput={(event) => setCommand(event.currentTarget.value)}
          onKeyDown={(event) => { if (event.key === "Enter" && !event.shiftKey) check(event); }} />
        <button class="main">Check</button> <small>Nothing is run.</small>
      </form>
      <Trouble text={trouble} />
      {found && (
        <div role="status">
          <p><Tag kind={KINDS[found.verdict]}>{found.verdict}</Tag> {SAYS[found.verdict]}</p>
          <Command pieces={found.pieces} />
          <ul>{found.findings.map((each) => <li><a href={`#/policy/${each.rule}`}>{each.rule}</a> {each.why}</li>)}</ul>
        </div>
      )}
    </section>
  );
}

function Allowed({ mayRevoke }: { mayRevoke: boolean }) {
  const { grants, always } = useWatch();
  const [trouble, setTrouble] = useState("");
  const revoke = (id: string) => ask("DELETE", `/v1/grants/${encodeURIComponent(id)}`).then(
    () => { setTrouble(""); void watch.refreshApprovals(); }, (error: Error) => setTrouble(error.message));
  const rows = [
    ...always.map((key) => ({ id: key, key, about: "always" })),
    ...grants.map((each) => ({
      id: each.id, key: each.key,
      about: [each.scope, `by ${answeredBy(each.by)}`, each.uses_left === null ? "" : `${each.uses_left} uses left`,
        each.expires_at === null ? "" : `until ${clock(each.expires_at)}`].filter(Boolean).join(" · "),
    })),
  ];
  return (
    <section>
      <h2>Allowed without asking</h2>
      {!rows.length && <p>Nothing. What you allow for a task, a session or always is listed here, and can be revoked.</p>}
      <ul class="plain-list">
        {rows.map((row) => (
          <li class="line"><span class="grow"><code>{visible(row.key)}</code> <small>{row.about}</small></span>
            {mayRevoke && <button onClick={() => void revoke(row.id)} aria-label={`Revoke ${row.key}`}>Revoke</button>}</li>
        ))}
      </ul>
      <Trouble text={trouble} />
    </section>
  );
}

function Decisions() {
  const { waiting } = useWatch();
  const { answer } = useAnswer(() => get<{ decisions: Decided[] }>("/v1/decisions?limit=30"), [waiting.length]);
  const decisions = answer?.decisions ?? [];
  return (
    <section>
      <h2>Decisions</h2>
      {!decisions.length && <p>None yet. Decisions are listed here with who made them and the rule.</p>}
      <ul class="plain-list">
        {[...decisions].reverse().map((each) => (
          <li><Tag kind={/deny|denied|block/.test(each.decision) ? "bad" : "good"}>{each.decision}</Tag> <code>{visible(each.text)}</code>{" "}
            <small>by {answeredBy(each.by)}{each.why && `: ${visible(each.why)}`}</small></li>
        ))}
      </ul>
    </section>
  );
}

function Simulate() {
  const [policy, setPolicy] = useState("");
  const [found, setFound] = useState<Simulated | null>(null);
  const [trouble, setTrouble] = useState("");
  function simulate(event: Event) {
    event.preventDefault();
    ask<Simulated>("POST", "/v1/policy/simulate", { policy }).then(
      (answer) => { setFound(answer); setTrouble(""); }, (error: Error) => { setFound(null); setTrouble(error.message); });
  }
  return (
    <section>
      <h2>What would another policy have done?</h2>
      <form onSubmit={simulate}>
        <textarea rows={4} aria-label="Policy as config.yaml" placeholder={"approvals:\n  mode: manual"} value={policy}
          onInput={(event) => setPolicy(event.currentTarget.value)} />
        <button>Simulate on past actions</button> <small>The text of a config.yaml. Nothing is changed.</small>
      </form>
      <Trouble text={trouble} />
      {found && (
        <div role="status">
          <p>{Object.entries(found.counts).map(([name, count]) => `${name}: ${String(count)}`).join(" · ") || "No past actions yet."}</p>
          {found.changed.length === 0 && <p>Nothing would have been different.</p>}
          <ul>{found.changed.map((each) => <li><code>{visible(each.text)}</code> was {each.was}, would {each.would}</li>)}</ul>
        </div>
      )}
    </section>
  );
}

function Rules({ chosen }: { chosen: string }) {
  const { answer, trouble } = useAnswer(() => get<{ rules: Rule[] }>("/v1/policy/rules"), []);
  const [wanted, setWanted] = useState("");
  const rules = (answer?.rules ?? []).filter((rule) => `${rule.id} ${rule.why}`.toLowerCase().includes(wanted.toLowerCase()));
  return (
    <section>
      <h2>Rules</h2>
      <input type="search" aria-label="Find rules" placeholder="Find a rule" value={wanted}
        onInput={(event) => setWanted(event.currentTarget.value)} />
      <small role="status"> {rules.length} rules</small>
      <Trouble text={trouble} />
      {rules.map((rule) => (
        <details key={rule.id} open={rule.id === chosen} ref={(made) => { if (made && rule.id === chosen) made.scrollIntoView({ block: "center" }); }}>
          <summary><Tag kind={KINDS[rule.severity]}>{rule.severity}</Tag> <b>{rule.id}</b> {rule.why}</summary>
          <h3>Matches</h3><ul>{rule.match.map((each) => <li><code>{visible(each)}</code></li>)}</ul>
          <h3>Does not match</h3><ul>{rule.spare.map((each) => <li><code>{visible(each)}</code></li>)}</ul>
        </details>
      ))}
    </section>
  );
}
