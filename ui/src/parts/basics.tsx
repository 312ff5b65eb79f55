// Small parts that every page uses.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { shortId, visible } from "../text";

export interface Loaded<T> {
  data: T | null;
  error: Error | null;
  isLoading: boolean;
  reload: () => void;
}

/** Read something again whenever what it depends on changes; an older answer never replaces a newer one. */
export function useLoad<T>(read: () => Promise<T>, depends: unknown[]): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({ data: null, error: null, isLoading: true });
  const turn = useRef(0);
  const reload = useCallback(() => {
    const mine = ++turn.current;
    setState((before) => ({ ...before, isLoading: true }));
    read().then(
      (data) => mine === turn.current && setState({ data, error: null, isLoading: false }),
      (error) => mine === turn.current && setState((before) => ({ ...before, error, isLoading: false })),
    );
  }, depends);
  useEffect(reload, [reload]);
  return { ...state, reload };
}

export function Problem({ error, retry }: { error: Error | null; retry?: () => void }) {
  if (error === null) return null;
  const status = error instanceof ApiError ? error.status : null;
  const title = { 0: "No connection", 403: "Not allowed", 404: "Not found", 409: "Conflict" }[status ?? -1] ?? "Error";
  return (
    <div class="problem" role="alert">
      <strong>{title}</strong>
      <pre>{visible(error.message)}</pre>
      {retry && <button onClick={retry}>Try again</button>}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <div>{children}</div>}
    </div>
  );
}

export function Panel(props: { title: ComponentChildren; tools?: ComponentChildren; class?: string; children: ComponentChildren }) {
  return (
    <section class={`panel ${props.class ?? ""}`}>
      <header>
        <h2>{props.title}</h2>
        <div class="tools">{props.tools}</div>
      </header>
      <div class="body">{props.children}</div>
    </section>
  );
}

export function Loading({ of }: { of: Loaded<unknown> }) {
  if (of.error) return <Problem error={of.error} retry={of.reload} />;
  return of.data === null ? <p class="quiet">Reading…</p> : null;
}

export function Text({ value }: { value: string }) {
  return <bdi>{visible(value)}</bdi>;
}

/** A commit by the end of its id; the whole of it is in the hint. */
export function CommitLink({ id, href }: { id: string; href: string }) {
  return <a href={href} title={id}><code>{shortId(id)}</code></a>;
}

export function Tabs<T extends string>(props: { label: string; value: T; options: readonly T[]; names?: Partial<Record<T, string>>; onChange: (value: T) => void }) {
  return (
    <div class="tabs" role="tablist" aria-label={props.label}>
      {props.options.map((each) => (
        <button key={each} role="tab" aria-selected={each === props.value} onClick={() => props.onChange(each)}>
          {props.names?.[each] ?? each}
        </button>
      ))}
    </div>
  );
}

export function CopyButton({ text, children }: { text: () => string; children: ComponentChildren }) {
  const [isDone, setIsDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text());
    setIsDone(true);
    setTimeout(() => setIsDone(false), 1500);
  };
  return <button onClick={copy}>{isDone ? "Copied" : children}</button>;
}
