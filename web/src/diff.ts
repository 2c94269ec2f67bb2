// A unified diff as rows: line numbers, signs, and which words of a replaced line have changed.

export type DiffRow = { sign: "+" | "-" | " " | "gap"; number: number; text: string; marked: [number, number] | null };

const PLACE = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

export function diffRows(diff: string): DiffRow[] {
  const rows: DiffRow[] = [];
  const isBare = !/^@@ /m.test(diff); // only changed lines, as of a new file
  let [before, after] = [1, 1];
  // Lines that the hunk still has: a removed line may look like a header.
  let [removable, addable] = isBare ? [Infinity, Infinity] : [0, 0];
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    const place = removable + addable > 0 ? null : PLACE.exec(line);
    if (place) {
      [before, after] = [Number(place[1]), Number(place[3])];
      [removable, addable] = [Number(place[2] ?? 1), Number(place[4] ?? 1)];
      if (rows.length) rows.push({ sign: "gap", number: 0, text: "⋯", marked: null });
    } else if (removable + addable > 0 && !line.startsWith("\\ ")) {
      const sign = line[0] === "+" || line[0] === "-" ? line[0] : " ";
      rows.push({ sign, number: sign === "-" ? before : after, text: line.slice(1), marked: null });
      if (sign !== "+") { before++; removable--; }
      if (sign !== "-") { after++; addable--; }
    }
  }
  markWords(rows);
  return rows;
}

/** Where lines were replaced one by one, mark what differs between the two. */
function markWords(rows: DiffRow[]): void {
  for (let at = 0; at < rows.length;) {
    const removed = run(rows, at, "-");
    const added = run(rows, at + removed, "+");
    if (removed && removed === added) for (let each = 0; each < removed; each++) compare(rows[at + each], rows[at + removed + each]);
    at += Math.max(1, removed + added);
  }
}

function run(rows: DiffRow[], start: number, sign: string): number {
  let end = start;
  while (end < rows.length && rows[end].sign === sign) end++;
  return end - start;
}

function compare(one: DiffRow, other: DiffRow): void {
  const [mine, theirs] = [words(one.text), words(other.text)];
  let head = 0;
  while (head < mine.length && head < theirs.length && mine[head] === theirs[head]) head++;
  let tail = 0;
  while (tail < Math.min(mine.length, theirs.length) - head && mine.at(-1 - tail) === theirs.at(-1 - tail)) tail++;
  if (2 * (head + tail) < Math.min(mine.length, theirs.length)) return; // most of it is new
  const start = mine.slice(0, head).join("").length;
  for (const [row, parts] of [[one, mine], [other, theirs]] as const) {
    const end = parts.slice(0, parts.length - tail).join("").length;
    if (end > start) row.marked = [start, end];
  }
}

/** So many of a diff's lines. Removed ones get the room that the others leave, or a third: what is added must be seen. */
export function firstOfDiff<T>(lines: T[], count: number, isRemoved: (line: T) => boolean): T[] {
  const removed = lines.filter(isRemoved);
  const leftOut = new Set(removed.slice(Math.max(Math.floor(count / 3), count - lines.length + removed.length)));
  return lines.filter((line) => !leftOut.has(line)).slice(0, count);
}

function words(text: string): string[] {
  return text.match(/\w+|\s+|[^\w\s]/gu) ?? [];
}
