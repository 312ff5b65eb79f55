// From choices to a merge. The API keeps one side of a row as a whole; where a person chose property
// by property, the branch first takes the target in and gets the chosen values of all rows, as one commit
// each, and is then merged. The target changes only in the last step.
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

export interface Merged {
  outcome: string;
  commit_id: string | null;
  branch_deleted?: boolean;
}

/** What the last step says beside the branches. */
export interface Decided {
  delete_branch: boolean;
  resolve?: { table_key: string; row_id: string | null; take: Side }[];
}

interface Sides {
  source: string;
  target: string;
  /** The last step, the only one that changes the target. */
  send: (decided: Decided, isMixed: boolean) => Promise<Merged>;
  tell: (step: string) => void;
}

export async function merge(sides: Sides, conflicts: Conflict[], choices: Map<string, Choice>, deletes: boolean): Promise<Merged> {
  const { source, target, tell } = sides;
  const decided = conflicts.map((each) => ({ conflict: each, choice: choices.get(conflictKey(each))! }));
  const mixed = decided.filter((each) => wholeSide(each.choice, each.conflict) === null);
  const take = (swaps: boolean) =>
    decided.map(({ conflict, choice }) => {
      const side = wholeSide(choice, conflict) ?? "theirs";
      return { table_key: conflict.table_key, row_id: conflict.row_id, take: swaps ? other(side) : side };
    });
  if (mixed.length > 0) {
    tell(`Taking ${target} into ${source}…`);
    // Seen from the branch the sides are the other way round: "theirs" is what the target has.
    await post("/branches/merge", { source: target, target: source, resolve: take(true) });
    tell(`Writing the chosen values to ${source}…`);
    await post("/mutate", { ...writeValues(mixed as { conflict: Conflict; choice: Record<string, Side> }[]), branch: source });
  }
  tell(`Merging ${source} into ${target}…`);
  return sides.send({ delete_branch: deletes, ...(mixed.length || !decided.length ? {} : { resolve: take(false) }) }, mixed.length > 0);
}

function other(side: Side): Side {
  return side === "ours" ? "theirs" : "ours";
}

/** One commit for all rows. They are the source's by now: what was chosen of the target is written over them. */
function writeValues(mixed: { conflict: Conflict; choice: Record<string, Side> }[]): { query: string; params: Row } {
  const declared: string[] = [];
  const params: Row = {};
  const add = (property: Property, value: unknown) => {
    const name = `v${declared.length}`;
    declared.push(`$${name}: ${parameterType(property)}`);
    params[name] = value;
    return `$${name}`;
  };
  const statements = mixed.map(({ conflict, choice }) => {
    const type = catalog.value!.nodes.find((each) => each.table_key === conflict.table_key)!;
    const find = (name: string) => type.properties.find((each) => each.name === name)!;
    const key = find(type.key[0]);
    const id = add(key, /^[IU](32|64)$/.test(key.type) ? Number(conflict.row_id) : conflict.row_id);
    const names = properties(conflict).filter((name) => choice[name] === "ours");
    const set = names.map((name) => `${name}: ${add(find(name), conflict.ours![name])}`).join(", ");
    return `update ${type.name} set { ${set} } where ${key.name} = ${id}`;
  });
  return { query: `query resolve(${declared.join(", ")}) { ${statements.join(" ")} }`, params };
}

function parameterType(property: Property): string {
  const written = property.type.startsWith("enum") ? "String" : property.type.replace(/^\[enum\(.*\)\]$/, "[String]");
  return property.nullable ? `${written}?` : written;
}
