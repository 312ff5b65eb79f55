// Where the person is: page, branch and time are in the address, so that it can be shared.
import { computed, effect, signal } from "@preact/signals";
import { base, catalog, get, giveToken, permissions, ROOT, send, ApiError } from "./api";
import type { Catalog, Commit, Permissions, Tag } from "./types";

export const PAGES = ["overview", "query", "explore", "history", "review", "load", "admin"] as const;
export type Page = (typeof PAGES)[number];

interface Route {
  page: Page;
  params: Record<string, string>;
}

function readRoute(): Route {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const page = PAGES.find((each) => each === path) ?? "overview";
  return { page, params: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

/** The token of `omnigraph ui` comes in the fragment, which no server sees, and does not stay there. */
function takeToken(): void {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (found) {
    giveToken(found[1]);
    history.replaceState(null, "", location.pathname);
  }
}
takeToken();

export const route = signal<Route>(readRoute());
addEventListener("hashchange", () => (route.value = readRoute()));

export const branch = computed(() => route.value.params.branch || "main");
/** The revision that is looked at; empty is what the branch shows now. */
export const at = computed(() => route.value.params.at || "");
/** What a read is over, as members of its body. */
export const target = computed(() => (at.value ? { snapshot: at.value } : { branch: branch.value }));
/** The same as a revision, for what takes one name. */
export const revision = computed(() => at.value || branch.value);
/** Grows with every write of this page, so that what shows the graph reads it again. */
export const writes = signal(0);

export const branches = signal<string[]>(["main"]);
export const tags = signal<Tag[]>([]);
export const graphs = signal<string[] | null>(null);
export const graphId = signal<string | null>(null);
export const startError = signal<Error | null>(null);
export const isStarted = signal(false);
export const theme = signal(localStorage.getItem("omnigraph-theme") ?? "auto");

const KEPT = ["branch", "at", "graph"];

export function address(page: Page, params: Record<string, string> = {}): string {
  const kept = Object.fromEntries(KEPT.map((name) => [name, route.value.params[name] ?? ""]));
  const given = Object.entries({ ...kept, ...params }).filter(([name, value]) => value !== "" && !(name === "branch" && value === "main"));
  const query = new URLSearchParams(given).toString();
  return `#/${page}${query ? `?${query}` : ""}`;
}

export function go(page: Page, params: Record<string, string> = {}): void {
  location.hash = address(page, params);
}

/** Change parameters of this page. Replacing does not make an entry of the browser's history. */
export function setParams(params: Record<string, string>, isReplacing = false): void {
  const next = address(route.value.page, { ...route.value.params, ...params });
  if (isReplacing) {
    history.replaceState(null, "", next);
    route.value = readRoute();
  } else location.hash = next;
}

export async function refresh(): Promise<void> {
  const [named, tagged] = await Promise.all([get<{ branches: string[] }>("/branches"), get<{ tags: Tag[] }>("/tags")]);
  branches.value = named.branches;
  tags.value = tagged.tags;
}

export async function wrote(): Promise<void> {
  writes.value += 1;
  await refresh();
}

/** A server of one graph has it at the root; one of several has a list, which not every caller may see. */
async function chooseGraph(): Promise<Permissions> {
  try {
    return await get<Permissions>("/permissions");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  if (!route.value.params.graph || graphs.value === null) {
    try {
      const listed = await (await send("/graphs", {}, ROOT)).json();
      graphs.value = listed.graphs.map((each: { graph_id: string }) => each.graph_id);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      if (!route.value.params.graph) throw new ApiError(403, { error: "This server has several graphs and does not list them to you. Add ?graph=<id> behind #/overview in the address." });
      graphs.value = [route.value.params.graph];
    }
  }
  const wanted = route.value.params.graph || graphs.value?.[0];
  if (!wanted) throw new ApiError(404, { error: "This server serves no graph." });
  graphId.value = wanted;
  base.value = `${ROOT}/graphs/${encodeURIComponent(wanted)}`;
  return get<Permissions>("/permissions");
}

/** Branches may have schemas of their own. */
let typesOf = "";
async function readTypes(): Promise<void> {
  const wanted = branch.value;
  typesOf = wanted;
  const found = await get<Catalog>("/catalog", { branch: wanted });
  if (typesOf === wanted) catalog.value = found;
}
effect(() => {
  if (branch.value !== typesOf && isStarted.value) void readTypes().catch((error) => (startError.value = error));
});

/** Read what every page needs. */
export async function start(): Promise<void> {
  try {
    startError.value = null;
    base.value = ROOT;
    permissions.value = await chooseGraph();
    await Promise.all([readTypes(), refresh()]);
    isStarted.value = true;
  } catch (error) {
    startError.value = error as Error;
  }
}

export function branchOf(commit: Commit): string {
  return commit.manifest_branch ?? "main";
}
