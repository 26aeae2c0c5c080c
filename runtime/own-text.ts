/** Returns a copy of a text that keeps nothing else in memory: a part of a text, as `slice`, `trim` and `split` return it, keeps the whole one. */
export function ownText(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
}
