/** Says what was thrown, for a message: the text of an Error, or the value itself. JavaScript may throw any value. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
