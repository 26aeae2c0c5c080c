/** Bytes of an object without its properties, and of a text without its characters. */
const HEAD = 32;
const SLOT = 16;
/** A property of an object or Map with so many that each key is stored with it. */
const ENTRY = 56;
const MAX_SLOTS = 64;

/**
 * Estimates the bytes of heap that a decoded value keeps; counts no further than `most`. It looks at plain objects, arrays,
 * Maps, Sets and texts; what several parts share counts for each.
 */
export function keptBytes(value: unknown, most: number): number {
  let bytes = 0;
  const rest: unknown[] = [value];
  while (rest.length > 0 && bytes <= most) {
    const one = rest.pop();
    if (typeof one === 'string') bytes += HEAD + one.length;
    if (typeof one !== 'object' || one === null) continue;
    bytes += HEAD;
    if (one instanceof Map || one instanceof Set) bytes += one.size * ENTRY;
    if (Array.isArray(one)) bytes += one.length * SLOT;
    // A list of millions is not copied to find that it is too long.
    if (bytes > most) break;
    for (const part of partsOf(one)) rest.push(part);
    if (Array.isArray(one) || one instanceof Map || one instanceof Set) continue;
    const keys = Object.keys(one);
    const isMany = keys.length > MAX_SLOTS;
    for (const key of keys) bytes += isMany ? ENTRY + key.length : SLOT;
  }
  return bytes;
}

function partsOf(value: object): Iterable<unknown> {
  if (Array.isArray(value) || value instanceof Set) return value as Iterable<unknown>;
  return value instanceof Map ? [...value.keys(), ...value.values()] : Object.values(value);
}
