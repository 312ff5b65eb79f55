// From choices to a merge. The API keeps one side of a row as a whole; where a person chose property
// by property, the branch first takes the target in and gets the chosen values, as one commit each,
// and is then merged. The target changes only in the last step.
import { catalog, get, post } from "./api";
import type { Commit, Conflict, Property, Row } from "./types";

export type Side = "ours" | "theirs";
/** A side for the whole row, or one per property. */
export type Choice = Side | Record<string, Side>;

export function conflictKey(conflict: Conflict): string {
  return `${conflict.table_key}\u0000${conflict.row_id}`;
}

/** The side that a choice comes down to; null where it is mixed or incomplete. */
export function wholeSide(choice: Choice | undefined, conflict: Conflict): Side | null {
  if (choice === undefined || typeof choice === "string") return choice ?? null;
  const sides = new Set(properties(conflict).map((name) => choice[name]));
  const [only] = sides;
  return sides.size === 1 && only !== undefined ? only : null;
}

export function isDecided(choice: Choice | undefined, conflict: Conflict): boolean {
  if (choice === undefined) return false;
  return typeof choice === "string" || properties(conflict).every((name) => choice[name] !== undefined);
}

/** The properties in which the two sides of a conflict differ. */
export function properties(conflict: Conflict): string[] {
  return conflict.ours && conflict.theirs ? Object.keys(conflict.ours) : [];
}

/** Whether values can be chosen one by one: a node that both sides have, which a key finds. */
export function canMix(conflict: Conflict): boolean {
  const type = catalog.value?.nodes.find((each) => each.table_key === conflict.table_key);
  const names = properties(conflict);
  const declared = names.map((name) => type?.properties.find((each) => each.name === name));
  return type !== undefined && type.key.length === 1 && names.length > 1 && declared.every((each) => each !== undefined && !each.is_vector && !each.is_blob);
}

/** What a person would choose who keeps every change that only one side made. */
export function suggest(conflict: Conflict): Record<string, Side> {
  const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
  const found: Record<string, Side> = {};
  for (const name of properties(conflict)) {
    if (conflict.base && same(conflict.base[name], conflict.ours![name])) found[name] = "theirs";
    else if (conflict.base && same(conflict.base[name], conflict.theirs![name])) found[name] = "ours";
  }
  return found;
}

export async function readHead(branch: string): Promise<string> {
  return (await get<{ commits: Commit[] }>("/log", { branch, limit: "1" })).commits[0].graph_commit_id;
}

export interface Heads {
  source: string;
  target: string;
}

export async function readHeads(source: string, target: string): Promise<Heads> {
  const [first, second] = await Promise.all([readHead(source), readHead(target)]);
  return { source: first, target: second };
}

interface Merged {
  outcome: string;
  commit_id: string | null;
  tables: Record<string, { inserted: number; updated: number; deleted: number }>;
  branch_deleted?: boolean;
}

export async function merge(source: string, target: string, conflicts: Conflict[], choices: Map<string, Choice>, deletes: boolean, tell: (step: string) => void): Promise<Merged> {
  const decided = conflicts.map((each) => ({ conflict: each, choice: choices.get(conflictKey(each))! }));
  const mixed = decided.filter((each) => wholeSide(each.choice, each.conflict) === null);
  const take = (swaps: boolean) =>
    decided.map(({ conflict, choice }) => {
      const side = wholeSide(choice, conflict) ?? "theirs";
      return { table_key: conflict.table_key, row_id: conflict.row_id, take: swaps ? (side === "ours" ? "theirs" : "ours") : side };
    });
  if (mixed.length > 0) {
    tell(`Taking ${target} into ${source}…`);
    // Seen from the branch the sides are the other way round: "theirs" is what the target has.
    await post("/branches/merge", { source: target, target: source, resolve: take(true) });
    for (const { conflict, choice } of mixed) {
      tell(`Writing the chosen values of ${conflict.type_name} ${conflict.row_id} to ${source}…`);
      await post("/mutate", { ...writeValues(conflict, choice as Record<string, Side>), branch: source });
    }
  }
  tell(`Merging ${source} into ${target}…`);
  return post<Merged>("/branches/merge", { source, target, delete_branch: deletes, ...(mixed.length || !decided.length ? {} : { resolve: take(false) }) });
}

/** The row is the source's by now: what was chosen of the target is written over it. */
function writeValues(conflict: Conflict, choice: Record<string, Side>): { query: string; params: Row } {
  const type = catalog.value!.nodes.find((each) => each.table_key === conflict.table_key)!;
  const names = properties(conflict).filter((name) => choice[name] === "ours");
  const declared = names.map((name) => type.properties.find((each) => each.name === name)!);
  const key = type.properties.find((each) => each.name === type.key[0])!;
  const params: Row = { id: /^[IU](32|64)$/.test(key.type) ? Number(conflict.row_id) : conflict.row_id };
  names.forEach((name, place) => (params[`v${place}`] = conflict.ours![name]));
  const wanted = declared.map((each, place) => `$v${place}: ${parameterType(each)}`);
  const set = names.map((name, place) => `${name}: $v${place}`).join(", ");
  return { query: `query resolve($id: ${parameterType(key)}, ${wanted.join(", ")}) { update ${type.name} set { ${set} } where ${key.name} = $id }`, params };
}

function parameterType(property: Property): string {
  const written = property.type.startsWith("enum") ? "String" : property.type.replace(/^\[enum\(.*\)\]$/, "[String]");
  return property.nullable ? `${written}?` : written;
}
