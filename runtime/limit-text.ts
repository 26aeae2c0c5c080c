import { plainLines } from './plain-text.ts';

/**
 * Most characters of a text that people read, by the place it goes to. A text may contain what others wrote: names of
 * a ConfigMap, an answer of a server. The API server refuses longer texts of events and of our conditions.
 */
export const MAX_TEXT = {
  /** One value of a log line. */
  log: 4_096,
  event: 1_024,
  condition: 2_048,
  /** A field `message` in a status. */
  statusMessage: 1_024,
} as const;

/** Returns the text, or its beginning with `…`: at most `maxChars` characters. No surrogate pair is cut in two. */
export function limitText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  return `${text.slice(0, maxChars - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/**
 * Returns a text as a message of an object or an event: plain, and at most `maxChars` characters. It may contain what a
 * tenant wrote.
 */
export function messageText(text: string, maxChars: number): string {
  return limitText(plainLines(limitText(text, maxChars)), maxChars);
}

/** Most items of a list in one text. */
const MAX_ITEMS = 20;

/** Joins the first 20 items, and says how many more there are. */
export function joinLimited(items: readonly string[], separator = ', '): string {
  if (items.length <= MAX_ITEMS) return items.join(separator);
  return `${items.slice(0, MAX_ITEMS).join(separator)}${separator}and ${items.length - MAX_ITEMS} more`;
}
