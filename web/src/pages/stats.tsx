// Statistics: calls per minute, duration per tool, tokens and cost.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { get } from "../api";
import { clock, Empty, lasting, money, Trouble, useAnswer, visible } from "../ui";

type Minute = { minute: number; calls: number; errors: number; denied: number };
type ToolTimes = { tool: string; calls: number; errors: number; total: number; waited: number; p50: number; p95: number };
type Day = { day: number; model: string; input_tokens: number | null; output_tokens: number | null; cost: number | null };
// All plotted values are whole numbers.
const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

const COMPACT = new Intl.NumberFormat(undefined, { notation: "compact" });

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
  const days = [...new Set(answer.days.map((each) => each.day))];
  const perDay = (read: (each: Day) => number | null) => days.map((day) => sum(answer.days.filter((each) => each.day === day), read));
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
        {tokens > 0 && <li><b>{tokens.toLocaleString()}</b> tokens in {days.length === 1 ? "a day" : `${days.length} days`}</li>}
        {cost > 0 && <li><b>{money(cost)}</b> cost</li>}
      </ul>
      <h2>Calls per minute</h2>
      <Plot label="Calls, failures and denials per minute" x={minutes.map((each) => each.minute)} lines={[
        ["calls", "--accent", minutes.map((each) => each.calls)], ["failed", "--busy", minutes.map((each) => each.errors)],
        ["denied", "--bad", minutes.map((each) => each.denied)],
      ]} />
      <h2>Duration per tool</h2>
      <p><small>Median, p95 and “ran” are without the time in which a call waited for an answer.</small></p>
      <div class="table" tabIndex={0} role="region" aria-label="Duration per tool"><table>
        <thead><tr><th>tool</th><th>calls</th><th>failed</th><th>median</th><th>p95</th><th>ran</th><th>waited</th><th class="wide-only"><span class="unseen">bar</span></th></tr></thead>
        <tbody>{[...answer.tools].sort((a, b) => b.calls - a.calls).map((each) => (
          <tr><th scope="row">{each.tool}</th><td>{each.calls.toLocaleString()}</td><td>{each.errors}</td><td>{lasting(each.p50)}</td><td>{lasting(each.p95)}</td><td>{lasting(each.total)}</td><td>{lasting(each.waited)}</td>
            <td class="wide-only"><div class="beam" style={{ width: `${(100 * each.p95) / slowest}%` }} /></td></tr>
        ))}</tbody>
      </table></div>
      <h2>Tokens per day</h2>
      {days.length > 0
        ? <><Plot label="Tokens per day" x={days} lines={[
            ["read", "--accent", perDay((each) => each.input_tokens)], ["written", "--busy", perDay((each) => each.output_tokens)],
          ]} /><Costs days={answer.days} /></>
        : <p>No model has been called yet.</p>}
    </div>
  );
}

function sum<T>(items: T[], read: (item: T) => number | null): number {
  return items.reduce((total, each) => total + (read(each) ?? 0), 0);
}

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });

/** What each model cost on each day, the newest first. */
function Costs({ days }: { days: Day[] }) {
  return (
    <>
      <h2>Cost per model and day</h2>
      <div class="table" tabIndex={0} role="region" aria-label="Cost per model and day"><table>
        <thead><tr><th>day</th><th>model</th><th>tokens read</th><th>written</th><th>cost</th></tr></thead>
        <tbody>{[...days].reverse().map((each) => (
          <tr><td>{DATE.format(each.day * 1000)}</td><th scope="row">{visible(each.model)}</th><td>{(each.input_tokens ?? 0).toLocaleString()}</td>
            <td>{(each.output_tokens ?? 0).toLocaleString()}</td><td>{each.cost === null ? "no price known" : money(each.cost)}</td></tr>
        ))}</tbody>
      </table></div>
    </>
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
      const plot = new Uplot({ width: box.current!.clientWidth, height: 200, series: [{}, ...series], axes: [axis, { ...axis, size: 60, incrs: WHOLE, values: (_plot, ticks) => ticks.map((tick) => COMPACT.format(tick)) }], legend: { live: false },
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
