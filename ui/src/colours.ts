import { catalog } from "./api";
import { valueColour } from "./palette";

export { CHANGE_COLOURS, valueColour } from "./palette";

/** One colour per node type, the same on every page. */
export function typeColour(type: string): string {
  const place = catalog.value?.nodes.findIndex((each) => each.name === type) ?? -1;
  return place < 0 ? "#7a7f8c" : valueColour(place);
}
