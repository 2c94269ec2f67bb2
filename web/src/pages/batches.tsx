// Batches: how far each is, what it costs, what failed, and its open questions.
import { useState } from "preact/hooks";
import { ask, get } from "../api";
import type { Batch, Failure, PageProps } from "../types";
import { countdown, Empty, money, Rows, Split, Tag, Trouble, useAnswer, visible } from "../ui";
import { useWatch } from "../watch";
import { Card } from "./approvals";

const REFRESH_SECONDS = 2;
const KINDS: Record<string, string> = { running: "busy", stopping: "busy", done: "good", unreadable: "bad" };

export function Batches({ me, chosen }: PageProps) {
  const { answer, trouble, again } = useAnswer(() => get<{ batches: Batch[] }>("/v1/batches"), [], REFRESH_SECONDS);
  return (
    <Split onBack={() => { location.hash = "#/batches"; }}
      detail={chosen ? <Details key={chosen} id={chosen} me={me} onChanged={again} /> : null}
      list={<>
        <Trouble text={trouble} />
        {answer && !answer.batches.length && (
          <Empty title="No batches yet"><p>A batch runs a file of tasks, each an agent session of its own, on this machine or a
            cluster. Start one with <code>handrail batch tasks.jsonl --out run1</code>; its progress, cost, failures and open
            questions are shown here.</p></Empty>
        )}
        {answer && answer.batches.length > 0 && (
          <Rows items={answer.batches} height={76} label="Batches" keyOf={(each) => each.id} chosen={chosen || null}
            onChoose={(each) => { location.hash = `#/batches/${each.id}`; }} row={(each) => (
              <><div class="line"><b class="one-line">{visible(name(each))}</b><Tag kind={KINDS[each.state]}>{each.state}</Tag>
                {each.questions > 0 && <Tag kind="bad">{`${each.questions} open`}</Tag>}
                <span class="left">{each.engine}</span></div>
                <Bar batch={each} />
                <div class="cut">{figures(each)}</div></>
            )} />
        )}
      </>} />
  );
}

function Details({ id, me, onChanged }: { id: string; me: PageProps["me"]; onChanged: () => void }) {
  const path = `/v1/batches/${encodeURIComponent(id)}`;
  const { answer, trouble, again } = useAnswer(() => get<{ batch: Batch; failures: Failure[] }>(path), [path], REFRESH_SECONDS);
  const [refused, setRefused] = useState("");
  const [isStopping, setStopping] = useState(false);
  const { waiting } = useWatch();
  if (!answer) return <Trouble text={trouble} />;
  const { batch, failures } = answer;
  const questions = waiting.filter((each) => each.session?.startsWith(`batch-${id}-`));
  const stop = () => {
    setStopping(true);
    ask("POST", `${path}/stop`).then(() => setRefused(""), (error: Error) => setRefused(error.message))
      .finally(() => { setStopping(false); again(); onChanged(); });
  };
  return (
    <>
      <h2>{visible(name(batch))} <Tag kind={KINDS[batch.state]}>{batch.state}</Tag></h2>
      <p><code>{visible(batch.folder)}</code></p>
      <Trouble text={trouble || refused || batch.problem} />
      <Bar batch={batch} />
      <ul class="figures">
        <li><b>{ended(batch).toLocaleString()}</b> of {total(batch).toLocaleString()} tasks</li>
        <li><b>{batch.running ?? 0}</b> running</li>
        <li><b>{batch.failed ?? 0}</b> failed</li>
        <li><b>{rate(batch) || "–"}</b> throughput</li>
        <li><b>{batch.cost === null ? "–" : money(batch.cost)}</b> cost</li>
        <li><b>{batch.eta === null ? "–" : countdown(batch.eta)}</b> ETA</li>
        <li><b>{(batch.tokens ?? 0).toLocaleString()}</b> tokens</li>
        {batch.mean_reward !== null && <li><b>{batch.mean_reward.toFixed(2)}</b> mean reward</li>}
      </ul>
      {batch.state === "running" && me.role === "operate" && <button class="deny" disabled={isStopping} onClick={stop}>Stop batch</button>}
      {batch.state === "stopped" && <p>Continue with <code>handrail batch resume {visible(batch.folder)}</code>.</p>}
      <h3>Open questions</h3>
      {questions.map((each) => <Card key={each.id} question={each} mayAnswer={me.role !== "watch"} onAnswered={() => {}} />)}
      {!questions.length && <p>None.</p>}
      <h3>Failed tasks</h3>
      {failures.length > 0 ? (
        <div class="table" tabIndex={0} role="region" aria-label="Failed tasks"><table>
          <thead><tr><th>task</th><th>attempts</th><th>worker</th><th>why</th></tr></thead>
          <tbody>{failures.map((each) => (
            <tr><th scope="row">{visible(each.id)}</th><td>{each.attempt}</td><td>{visible(each.worker)}</td><td class="prose">{visible(each.error)}</td></tr>
          ))}</tbody>
        </table></div>
      ) : <p>None.</p>}
    </>
  );
}

function Bar({ batch }: { batch: Batch }) {
  const whole = total(batch);
  return <progress value={ended(batch)} max={whole || 1} aria-label={`${ended(batch)} of ${whole} tasks ended`} />;
}

function ended(batch: Batch): number {
  return (batch.done ?? 0) + (batch.failed ?? 0);
}

function total(batch: Batch): number {
  return ended(batch) + (batch.waiting ?? 0) + (batch.running ?? 0);
}

function name(batch: Batch): string {
  return batch.folder.split("/").pop() || batch.id;
}

function rate(batch: Batch): string {
  return batch.per_second ? `${batch.per_second.toFixed(batch.per_second < 1 ? 2 : 1)}/s` : "";
}

function figures(batch: Batch): string {
  const parts = [`${ended(batch)}/${total(batch)}`, batch.failed ? `${batch.failed} failed` : "", batch.running ? `${batch.running} running` : "",
    rate(batch), batch.cost === null ? "" : money(batch.cost), batch.eta === null ? "" : `ETA ${countdown(batch.eta)}`];
  return batch.problem || parts.filter(Boolean).join(" · ");
}
