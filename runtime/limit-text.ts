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

/** Most items of a list in one text. */
const MAX_ITEMS = 20;

/** Joins the first 20 items, and says how many more there are. */
export function joinLimited(items: readonly string[], separator = ', '): string {
  if (items.length <= MAX_ITEMS) return items.join(separator);
  return `${items.slice(0, MAX_ITEMS).join(separator)}${separator}and ${items.length - MAX_ITEMS} more`;
}

/** Most items of a list, and most keys of an object, in a value of a log line. */
const MAX_ENTRIES = 100;
/** Most characters of a value of a log line, with all that is in it; one item counts as ten at least. */
const MAX_VALUE = 16_384;
const ITEM_CHARS = 10;

/**
 * Returns a value for a log line: each text has at most `MAX_TEXT.log` characters, each list and object 100 entries,
 * and the whole 16,384 characters. Errors, and objects that render themselves, are left as they are.
 */
export function limitValue(value: unknown): unknown {
  return limitPart(value, { left: MAX_VALUE });
}

function limitPart(value: unknown, chars: { left: number }): unknown {
  if (chars.left <= 0) return '…';
  chars.left -= typeof value === 'string' ? Math.max(ITEM_CHARS, Math.min(value.length, MAX_TEXT.log)) : ITEM_CHARS;
  if (typeof value === 'string') return limitText(value, MAX_TEXT.log);
  if (typeof value !== 'object' || value === null || !isPlain(value)) return value;
  if (Array.isArray(value)) {
    const first = value.slice(0, MAX_ENTRIES).map((item: unknown) => limitPart(item, chars));
    return value.length > MAX_ENTRIES ? [...first, `… ${value.length - MAX_ENTRIES} more`] : first;
  }
  const entries = Object.entries(value);
  const first = entries.slice(0, MAX_ENTRIES).map(([key, item]) => [limitText(key, MAX_KEY), limitPart(item, chars)]);
  const more = entries.length > MAX_ENTRIES ? [['…', `${entries.length - MAX_ENTRIES} more`]] : [];
  return Object.fromEntries([...first, ...more]);
}

const MAX_KEY = 100;

function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && !('toJSON' in value);
}
