declare global {
  /** Plans the line between two boxes; the renderer puts the function of plan-path-line.ts before the page's script. */
  function pathLine(from: object, to: object, nudge: number): string;
}

export {};
