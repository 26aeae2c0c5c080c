import { type JsonObject, listOf, recordOf } from '../../runtime/json.ts';

/** Flags of TCP that are known to be set, or not; those that are absent differ from packet to packet. */
type KnownFlags = ReadonlyMap<string, boolean>;

const ALL_FLAGS: readonly string[] = ['fin', 'syn', 'rst', 'psh', 'ack', 'urg', 'ecn', 'cwr'];

/** Returns the flags of an ordinary packet: SYN of the first of its connection, ACK of a later one. */
export function ordinaryFlags(isEstablished: boolean): KnownFlags {
  const only = isEstablished ? 'ack' : 'syn';
  return new Map(ALL_FLAGS.map((flag) => [flag, flag === only]));
}

/**
 * Evaluates a condition of nftables on flags; undefined where packets differ.
 * @param mask bits that are compared; undefined: all
 * @see libnftables-json(5)
 */
export function matchFlags(
  known: KnownFlags,
  op: string,
  mask: readonly string[] | undefined,
  right: unknown,
): boolean | undefined {
  const isAsked =
    op === 'in' || op === '!'
      ? anyOf(flagNames(right).map((flag) => known.get(flag)))
      : anyOf(listOf(recordOf(right)['set'] ?? [right]).map((each) => equalFlags(known, mask, flagNames(each))));
  return isAsked === undefined ? undefined : isAsked === (op !== '!' && op !== '!=');
}

/** Evaluates whether the flags of a mask are these, and no others; undefined where packets differ. */
export function equalFlags(
  known: KnownFlags,
  mask: readonly string[] = ALL_FLAGS,
  flags: readonly string[],
): boolean | undefined {
  const isOther = (flag: string) => known.has(flag) && known.get(flag) !== flags.includes(flag);
  if (mask.some(isOther) || flags.some((flag) => !mask.includes(flag))) return false;
  return mask.every((flag) => known.has(flag)) ? true : undefined;
}

function anyOf(answers: readonly (boolean | undefined)[]): boolean | undefined {
  if (answers.includes(true)) return true;
  return answers.includes(undefined) ? undefined : false;
}

/** Returns the mask of a condition of nftables on the flags of TCP; undefined for another condition. */
export function flagsOf(left: JsonObject): { readonly mask: readonly string[] | undefined } | undefined {
  const [field, mask] = listOf(left['&'] ?? [left]);
  const { protocol, field: name } = recordOf(recordOf(field)['payload']);
  if (protocol !== 'tcp' || name !== 'flags') return undefined;
  return { mask: mask === undefined ? undefined : flagNames(mask) };
}

/** Lists the flags of an expression of nftables: 'syn', ['syn', 'ack'], or {'|': ['syn', 'ack']} at any depth. */
function flagNames(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return (Array.isArray(value) ? value : listOf(recordOf(value)['|'])).flatMap(flagNames);
}

/** Lists the flags of a word of iptables: 'SYN,ACK', 'ALL', 'NONE'. */
export function iptablesFlags(word: string): readonly string[] {
  if (word === 'ALL') return ALL_FLAGS;
  return word === 'NONE' ? [] : word.toLowerCase().split(',');
}
