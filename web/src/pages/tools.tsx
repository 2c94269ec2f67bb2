// All tools: what each needs, its schema, and a form to try it.
import { useMemo, useRef, useState } from "preact/hooks";
import { get, streamEvents, type Fields } from "../api";
import type { PageProps, Schema, Tool } from "../types";
import { Empty, pretty, Rows, Split, Tag, Text, Trouble, useAnswer, visible } from "../ui";

export function Tools({ me, chosen }: PageProps) {
  const { answer, trouble } = useAnswer(() => get<{ tools: Tool[] }>("/v1/tools"), []);
  const [wanted, setWanted] = useState("");
  const tools = answer?.tools ?? [];
  const shown = useMemo(() => {
    const words = wanted.toLowerCase().split(/\s+/);
    const fits = (tool: Tool) => words.every((word) => `${tool.name} ${tool.toolset} ${tool.description}`.toLowerCase().includes(word));
    return tools.filter(fits).sort((a, b) => a.toolset.localeCompare(b.toolset) || a.name.localeCompare(b.name));
  }, [tools, wanted]);
  const tool = tools.find((each) => each.name === chosen);
  if (trouble) return <Trouble text={trouble} />;
  if (answer && !tools.length) return <Empty title="No tools"><p>Name a toolset in the config: <code>handrail toolsets</code> lists them.</p></Empty>;
  return (
    <Split onBack={() => { location.hash = "#/tools"; }}
      detail={tool ? <Detail key={tool.name} tool={tool} mayRun={me.role === "operate"} /> : null}
      list={<>
        <div class="line bar">
          <input type="search" aria-label="Find tools" placeholder="Find a tool" value={wanted}
            onInput={(event) => setWanted(event.currentTarget.value)} />
          <small role="status">{shown.filter((each) => each.available).length} of {shown.length} can be used</small>
        </div>
        <Rows items={shown} height={54} label="Tools" keyOf={(each) => each.name} chosen={chosen || null}
          onChoose={(each) => { location.hash = `#/tools/${encodeURIComponent(each.name)}`; }} row={(each) => (
            <>
              <div class="line"><b>{each.name}</b>
                {!each.available && <Tag kind="bad">not available</Tag>}<span class="left">{each.toolset}</span></div>
              <div class="cut">{visible(each.available ? each.description : each.reason)}</div>
            </>
          )} />
      </>} />
  );
}

function Detail({ tool, mayRun }: { tool: Tool; mayRun: boolean }) {
  return (
    <>
      <h2>{tool.name} {tool.available ? <Tag kind="good">available</Tag> : <Tag kind="bad">not available</Tag>}
        {!tool.offered && <> <Tag>not offered to the model now</Tag></>}</h2>
      <p>{visible(tool.description)}</p>
      {!tool.available && <div class="trouble"><p>{visible(tool.reason)}</p>{tool.fix && <p>To enable it: <code>{visible(tool.fix)}</code></p>}</div>}
      {tool.available && (mayRun ? <Try tool={tool} /> : <p>To try it you need the role “operate”.</p>)}
      <details><summary>Schema shown to the model</summary><Text value={tool.parameters} label="Schema" /></details>
    </>
  );
}

function Try({ tool }: { tool: Tool }) {
  const fields = Object.entries(tool.parameters.properties ?? {});
  const required = new Set(tool.parameters.required ?? []);
  const [values, setValues] = useState<Record<string, string | boolean>>({});
  const [progress, setProgress] = useState<string[]>([]);
  const [result, setResult] = useState<unknown>(undefined);
  const [trouble, setTrouble] = useState("");
  const [isRunning, setRunning] = useState(false);
  const stop = useRef<AbortController | null>(null);

  async function run(event: Event) {
    event.preventDefault();
    setTrouble(""); setProgress([]); setResult(undefined);
    try {
      const args: Fields = {};
      for (const [name, schema] of fields) {
        const value = read(name, schema, values[name]);
        if (value !== undefined) args[name] = value;
      }
      setRunning(true);
      stop.current = new AbortController();
      const body = { tool: tool.name, arguments: args, stream: true, task: "console" };
      for await (const [kind, data] of streamEvents("/v1/calls", body, stop.current.signal)) {
        if (kind === "progress") setProgress((before) => [...before.slice(-199), String(data.message)]);
        if (kind === "result") setResult(data.result);
      }
    } catch (error) {
      setTrouble(stop.current?.signal.aborted ? "Stopped." : (error as Error).message);
    }
    setRunning(false);
  }
  return (
    <form class="try" onSubmit={(event) => void run(event)}>
      <h3>Try it</h3>
      {fields.map(([name, schema]) => (
        <Field key={name} name={name} schema={schema} required={required.has(name)} value={values[name]}
          onChange={(value) => setValues((before) => ({ ...before, [name]: value }))} />
      ))}
      <p class="line">
        <button class="main" disabled={isRunning}>{isRunning ? "Running…" : "Run"}</button>
        {isRunning && <button type="button" onClick={() => stop.current?.abort()}>Stop</button>}
        <small>Dangerous calls wait on <a href="#/approvals">Approvals</a>, even your own.</small>
      </p>
      <Trouble text={trouble} />
      {progress.length > 0 && <Text value={progress.join("\n")} label="Progress" />}
      {result !== undefined && <div role="status"><h3>Result</h3><Text value={result} label="Result" /></div>}
    </form>
  );
}

function Field({ name, schema, required, value, onChange }: {
  name: string; schema: Schema; required: boolean; value: string | boolean | undefined; onChange: (value: string | boolean) => void;
}) {
  const kind = kindOf(schema);
  const hint = schema.default === undefined ? "" : `default: ${pretty(schema.default)}`;
  const typed = (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value);
  const about = <span>{name}{required && <b title="required"> *</b>} <small>{visible(schema.description ?? "")}</small></span>;
  if (kind === "boolean") {
    const isOn = value ?? schema.default === true;
    return <label class="check"><input type="checkbox" checked={Boolean(isOn)} onChange={(event) => onChange(event.currentTarget.checked)} /> {about}</label>;
  }
  return (
    <label>{about}
      {schema.enum ? (
        <select value={String(value ?? "")} required={required} onChange={typed}>
          <option value="">{hint || "…"}</option>{schema.enum.map((each) => <option>{String(each)}</option>)}
        </select>
      ) : kind === "integer" || kind === "number" ? (
        <input type="number" step={kind === "integer" ? 1 : "any"} min={schema.minimum} max={schema.maximum} required={required}
          placeholder={hint} value={String(value ?? "")} onInput={typed} />
      ) : (
        <textarea rows={kind === "string" ? 1 : 3} required={required} placeholder={kind === "string" ? hint : `JSON ${hint}`}
          value={String(value ?? "")} onInput={typed} />
      )}
    </label>
  );
}

function kindOf(schema: Schema): string {
  const kinds = [schema.type ?? "json"].flat().filter((kind) => kind !== "null");
  return kinds.length === 1 ? kinds[0] : "json";
}

/** A field's value for the call; undefined if it was left out. */
function read(name: string, schema: Schema, value: string | boolean | undefined) {
  if (value === undefined || value === "") return undefined;
  const kind = kindOf(schema);
  if (typeof value === "boolean") return value;
  if (kind === "string" && !schema.enum) return value;
  if (schema.enum) return schema.enum.find((each) => String(each) === value);
  try {
    return JSON.parse(value) as Fields;
  } catch {
    throw new Error(`${name} is not JSON; strings in it need "quotes"`);
  }
}
