import { type ComponentType, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { giveToken, isOffline, isTokenAsked, permissions, token } from "./api";
import { Problem } from "./parts/basics";
import { lazy } from "./parts/lazy";
import { Picker } from "./parts/picker";
import Overview from "./pages/overview";
import { address, graphId, graphs, isStarted, type Page, PAGES, route, setParams, start, startError, theme } from "./state";
import { visible } from "./text";

const VIEWS: Record<Page, ComponentType> = {
  overview: Overview,
  query: lazy(() => import("./pages/query")),
  explore: lazy(() => import("./pages/explore")),
  history: lazy(() => import("./pages/history")),
  review: lazy(() => import("./pages/review")),
  load: lazy(() => import("./pages/load")),
  admin: lazy(() => import("./pages/admin")),
};

function Bar() {
  return (
    <header class="bar">
      <a class="brand" href={address("overview")}>
        <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true"><g fill="none" stroke="currentColor" stroke-width="2.5"><path d="M9 22 16 9l8 11M9 22l15-2" /></g><g fill="currentColor"><circle cx="16" cy="8" r="4.5" /><circle cx="8" cy="23" r="4.5" /><circle cx="25" cy="21" r="4.5" /></g></svg>
        Omnigraph
      </a>
      {graphs.value && graphs.value.length > 0 && (
        <select aria-label="Graph" value={graphId.value ?? ""} onChange={(event) => { setParams({ graph: event.currentTarget.value, branch: "", at: "" }); location.reload(); }}>
          {graphs.value.map((each) => <option key={each}>{each}</option>)}
        </select>
      )}
      <nav aria-label="Pages">
        {PAGES.map((each) => <a key={each} href={address(each)} aria-current={route.value.page === each ? "page" : undefined}>{each[0].toUpperCase() + each.slice(1)}</a>)}
      </nav>
      {isStarted.value && <Picker />}
      <Who />
      <ThemeButton />
    </header>
  );
}

function Who() {
  const found = permissions.value;
  if (!found) return null;
  const isReader = !found.actions.some((each) => ["change", "branch_merge", "schema_apply"].includes(each));
  return <span class="who" title={`may: ${found.actions.join(", ")}`}>{found.actor_id ? visible(found.actor_id) : "open server"}{isReader && <span class="chip">read-only</span>}</span>;
}

function ThemeButton() {
  const next = { auto: "light", light: "dark", dark: "auto" }[theme.value] ?? "auto";
  const change = () => {
    theme.value = next;
    localStorage.setItem("omnigraph-theme", next);
  };
  useEffect(() => document.documentElement.setAttribute("data-theme", theme.value), [theme.value]);
  return <button class="icon" onClick={change} aria-label={`Theme: ${theme.value}`} title={`Theme: ${theme.value}`}>{{ auto: "◐", light: "☀", dark: "☾" }[theme.value]}</button>;
}

function TokenDialog() {
  const box = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  useEffect(() => {
    if (isTokenAsked.value) box.current?.showModal();
    else box.current?.close();
  }, [isTokenAsked.value]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.trim()) giveToken(text.trim());
    setText("");
  };
  return (
    <dialog ref={box} aria-label="Token" onCancel={(event) => event.preventDefault()}>
      <form onSubmit={submit}>
        <h2>{token.value ? "The server does not accept this token any more" : "This server asks who you are"}</h2>
        <p>Give your bearer token. It stays in this tab and goes to this server only. What you were doing goes on afterwards.</p>
        <input type="password" autocomplete="off" aria-label="Bearer token" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <button class="primary">Go on</button>
      </form>
    </dialog>
  );
}

function App() {
  const View = VIEWS[route.value.page];
  useEffect(() => {
    document.title = `${route.value.page[0].toUpperCase()}${route.value.page.slice(1)} · Omnigraph`;
  }, [route.value.page]);
  return (
    <>
      <Bar />
      {isOffline.value && <p class="banner bad" role="status">No connection to the server. What you typed is kept; the page goes on when it is back.</p>}
      {route.value.params.at && <p class="banner past" role="status">You look at the past: <code>{visible(route.value.params.at)}</code>. <a href={address(route.value.page, { ...route.value.params, at: "" })}>Back to now</a></p>}
      <main>
        {startError.value ? <div class="page"><Problem error={startError.value} retry={start} /></div> : isStarted.value ? <View /> : <div class="page"><p class="quiet">Reading the schema…</p></div>}
      </main>
      <TokenDialog />
    </>
  );
}

const app = document.getElementById("app")!;
app.replaceChildren();
render(<App />, app);
void start();
