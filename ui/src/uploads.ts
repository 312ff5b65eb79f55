// What a dropped file seems to hold, and the form that loads it.
import { catalog } from "./api";

export const RECORDS = "";
export const IGNORED = "\u0000";
const PEEK_BYTES = 65_536;
const SAMPLES = 5;

export interface Dropped {
  file: File;
  type: string;
  columns: string[];
  samples: string[][];
  /** Column to property, `from`, `to`, or left out. */
  mapping: Record<string, string>;
}

function splitLine(line: string, delimiter: string): string[] {
  const cells: string[] = [];
  let cell = "";
  let isQuoted = false;
  for (let place = 0; place < line.length; place++) {
    const each = line[place];
    if (isQuoted && each === '"' && line[place + 1] === '"') cell += line[++place];
    else if (each === '"') isQuoted = !isQuoted;
    else if (each === delimiter && !isQuoted) (cells.push(cell), (cell = ""));
    else cell += each;
  }
  return [...cells, cell];
}

function peekCsv(text: string): { columns: string[]; samples: string[][] } {
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/).filter((each) => each !== "");
  if (lines.length === 0) return { columns: [], samples: [] };
  const delimiter = [",", ";", "\t", "|"].reduce((best, each) => (lines[0].split(each).length > lines[0].split(best).length ? each : best));
  const columns = splitLine(lines[0], delimiter).map((each) => each.trim());
  return { columns, samples: lines.slice(1, SAMPLES + 1).map((each) => splitLine(each, delimiter)) };
}

function peekJson(text: string): { columns: string[]; samples: string[][]; isRecords: boolean } {
  const rows = text.split("\n").map((each) => each.trim().replace(/^\[|,$|\]$/g, "")).filter((each) => each.startsWith("{")).slice(0, SAMPLES);
  const values = rows.flatMap((each) => {
    try {
      return [JSON.parse(each) as Record<string, unknown>];
    } catch {
      return [];
    }
  });
  const columns = [...new Set(values.flatMap((each) => Object.keys(each)))];
  const isRecords = values.length > 0 && values.every((each) => "data" in each && ("type" in each || "edge" in each));
  return { columns, samples: values.map((row) => columns.map((name) => (row[name] === undefined ? "" : typeof row[name] === "string" ? (row[name] as string) : JSON.stringify(row[name])))), isRecords };
}

const plain = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, "");

/** The type that a file is named after, or whose properties its columns fit best. */
function guessType(name: string, columns: string[]): string {
  const types = [...catalog.value!.nodes, ...catalog.value!.edges];
  const stem = plain(name.replace(/\.(csv|tsv|txt|json|jsonl|ndjson|parquet|arrow|feather)(\.gz|\.zst)?$/i, "").replace(/^(node|edge)\./, ""));
  const named = types.find((each) => stem === plain(each.name) || stem === `${plain(each.name)}s`);
  if (named) return named.name;
  const fit = (each: (typeof types)[number]) => columns.filter((column) => each.properties.some((property) => plain(property.name) === plain(column))).length;
  const best = types.reduce<(typeof types)[number] | undefined>((before, each) => (fit(each) > (before ? fit(before) : 0) ? each : before), undefined);
  return best?.name ?? types[0]?.name ?? RECORDS;
}

export function guessMapping(type: string, columns: string[]): Record<string, string> {
  const found = [...catalog.value!.nodes, ...catalog.value!.edges].find((each) => each.name === type);
  const names = [...(found && "source" in found ? ["from", "to"] : []), ...(found?.properties.map((each) => each.name) ?? [])];
  return Object.fromEntries(columns.map((column) => [column, names.find((each) => each === column) ?? names.find((each) => plain(each) === plain(column)) ?? IGNORED]));
}

export async function describe(file: File): Promise<Dropped> {
  const isText = /\.(csv|tsv|txt|json|jsonl|ndjson)$/i.test(file.name);
  const text = isText ? await file.slice(0, PEEK_BYTES).text() : "";
  const isJson = /\.(json|jsonl|ndjson)$/i.test(file.name);
  const peeked = isJson ? peekJson(text) : { ...peekCsv(text), isRecords: false };
  const type = peeked.isRecords ? RECORDS : guessType(file.name, peeked.columns);
  return { file, type, columns: peeked.columns, samples: peeked.samples, mapping: guessMapping(type, peeked.columns) };
}

function needsMapping(each: Dropped): boolean {
  return each.type !== RECORDS && each.columns.some((column) => each.mapping[column] !== column);
}

/** The form of the load: files by type, or a mapping with all of them as data. */
export function toForm(files: Dropped[]): FormData {
  const form = new FormData();
  const mapped = files.filter(needsMapping);
  if (mapped.length > 0) {
    const entries = files.filter((each) => each.type !== RECORDS).map((each) => ({
      file: each.file.name,
      type: each.type,
      columns: Object.fromEntries(each.columns.filter((column) => !["from", "to", IGNORED].includes(each.mapping[column]) && each.mapping[column] !== column).map((column) => [column, each.mapping[column]])),
      ...Object.fromEntries(["from", "to"].flatMap((end) => each.columns.filter((column) => each.mapping[column] === end).map((column) => [end, column]))),
      ignore: each.columns.filter((column) => each.mapping[column] === IGNORED),
    })).map((entry) => Object.fromEntries(Object.entries(entry).filter(([, value]) => typeof value === "string" || Object.keys(value).length > 0)));
    // JSON is YAML: nothing that a column is called can be read as something else.
    form.append("mapping", new Blob([JSON.stringify({ files: entries })], { type: "application/yaml" }), "load.yaml");
  }
  for (const each of files) {
    const field = mapped.length > 0 || each.type === RECORDS ? "data" : each.type;
    form.append(field, each.file, each.file.name);
  }
  return form;
}
