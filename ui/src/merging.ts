// From choices to a merge: one side of a row, or one of each property in which the sides differ.
import { get, post } from "./api";
import type { Commit, Conflict, MergePreview } from "./types";

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

/** Whether values can be chosen one by one: both sides have the row, and differ in several. */
export function canMix(conflict: Conflict): boolean {
  return properties(conflict).length > 1;
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

/** What a merge says beside the branches. */
export interface Decided {
  delete_branch: boolean;
  resolve?: { table_key: string; row_id: string | null; take: Choice }[];
}

/** The choices as the API takes them, of conflicts that are decided; nothing where there was nothing to choose. */
export function decide(conflicts: Conflict[], choices: Map<string, Choice>): Pick<Decided, "resolve"> {
  if (conflicts.length === 0) return {};
  return {
    resolve: conflicts.filter((each) => isDecided(choices.get(conflictKey(each)), each)).map((conflict) => {
      const choice = choices.get(conflictKey(conflict))!;
      return { table_key: conflict.table_key, row_id: conflict.row_id, take: wholeSide(choice, conflict) ?? choice };
    }),
  };
}

/** What the choices made so far would break: conflicts of the merge with them that it has not without them. */
export async function findBroken(source: string, target: string, conflicts: Conflict[], choices: Map<string, Choice>): Promise<Conflict[]> {
  const { resolve } = decide(conflicts, choices);
  if (!resolve?.length) return [];
  const tried = await post<MergePreview>("/branches/merge/preview", { source, target, resolve, changes_max: 0 });
  const known = new Set(conflicts.map((each) => `${conflictKey(each)} ${each.kind}`));
  return tried.conflicts.filter((each) => !known.has(`${conflictKey(each)} ${each.kind}`));
}
