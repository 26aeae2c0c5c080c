import { isRecord } from '../../runtime/decode.ts';

/** Reports whether two values of plain data are equal; a field that is undefined counts as absent. */
export function isSameData(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item: unknown, index) => isSameData(item, other[index]));
  }
  if (!isRecord(one) || !isRecord(other)) return false;
  for (const key of Object.keys(one)) if (!isSameData(one[key], other[key])) return false;
  return Object.keys(other).every((key) => other[key] === undefined || one[key] !== undefined);
}
