/** Colours that are told apart on light and dark ground. */
export const COLOURS = ["#3b6fd4", "#d0772b", "#2f9e6e", "#b6478f", "#8a63d2", "#b0901c", "#3a9cb8", "#c4524e", "#6b8e23", "#7a7f8c"];

export function valueColour(place: number): string {
  return COLOURS[place % COLOURS.length];
}

export const CHANGE_COLOURS = { insert: "#2f9e6e", update: "#d69a1f", delete: "#c4524e", context: "#9aa1ac" } as const;
