// The layout away from the page, in a worker.
import { begin, type Moved, type Start } from "./layout";

/** A layout to begin, `"drawn"` when the last positions are on the screen, or null to stop. */
type Message = Start | "drawn" | null;

let goOn: (() => Moved | null) | null = null;

onmessage = ({ data }: MessageEvent<Message>) => {
  if (data !== "drawn") goOn = data === null ? null : begin(data);
  const moved = goOn?.();
  if (moved) postMessage(moved, { transfer: [moved.positions.buffer] });
};
