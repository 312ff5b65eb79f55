// How values become text. Whatever a graph holds is shown as text, and what cannot be seen is
// spelled out: a control or direction mark must not hide or reorder what a person reads.

const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]/g;

export function visible(text: string): string {
  return text.replace(UNSEEN, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function show(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return visible(value);
  if (typeof value === "object") return visible(JSON.stringify(value));
  return String(value);
}

export function brief(value: unknown, most = 160): string {
  const text = show(value);
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : noun.endsWith("s") || noun.endsWith("ch") ? "es" : "s"}`;
}

/** Microseconds since 1970 as a local time. */
export function moment(microseconds: number): string {
  const date = new Date(microseconds / 1000);
  const two = (part: number) => String(part).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function ago(microseconds: number): string {
  const seconds = Math.max(0, (Date.now() - microseconds / 1000) / 1000);
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]] as const) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  }
  return "just now";
}

export function shortId(id: string): string {
  return id.length > 10 ? id.slice(-8).toLowerCase() : id;
}

/** Offsets of the server count characters; those of the browser count UTF-16 units. */
export function toCharacters(text: string, units: number): number {
  return [...text.slice(0, units)].length;
}

export function toUnits(text: string, characters: number): number {
  let units = 0;
  let left = characters;
  for (const each of text) {
    if (left-- <= 0) break;
    units += each.length;
  }
  return units;
}
