import { isRecord } from './decode.ts';

/** An object of JSON whose values are not checked. */
export type JsonObject = Readonly<Record<string, unknown>>;

const NO_FIELDS: JsonObject = Object.freeze({});
const NONE: readonly never[] = Object.freeze([]);

/**
 * Reads an object. This and its neighbours read JSON that other programs wrote and of which a few fields matter: what is
 * missing or of another type counts as absent, and nothing is refused. JSON that must be right is read with a `Decoder`.
 * @returns an empty object for anything else
 */
export function recordOf(value: unknown): JsonObject {
  return isRecord(value) ? value : NO_FIELDS;
}

/** Reads a list of objects; leaves out items of other types. */
export function recordsOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : NONE;
}

/** Reads a text; anything else is the empty text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Reads a list of texts; leaves out items of other types. */
export function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : NONE;
}

/** Reads a list of anything. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : NONE;
}

/** Reads a whole number from 0 to 2^53 - 1; anything else is 0. */
export function wholeNumberOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
