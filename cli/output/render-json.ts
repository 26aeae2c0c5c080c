/** Renders one JSON document: indented for people, compact for programs; ends with a newline. Pure. */
export function renderJson(value: unknown, isTerminal: boolean): string {
  return `${isTerminal ? JSON.stringify(value, null, 2) : JSON.stringify(value)}\n`;
}
