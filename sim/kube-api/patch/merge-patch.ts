import { isObject } from '../object.ts';

/** Applies a JSON merge patch and returns the result: null takes away, objects merge, all else replaces. @see RFC 7386 */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Record<string, unknown> = isObject(document) ? { ...document } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = applyMergePatch(result[key], value);
  }
  return result;
}
