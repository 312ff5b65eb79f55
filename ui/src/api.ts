// Requests to the HTTP API. A missing or expired token is asked for and the request sent again; a
// server that does not answer is watched until it does. Neither loses what a page holds.
import { signal } from "@preact/signals";
import type { Catalog, Permissions } from "./types";

export interface ErrorBody {
  error: string;
  code?: string;
  merge_conflicts?: { message: string }[];
}

export class ApiError extends Error {
  constructor(readonly status: number, readonly body: ErrorBody) {
    super(body.error);
  }
}

const TOKEN = "omnigraph-token";
/** The path of the page: the API is beside it, also behind a proxy. */
export const ROOT = new URL(".", location.href).pathname.replace(/\/$/, "");

export const base = signal(ROOT);
export const token = signal(sessionStorage.getItem(TOKEN));
export const isTokenAsked = signal(false);
export const isOffline = signal(false);
export const catalog = signal<Catalog | null>(null);
export const permissions = signal<Permissions | null>(null);

let whenGiven: { promise: Promise<void>; resolve: () => void } | null = null;

function askToken(): Promise<void> {
  if (whenGiven === null) {
    let resolve = () => {};
    const promise = new Promise<void>((done) => (resolve = done));
    whenGiven = { promise, resolve };
    isTokenAsked.value = true;
  }
  return whenGiven.promise;
}

export function giveToken(text: string): void {
  sessionStorage.setItem(TOKEN, text);
  token.value = text;
  isTokenAsked.value = false;
  whenGiven?.resolve();
  whenGiven = null;
}

let watch: ReturnType<typeof setTimeout> | undefined;

function watchServer(): void {
  isOffline.value = true;
  clearTimeout(watch);
  watch = setTimeout(async () => {
    try {
      await fetch(`${ROOT}/healthz`, { cache: "no-store" });
      isOffline.value = false;
    } catch {
      watchServer();
    }
  }, 1500);
}

export async function send(path: string, init: RequestInit = {}, at = base.value): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token.value) headers.set("Authorization", `Bearer ${token.value}`);
  let response: Response;
  try {
    response = await fetch(at + path, { ...init, headers, cache: "no-store" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    watchServer();
    throw new ApiError(0, { error: "The server does not answer. Nothing you typed is lost; try again when it is back." });
  }
  isOffline.value = false;
  if (response.status === 401) {
    await askToken();
    return send(path, init, at);
  }
  if (!response.ok) throw new ApiError(response.status, await readError(response));
  return response;
}

async function readError(response: Response): Promise<ErrorBody> {
  try {
    return await response.json();
  } catch {
    return { error: `the server answered ${response.status}` };
  }
}

/** Whole numbers that a browser cannot hold stay as they were sent. */
export function parse<T>(text: string): T {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const keep = (_: string, value: unknown, context?: { source: string }) =>
    typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && context ? context.source : value;
  return JSON.parse(text, keep as (key: string, value: unknown) => unknown);
}

export async function get<T>(path: string, params: Record<string, string | undefined> = {}): Promise<T> {
  const given = Object.entries(params).filter((each): each is [string, string] => each[1] !== undefined && each[1] !== "");
  const query = new URLSearchParams(given).toString();
  return parse(await (await send(query ? `${path}?${query}` : path)).text());
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return parse(await (await send(path, { method: "POST", headers, body: JSON.stringify(body), signal })).text());
}

export async function put<T>(path: string, body: unknown): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return parse(await (await send(path, { method: "PUT", headers, body: JSON.stringify(body) })).text());
}

export async function remove(path: string): Promise<void> {
  await send(path, { method: "DELETE" });
}

/** The first lines of an answer of one JSON value per line; what follows is not read. */
export async function readLines<T>(path: string, params: Record<string, string>, most: number): Promise<{ rows: T[]; isCut: boolean }> {
  const stop = new AbortController();
  const response = await send(`${path}?${new URLSearchParams(params)}`, { signal: stop.signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const rows: T[] = [];
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : lines.pop()!;
    for (const line of lines.filter(Boolean)) {
      if (rows.length === most) {
        stop.abort();
        return { rows, isCut: true };
      }
      rows.push(parse(line));
    }
    if (done) return { rows, isCut: false };
  }
}

export function may(action: string): boolean {
  return permissions.value?.actions.includes(action) ?? false;
}
