import { limitText, MAX_TEXT } from './limit-text.ts';

/**
 * Returns a value for a log line, in a form that JSON can have: each text has at most `MAX_TEXT.log` characters, each
 * list and object 100 entries, and the whole 16,384 characters. Errors become name, message, code and causes, bytes the
 * first of them in hex; what has a `toJSON` is shown as that. Never throws.
 */
export function limitValue(value: unknown): unknown {
  return limitPart(value, { left: MAX_VALUE });
}

/** Most items of a list, and most keys of an object, in a value of a log line. */
const MAX_ENTRIES = 100;
/** Most characters of a value of a log line, with all that is in it; one item counts as ten at least. */
const MAX_VALUE = 16_384;
const ITEM_CHARS = 10;
const MAX_KEY = 100;
const MAX_BYTES = 64;
/** Most causes of an error in a log line; an error can be its own cause. */
const MAX_CAUSES = 8;
/** Most characters of a text of a cause, and of an error that is inside another value. */
const MAX_CAUSE_TEXT = 1_024;

/** Characters that are left for a whole value. */
type Budget = { left: number };

function limitPart(value: unknown, budget: Budget): unknown {
  if (budget.left <= 0) return '…';
  const isTop = budget.left === MAX_VALUE;
  budget.left -= ITEM_CHARS;
  if (typeof value === 'string') return limitedText(value, budget);
  if (typeof value === 'bigint') return limitedText(String(value), budget);
  if (typeof value === 'symbol' || typeof value === 'function') return limitedText(String(value), budget);
  if (typeof value !== 'object' || value === null) return value;
  try {
    return value instanceof Error ? limitError(value, budget, isTop ? 0 : 1) : limitObject(value, budget);
  } catch {
    // A getter or a toJSON of its own failed.
    return '(cannot be shown)';
  }
}

function limitedText(text: string, budget: Budget): string {
  budget.left -= Math.max(0, Math.min(text.length, MAX_TEXT.log) - ITEM_CHARS);
  return limitText(text, MAX_TEXT.log);
}

function limitObject(value: object, budget: Budget): unknown {
  // Each character of it would be an entry.
  if (value instanceof String) return limitedText(String(value), budget);
  if (ArrayBuffer.isView(value)) return bytesText(value);
  if ('toJSON' in value && typeof value.toJSON === 'function') return limitPart(value.toJSON(), budget);
  if (value instanceof Map || value instanceof Set) return limitPart([...value.entries().take(MAX_ENTRIES)], budget);
  if (Array.isArray(value)) {
    const first = value.slice(0, MAX_ENTRIES).map((item: unknown) => limitPart(item, budget));
    return value.length > MAX_ENTRIES ? [...first, `… ${value.length - MAX_ENTRIES} more`] : first;
  }
  const entries = Object.entries(value);
  const first = entries.slice(0, MAX_ENTRIES).map(([key, item]) => [limitText(key, MAX_KEY), limitPart(item, budget)]);
  const more = entries.length > MAX_ENTRIES ? [['…', `${entries.length - MAX_ENTRIES} more`]] : [];
  return Object.fromEntries([...first, ...more]);
}

function bytesText(view: ArrayBufferView): string {
  const first = Buffer.from(view.buffer, view.byteOffset, Math.min(view.byteLength, MAX_BYTES)).toString('hex');
  return view.byteLength > MAX_BYTES ? `${first}… (${view.byteLength} bytes)` : first;
}

/**
 * Renders an error with its code and the chain of its causes. The stack is added only to errors without a code: those
 * were not expected.
 */
function limitError(error: Error, budget: Budget, depth: number): unknown {
  const cut = (text: unknown): string => limitText(String(text), depth === 0 ? MAX_TEXT.log : MAX_CAUSE_TEXT);
  const hasCode = 'code' in error;
  const code = hasCode
    ? { code: typeof error.code === 'number' ? error.code : cut(error.code) }
    : { stack: cut(error.stack ?? '') };
  const message = cut(error.message);
  budget.left -= message.length;
  const { cause } = error;
  const isShown = cause !== undefined && depth < MAX_CAUSES;
  const shown = isShown
    ? { cause: cause instanceof Error ? limitError(cause, budget, depth + 1) : limitPart(cause, budget) }
    : {};
  return { name: limitText(String(error.name), MAX_KEY), message, ...code, ...shown };
}
