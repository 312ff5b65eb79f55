// Pages are read when they are first opened: the first paint needs none of them.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Problem } from "./basics";

export function lazy(read: () => Promise<{ default: ComponentType }>): ComponentType {
  let found: ComponentType | null = null;
  return function Lazy() {
    const [, redraw] = useState(0);
    const [error, setError] = useState<Error | null>(null);
    const load = () => {
      setError(null);
      read().then(
        (module) => ((found = module.default), redraw(1)),
        () => setError(new Error("A part of the page could not be read from the server.")),
      );
    };
    useEffect(() => {
      if (!found) load();
    }, []);
    if (error) return <div class="page"><Problem error={error} retry={load} /></div>;
    return found ? ((Page) => <Page />)(found) : <div class="page"><p class="quiet">Reading…</p></div>;
  };
}
