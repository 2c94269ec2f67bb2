// Statistics: calls per minute, duration per tool, tokens and cost.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { get } from "../api";
import { clock, Empty, lasting, Trouble, useAnswer } from "../ui";

type Minute = { minute: number; calls: number; errors: number; denied: number };
type ToolTimes = { tool: string; calls: number; errors: number; total: number; p50: number; p95: number };
type Day = { day: number; input_tokens: number | null; output_tokens: number | null; cost: number | null };
// All plotted values are whole numbers.
const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

type Answer = { since: number; minutes: Minute[]; tools: ToolTimes[]; days: Day[]; waiting: number };

export function Stats() {
  const { answer, trouble } = useAnswer(() => get<Answer>("/v1/stats"), [], 5);
  if (!answer) return <Trouble text={trouble} />;
  const calls = answer.tools.reduce((sum, each) => sum + each.calls, 0);
  const denied = answer.minutes.reduce((sum, each) => sum + each.denied, 0);
  if (!calls && !answer.days.length) {
    return <Empty title="No data yet"><p>Calls per minute, duration per tool, denials, tokens and cost are shown here
      once there are some. Programs read the same at <code>/metrics</code>.</p></Empty>;
  }
  const tokens = answer.days.reduce((sum, each) => sum + (each.input_tokens ?? 0) + (each.output_tokens ?? 0), 0);
  const cost = answer.days.reduce((sum, each) => sum + (each.cost ?? 0), 0);
  const minutes = filled(answer.minutes);
  const slowest = Math.max(...answer.tools.map((each) => each.p95), 0.001);
  return (
    <div class="page wide">
      <Trouble text={trouble} />
      <ul class="figures">
        <li><b>{calls.toLocaleString()}</b> calls since {clock(answer.since)}</li>
        <li><b>{answer.tools.reduce((sum, each) => sum + each.errors, 0).toLocaleString()}</b> failed</li>
        <li><b>{denied.toLocaleString()}</b> denied</li>
        <li><b>{answer.waiting}</b> waiting</li>
        {tokens > 0 && <li><b>{tokens.toLocaleString()}</b> tokens in {answer.days.length === 1 ? "a day" : `${answer.days.length} days`}</li>}
        {cost > 0 && <li><b>{money(cost)}</b> cost</li>}
      </ul>
      <h2>Calls per minute</h2>
      <Plot label="Calls, failures and denials per minute" x={minutes.map((each) => each.minute)} lines={[
        ["calls", "--accent", minutes.map((each) => each.calls)], ["failed", "--busy", minutes.map((each) => each.errors)],
        ["denied", "--bad", minutes.map((each) => each.denied)],
      ]} />
      <h2>Duration per tool</h2>
      <div class="table"><table>
        <thead><tr><th>tool</th><th>calls</th><th>failed</th><th>median</th><th>p95</th><th class="wide-only"><span class="unseen">bar</span></th></tr></thead>
        <tbody>{[...answer.tools].sort((a, b) => b.calls - a.calls).map((each) => (
          <tr><th scope="row">{each.tool}</th><td>{each.calls.toLocaleString()}</td><td>{each.errors}</td><td>{lasting(each.p50)}</td><td>{lasting(each.p95)}</td>
            <td class="wide-only"><div class="beam" style={{ width: `${(100 * each.p95) / slowest}%` }} /></td></tr>
        ))}</tbody>
      </table></div>
      <h2>Tokens per day</h2>
      {answer.days.length > 0
        ? <Plot label="Tokens per day" x={answer.days.map((each) => each.day)} lines={[
            ["read", "--accent", answer.days.map((each) => each.input_tokens ?? 0)],
            ["written", "--busy", answer.days.map((each) => each.output_tokens ?? 0)],
          ]} />
        : <p>No model has been called yet.</p>}
    </div>
  );
}

/** Minutes without calls have no row; a plot needs them. */
function filled(minutes: Minute[]): Minute[] {
  const known = new Map(minutes.map((each) => [each.minute, each]));
  const last = Math.floor(Date.now() / 60_000) * 60;
  const first = Math.min(minutes[0]?.minute ?? last, last - 14 * 60);
  const all: Minute[] = [];
  for (let minute = first; minute <= last; minute += 60) all.push(known.get(minute) ?? { minute, calls: 0, errors: 0, denied: 0 });
  return all;
}

function Plot({ label, x, lines }: { label: string; x: number[]; lines: [string, string, number[]][] }) {
  const box = useRef<HTMLDivElement>(null);
  const data = [x, ...lines.map(([, , values]) => values)] as [number[], ...number[][]];
  const drawn = useRef<{ setData(data: unknown): void } | null>(null);
  const latest = useRef(data);
  latest.current = data;
  // A layout effect, because other effects are cleaned up only after the box is gone.
  useLayoutEffect(() => {
    let over = () => {};
    let isGone = false;
    void import("uplot").then(({ default: Uplot }) => {
      if (isGone) return;
      const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
      const axis = { stroke: colour("--dim"), grid: { stroke: colour("--edge"), width: 1 }, ticks: { stroke: colour("--edge"), width: 1 } };
      const series = lines.map(([name, variable]) => ({
        label: name, stroke: colour(variable), width: 2, points: { show: x.length < 3 } }));
      const plot = new Uplot({ width: box.current!.clientWidth, height: 200, series: [{}, ...series], axes: [axis, { ...axis, size: 60, incrs: WHOLE }], legend: { live: false },
        scales: { y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] } } }, latest.current, box.current!);
      drawn.current = plot;
      let width = box.current!.clientWidth;
      const sized = new ResizeObserver(() => {
        if (!box.current || box.current.clientWidth === width) return;
        width = box.current.clientWidth;
        plot.setSize({ width, height: 200 });
      });
      sized.observe(box.current!);
      over = () => { sized.disconnect(); plot.destroy(); drawn.current = null; };
    }, () => {}); // without the plot there are still the figures
    return () => { isGone = true; over(); };
  }, []);
  useEffect(() => drawn.current?.setData(data));
  return <div class="plot" ref={box} role="img" aria-label={`${label}: now ${lines.map(([name, , values]) => `${values.at(-1) ?? 0} ${name}`).join(", ")}`} />;
}

function money(cost: number): string {
  return `$${cost.toFixed(cost < 1 ? 4 : 2)}`;
}
