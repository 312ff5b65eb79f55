// The parameters of a query as a form, and what was typed there as values.
import { visible } from "../text";
import type { Parameter, Row } from "../types";

const HINTS: Record<string, string> = { date: "2026-04-14", datetime: "2026-04-14T09:30:00Z", list: '["a", "b"]', object: '{"name": …}', vector: "[0.1, 0.2, …]" };

export function Params(props: { params: Parameter[]; given: Record<string, string>; onChange: (given: Record<string, string>) => void }) {
  const set = (name: string, value: string) => props.onChange({ ...props.given, [name]: value });
  return (
    <div class="form">
      {props.params.map((each) => (
        <label key={each.name}>
          <span>${visible(each.name)} <em class="quiet">{each.kind}{each.item_kind ? ` of ${each.item_kind}` : ""}{each.nullable ? "?" : ""}</em></span>
          {each.kind === "bool" ? (
            <select value={props.given[each.name] ?? ""} onChange={(event) => set(each.name, event.currentTarget.value)}>
              <option value="">{each.nullable ? "null" : "–"}</option>
              <option>true</option>
              <option>false</option>
            </select>
          ) : (
            <input name={each.name} value={props.given[each.name] ?? ""} placeholder={each.default ?? HINTS[each.kind] ?? (each.nullable ? "null" : "")} autocomplete="off" spellcheck={false}
              onInput={(event) => set(each.name, event.currentTarget.value)} />
          )}
        </label>
      ))}
    </div>
  );
}

const raw = (JSON as unknown as { rawJSON?: (text: string) => unknown }).rawJSON;

/** What was typed, as the kinds of the parameters say. An empty field is left out. */
export function toValues(params: Parameter[], given: Record<string, string>): Row {
  const values: Row = {};
  for (const { name, kind } of params) {
    const text = given[name] ?? "";
    if (text === "") continue;
    values[name] = toValue(name, kind, text);
  }
  return values;
}

function toValue(name: string, kind: string, text: string): unknown {
  if (kind === "bool") return text === "true";
  if (["int", "bigint", "float"].includes(kind)) {
    if (!/^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text.trim())) throw new Error(`$${name} is ${JSON.stringify(text)}, expected a number`);
    const value = Number(text);
    return Number.isInteger(value) && !Number.isSafeInteger(value) && raw ? raw(text.trim()) : value;
  }
  if (["list", "object", "vector"].includes(kind)) {
    try {
      return JSON.parse(text);
    } catch {
      throw new Error(`$${name} is no JSON, expected such as ${HINTS[kind]}`);
    }
  }
  return text;
}
