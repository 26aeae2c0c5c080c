import {
  type Decoder,
  decodeOrThrow,
  integer,
  isRecord,
  list,
  optional,
  record,
  required,
  text,
} from '../../../runtime/decode.ts';
import { messageOf } from '../../../runtime/error-text.ts';
import { canonicalIp } from '../../../runtime/ip-text.ts';
import { classifyError } from '../../classify-error.ts';
import type { Tags } from '../../cloud.ts';

/** Any text, the empty one included. */
export const TEXT: Decoder<string> = text();

/** A text that is not empty. */
export const NAME: Decoder<string> = text(/./, 'a text that is not empty');

/** A number of objects, from 0. */
export const COUNT: Decoder<number> = integer(0, Number.MAX_SAFE_INTEGER);

/** Most characters of a name, an id or a message in an answer about load balancers. */
const MAX_CHARS = 10_000;

/** A text that is not empty, and not too long to be kept. */
export const SHORT_NAME: Decoder<string> = text(/^.{1,255}$/s, 'a text of 1 to 255 characters');

/** Any text that is not too long to be kept. */
export const SHORT_TEXT: Decoder<string> = (value, path, faults) => {
  if (typeof value === 'string' && value.length <= MAX_CHARS) return value;
  faults.add(path, `a text of at most ${MAX_CHARS} characters`, value);
  return undefined;
};

/** Decodes a list of at most `most` items. */
export function listUpTo<T>(most: number, item: Decoder<T>): Decoder<readonly T[]> {
  const decodeList = list(item);
  return (value, path, faults) => {
    if (!Array.isArray(value) || value.length <= most) return decodeList(value, path, faults);
    faults.add(path, `at most ${most} items`, `${value.length} items`);
    return undefined;
  };
}

const TAG = record({ Key: required(NAME), Value: optional(TEXT) }, 'ignore');

/** A list of tags in the format of the API. */
export const TAGS = list(TAG);

/** Converts a list of tags of the API to tags by key. */
export function tagsOf(tags: readonly { readonly Key: string; readonly Value?: string }[] | undefined): Tags {
  return Object.fromEntries((tags ?? []).map((tag) => [tag.Key, tag.Value ?? '']));
}

/**
 * Decodes an answer. @throws CloudError BAD_ANSWER when it lacks required fields. A change may have happened all the
 * same, so the caller has to resolve it.
 */
export function decodeAnswer<T>(decoder: Decoder<T>, value: unknown, action: string): T {
  try {
    return decodeOrThrow(decoder, value, action);
  } catch (cause) {
    const text = messageOf(cause);
    throw classifyError({ code: 'BAD_ANSWER', action, text }, cause);
  }
}

/**
 * Replaces an empty list that is written as null by a list. A list that is missing while the count is above 0 stays a
 * fault.
 */
export function withEmptyList(value: unknown, key: string): unknown {
  if (!isRecord(value) || value['TotalCount'] !== 0) return value;
  return value[key] === null || value[key] === undefined ? { ...value, [key]: [] } : value;
}

/** The cloud writes its times in China's time zone, without a zone suffix. */
const CHINA = '+08:00';

/** Parses `2026-11-21 17:43:00` to milliseconds since the epoch; 0 when it is malformed. */
export function timeOf(written: string | undefined): number {
  if (written === undefined) return 0;
  const zone = /[Zz]$|[+-]\d\d:?\d\d$/.test(written) ? '' : CHINA;
  const ms = Date.parse(`${written.replace(' ', 'T')}${zone}`);
  return Number.isNaN(ms) ? 0 : ms;
}

/**
 * Converts an IPv6 address to its shortest form. The cloud uses several forms; here equal addresses are equal texts.
 */
export function canonicalIpv6(ip: string): string {
  return canonicalIp(ip) ?? ip;
}
