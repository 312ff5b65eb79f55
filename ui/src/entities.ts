// Queries about single nodes, written for the schema that the graph has.
import { catalog, post } from "./api";
import { target } from "./state";
import type { EdgeType, NodeType, Property, ReadOutput, Row } from "./types";

export interface Entity {
  /** Type and id, as one text: ids of different types may be the same. */
  key: string;
  type: string;
  id: string;
  label: string;
  row: Row;
}

export interface Link {
  id: string;
  type: string;
  source: string;
  target: string;
}

const LABELS = ["name", "title", "label", "subject", "text"];
const ID = "entity_id";
const EDGE = "edge_id";

export function keyOf(type: string, id: string): string {
  return `${type}\u0000${id}`;
}

export function nodeType(name: string): NodeType | undefined {
  return catalog.value?.nodes.find((each) => each.name === name);
}

export function edgesOf(type: string): { edge: EdgeType; isOut: boolean }[] {
  return (catalog.value?.edges ?? []).flatMap((edge) => [
    ...(edge.source === type ? [{ edge, isOut: true }] : []),
    ...(edge.target === type ? [{ edge, isOut: false }] : []),
  ]);
}

/** The properties that can be read at a glance: no vectors, no blobs. */
export function shownProperties(type: NodeType): Property[] {
  return type.properties.filter((each) => !each.is_vector && !each.is_blob);
}

function columns(variable: string, type: NodeType): string {
  return [`$${variable} as ${ID}`, ...shownProperties(type).map((each) => `$${variable}.${each.name} as p_${each.name}`)].join(", ");
}

function toEntity(type: string, row: Row): Entity {
  const id = String(row[ID]);
  const values = Object.fromEntries(Object.entries(row).filter(([name]) => name.startsWith("p_")).map(([name, value]) => [name.slice(2), value]));
  const label = LABELS.map((name) => values[name]).find((each) => typeof each === "string" && each !== "") ?? id;
  return { key: keyOf(type, id), type, id, label: String(label), row: values };
}

export type Mode = "text" | "meaning" | "both" | "contains";

/** The ways that the schema lets a type be searched in, the best first. */
export function searchModes(type: NodeType): { mode: Mode; property: string }[] {
  const texts = type.properties.filter((each) => each.is_text && each.indexed);
  const vectors = type.properties.filter((each) => each.is_vector && each.embeds !== null);
  const plain = type.properties.filter((each) => each.is_text);
  const found: { mode: Mode; property: string }[] = [];
  if (texts.length && vectors.length) found.push({ mode: "both", property: texts[0].name });
  found.push(...texts.map((each) => ({ mode: "text" as const, property: each.name })));
  found.push(...vectors.map((each) => ({ mode: "meaning" as const, property: each.name })));
  found.push(...plain.map((each) => ({ mode: "contains" as const, property: each.name })));
  return found;
}

export async function search(type: NodeType, words: string, how: { mode: Mode; property: string } | undefined, most: number): Promise<Entity[]> {
  const vector = type.properties.find((each) => each.is_vector && each.embeds !== null);
  const at = `$x.${how?.property}`;
  const filters = { text: `search(${at}, $text)`, contains: `${at} contains $text`, meaning: "", both: "" };
  const orders = { text: `bm25(${at}, $text) desc`, contains: "", meaning: `nearest(${at}, $text)`, both: vector ? `rrf(nearest($x.${vector.name}, $text), bm25(${at}, $text)) desc` : "" };
  const isSearch = words.trim() !== "" && how !== undefined;
  const order = isSearch ? orders[how.mode] : "";
  const query = `query find(${isSearch ? "$text: String" : ""}) { match { $x: ${type.name} ${isSearch ? filters[how.mode] : ""} } return { ${columns("x", type)} } ${order ? `order { ${order} }` : ""} limit ${most} }`;
  const done = await post<ReadOutput>("/query", { query, params: isSearch ? { text: words } : {}, ...target.value });
  return done.rows.map((row) => toEntity(type.name, row));
}

/** How a node of the type is found by its id: by its key, where that is one property. */
export function findKey(type: NodeType): Property | undefined {
  return type.key.length === 1 ? type.properties.find((each) => each.name === type.key[0]) : undefined;
}

function keyValue(key: Property, id: string): unknown {
  return /^[IU](32|64)$/.test(key.type) ? Number(id) : id;
}

export async function findEntity(type: NodeType, id: string): Promise<Entity | null> {
  const key = findKey(type);
  if (!key) return null;
  const query = `query one($id: ${key.type}) { match { $x: ${type.name} { ${key.name}: $id } } return { ${columns("x", type)} } limit 1 }`;
  const done = await post<ReadOutput>("/query", { query, params: { id: keyValue(key, id) }, ...target.value });
  return done.rows.length ? toEntity(type.name, done.rows[0]) : null;
}

/** What a node is linked to by one edge type in one direction. */
export async function neighbours(of: Entity, edge: EdgeType, isOut: boolean, skip: number, most: number): Promise<{ entities: Entity[]; links: Link[]; total: number }> {
  const type = nodeType(of.type)!;
  const other = nodeType(isOut ? edge.target : edge.source)!;
  const key = findKey(type)!;
  const step = isOut ? `$x $e:${edge.word} $y` : `$y $e:${edge.word} $x`;
  const query = `query near($id: ${key.type}) { match { $x: ${type.name} { ${key.name}: $id } ${step} } return { $e.id as ${EDGE}, ${columns("y", other)} } }`;
  const done = await post<ReadOutput>("/query", { query, params: { id: keyValue(key, of.id) }, ...target.value, rows_skip: skip, rows_max: most });
  const entities = done.rows.map((row) => toEntity(other.name, row));
  const links = done.rows.map((row, place) => {
    const far = entities[place].key;
    return { id: `${edge.name}\u0000${row[EDGE]}`, type: edge.name, source: isOut ? of.key : far, target: isOut ? far : of.key };
  });
  return { entities, links, total: done.row_count };
}
