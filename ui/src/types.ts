// The shapes of answers, as `openapi.json` describes them.

export interface Property {
  name: string;
  type: string;
  nullable: boolean;
  is_text: boolean;
  is_vector: boolean;
  is_blob: boolean;
  indexed: boolean;
  embeds: string | null;
  description: string | null;
}

export interface NodeType {
  name: string;
  table_key: string;
  description: string | null;
  key: string[];
  uniques: string[][];
  indexes: string[][];
  properties: Property[];
  interfaces: string[];
}

export interface EdgeType extends Omit<NodeType, "interfaces"> {
  word: string;
  source: string;
  target: string;
  cardinality: string | null;
}

export interface Catalog {
  nodes: NodeType[];
  edges: EdgeType[];
  interfaces: { name: string; types: string[]; properties: Property[] }[];
}

export interface Permissions {
  actor_id: string | null;
  actions: string[];
}

export interface Commit {
  graph_commit_id: string;
  manifest_branch: string | null;
  manifest_version: number;
  parent_commit_id: string | null;
  merged_parent_commit_id: string | null;
  actor_id: string | null;
  created_at: number;
  message: string | null;
}

export interface Snapshot {
  branch: string;
  manifest_version: number;
  tables: { table_key: string; table_version: number; row_count: number }[];
}

export interface Tag {
  name: string;
  commit_id: string;
  branch: string;
  created_at: number;
  actor: string | null;
  message: string | null;
}

export type Row = Record<string, unknown>;

export interface ReadOutput {
  query_name: string;
  row_count: number;
  columns?: string[];
  rows: Row[];
  graph_commit_id?: string;
}

export interface ChangeOutput {
  branch: string;
  query_name: string;
  affected_nodes: number;
  affected_edges: number;
  commit: Commit | null;
  columns?: string[];
  rows?: Row[];
}

export interface Parameter {
  name: string;
  kind: string;
  nullable: boolean;
  item_kind?: string;
  default?: string;
}

export interface Picture {
  query: string;
  nodes: { variable: string; type_column: string; id_column: string; label_column: string | null }[];
  edges: { type: string; id_column: string; source: number; target: number; nodes_column: string | null }[];
}

export interface EditorQuery {
  name: string;
  mutation: boolean;
  start: number;
  end: number;
  params: Parameter[];
  picture: Picture | null;
}

export interface CheckOutput {
  diagnostics: { start: number; end: number; severity: "error" | "warning" | "info"; message: string; code: string | null }[];
  queries: EditorQuery[];
}

export interface StoredQuery {
  name: string;
  description?: string;
  mutation: boolean;
  params: Parameter[];
}

export interface Change {
  kind: "node" | "edge";
  type: string;
  id: string;
  op: "insert" | "update" | "delete";
  endpoints?: { from?: string; to?: string; src?: string; dst?: string };
  before?: Row | null;
  after?: Row | null;
  changed?: string[];
}

export interface Conflict {
  table_key: string;
  row_id: string | null;
  kind: string;
  message: string;
  type_name: string;
  entity_kind: "node" | "edge";
  base: Row | null;
  ours: Row | null;
  theirs: Row | null;
}

export interface MergePreview {
  source: string;
  target: string;
  outcome: "already_up_to_date" | "fast_forward" | "merged";
  changes: { changes: Change[]; stats: { inserts: number; updates: number; deletes: number; types_affected: string[] } };
  conflicts: Conflict[];
  /** Of a merge request: what has to hold on its target. */
  checks?: Check[];
}

/** `holds` is null where only the merge itself can tell. */
export interface Check {
  name: string;
  holds: boolean | null;
}

export interface RequestSummary {
  number: number;
  title: string;
  description: string | null;
  state: "open" | "merged" | "closed";
  source: string;
  target: string;
  author: string | null;
  reviewers: string[];
  created_at: number;
  updated_at: number;
  comment_count: number;
  commit_id: string | null;
  outcome: MergePreview["outcome"] | null;
}

export interface Verdict {
  actor: string;
  verdict: "approved" | "changes_requested";
  at: number;
  text: string | null;
  is_stale: boolean;
  counts: boolean;
}

export interface RequestComment {
  sequence: number;
  actor: string | null;
  at: number;
  text: string | null;
  type: string | null;
  id: string | null;
  property: string | null;
  is_hidden: boolean;
}

export interface MergeRequest extends RequestSummary {
  review: {
    head: string | null;
    source_state: "present" | "deleted" | "replaced";
    target_state: "present" | "deleted";
    verdicts: Verdict[];
    required: number;
    missing: number;
    objectors: string[];
    approvers: string[];
    is_approved: boolean;
  } | null;
  comments: RequestComment[];
  events: { sequence: number; kind: string; actor: string | null; at: number; facts: Row }[];
  event_count: number;
}
