// One conflict: what the value was, what each side has, and the choice between them.
import { canMix, type Choice, conflictKey, isDecided, properties, type Side, suggest, wholeSide } from "../merging";
import { brief } from "../text";
import type { Conflict } from "../types";
import { Text } from "./basics";

export const RULES = ["orphan_edge", "unique_violation", "cardinality_violation", "value_constraint_violation"];
const KINDS: Record<string, string> = {
  divergent_update: "both sides changed it", divergent_insert: "both sides added it", delete_vs_update: "one side deleted it, the other changed it",
  orphan_edge: "an edge would lose its node", unique_violation: "a value would be there twice", cardinality_violation: "too many edges", value_constraint_violation: "a value breaks a rule", embedding_models: "vectors of two models",
};

export function Decision(props: { conflict: Conflict; choice: Choice | undefined; broken: Conflict[]; source: string; target: string; onChoose: (choice: Choice) => void }) {
  const { conflict, choice, onChoose } = props;
  const names = properties(conflict);
  const isMixable = canMix(conflict);
  const suggestion = suggest(conflict);
  const whole = wholeSide(choice, conflict);
  const sideOf = (name: string): Side | undefined => (typeof choice === "string" ? choice : choice?.[name]);
  const pick = (name: string, side: Side) => {
    if (!isMixable) return onChoose(side);
    const before = typeof choice === "string" ? Object.fromEntries(names.map((each) => [each, choice])) : (choice ?? suggestion);
    onChoose({ ...before, [name]: side });
  };
  const group = conflictKey(conflict);
  return (
    <fieldset class="decision">
      <legend><strong>{conflict.type_name} <Text value={conflict.row_id ?? ""} /></strong> <span class="quiet">{KINDS[conflict.kind] ?? conflict.kind}</span></legend>
      <p class="quiet"><Text value={conflict.message} /></p>
      <div class="pair">
        <label><input type="radio" name={`${group} whole`} checked={whole === "ours"} onChange={() => onChoose("ours")} /> keep all of {props.target}</label>
        <label><input type="radio" name={`${group} whole`} checked={whole === "theirs"} onChange={() => onChoose("theirs")} /> take all of {props.source}</label>
        {isMixable && Object.keys(suggestion).length > 0 && <button onClick={() => onChoose({ ...(typeof choice === "object" ? choice : {}), ...suggestion })}>keep what only one side changed</button>}
      </div>
      {names.length > 0 && (
        <table class="plain">
          <thead><tr><th>property</th><th>was</th><th>{props.target}</th><th>{props.source}</th></tr></thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <td><code>{name}</code></td>
                <td class="quiet"><bdi>{conflict.base ? shown(conflict.base[name]) : "–"}</bdi></td>
                {(["ours", "theirs"] as const).map((side) => (
                  <td key={side} class={sideOf(name) === side ? "taken" : ""}>
                    <label><input type="radio" name={`${group} ${name}`} aria-label={`${name}: ${side === "ours" ? props.target : props.source}`} checked={sideOf(name) === side} onChange={() => pick(name, side)} /> <bdi>{shown(conflict[side]![name])}</bdi></label>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {props.broken.map((each) => <p key={each.message} class="note bad" role="alert">{KINDS[each.kind] ?? each.kind}: <Text value={each.message} /></p>)}
      {choice !== undefined && whole === null && isDecided(choice, conflict) && <p class="quiet">Mixed: the merge writes a row with these values.</p>}
    </fieldset>
  );
}

function shown(value: unknown): string {
  return value === null || value === undefined ? "null" : brief(value, 300);
}
