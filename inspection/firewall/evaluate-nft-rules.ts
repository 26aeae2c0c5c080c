import { hostPrefix } from '../../dataplane/ip-prefix.ts';
import { parseIp } from '../../runtime/ip-text.ts';
import { type JsonObject, listOf, recordOf } from '../../runtime/json.ts';
import { prefixContains } from '../node/prefix-contains.ts';
import {
  allMatch,
  anyMatch,
  type MatchResult,
  matchLink,
  negated,
  type Packet,
  type RuleStep,
  type RuleVerdict,
} from './evaluate-chain.ts';
import { isRead } from './queue-listeners.ts';

/**
 * Evaluates the conditions of the rules of an nftables chain for a packet.
 * @param listeners numbers of the queues that a program reads from; undefined where they are not known
 * @see libnftables-json(5)
 */
export function evaluateNftRules(
  expressions: readonly (readonly unknown[])[],
  packet: Packet,
  listeners: readonly number[] | undefined,
): readonly RuleStep[] {
  return expressions.flatMap((statements) => stepsOf(statements.map(recordOf), packet, listeners));
}

function stepsOf(
  statements: readonly JsonObject[],
  packet: Packet,
  listeners: readonly number[] | undefined,
): readonly RuleStep[] {
  const match = allMatch(statements.map((statement) => matchStatement(statement, packet)));
  if (match === 'no') return [];
  return statements.flatMap((statement): readonly RuleStep[] => {
    const map = recordOf(statement['vmap']);
    if (map['key'] !== undefined)
      return ofMap(map, packet).map((step) => ({ ...step, match: allMatch([match, step.match]) }));
    const verdict = 'queue' in statement ? queueVerdict(statement, listeners) : verdictOf(statement, packet);
    return verdict === undefined ? [] : [{ match, verdict }];
  });
}

function ofMap({ key, data }: JsonObject, packet: Packet): readonly RuleStep[] {
  const entries = recordOf(data)['set'];
  // The content of a named map changes, so it is not known.
  if (!Array.isArray(entries)) return [{ match: 'maybe', verdict: { kind: 'accept' } }];
  return entries.flatMap((entry: unknown): readonly RuleStep[] => {
    const [element, statement] = listOf(entry);
    const verdict = verdictOf(recordOf(statement), packet);
    return verdict === undefined ? [] : [{ match: matchValue(recordOf(key), element, packet), verdict }];
  });
}

function verdictOf(statement: JsonObject, packet: Packet): RuleVerdict | undefined {
  const [kind] = Object.keys(statement);
  if (kind === 'accept' || kind === 'return') return { kind };
  if (kind === 'drop' || kind === 'reject') return { kind: 'drop' };
  // The packet goes out by another link, past all that follows.
  if (kind === 'fwd') return { kind: 'drop' };
  if (kind === 'mangle') return rewriteOf(recordOf(statement[kind]), packet);
  if (kind !== 'jump' && kind !== 'goto') return undefined;
  return { kind, chain: String(recordOf(statement[kind])['target']) };
}

/** A program that reads from a queue usually lets packets continue; without one the kernel drops them. */
function queueVerdict({ queue }: JsonObject, listeners: readonly number[] | undefined): RuleVerdict {
  const { num, flags } = recordOf(queue);
  const { range } = recordOf(num);
  const [first, last]: readonly unknown[] = Array.isArray(range) ? range : [num ?? 0, num ?? 0];
  const isBypassed = [flags].flat().includes('bypass');
  if (typeof first !== 'number' || typeof last !== 'number' || isBypassed) return { kind: 'accept' };
  return { kind: isRead({ first, last }, listeners) ? 'accept' : 'drop' };
}

function rewriteOf({ key, value }: JsonObject, packet: Packet): RuleVerdict | undefined {
  const { field } = recordOf(recordOf(key)['payload']);
  if ((field === 'ttl' || field === 'hoplimit') && typeof value === 'number') return { kind: 'ttl', value };
  if (field === 'daddr') return { kind: 'destination', value: typeof value === 'string' ? value : 'another address' };
  if (recordOf(recordOf(key)['meta'])['key'] !== 'mark') return undefined;
  return { kind: 'mark', after: (mark) => numberOf(value, { mark, ctMark: packet.state?.ctMark }) };
}

/** Evaluates an expression of marks; undefined where it has something else, or a mark that is not known. */
function numberOf(
  value: unknown,
  marks: { readonly mark?: number; readonly ctMark?: number | undefined },
): number | undefined {
  if (typeof value === 'number') return value >>> 0;
  if (recordOf(recordOf(value)['meta'])['key'] === 'mark') return marks.mark;
  if (recordOf(recordOf(value)['ct'])['key'] === 'mark') return marks.ctMark;
  const [operator, operands] = Object.entries(recordOf(value))[0] ?? [];
  if (!Array.isArray(operands)) return undefined;
  const numbers = operands.map((operand) => numberOf(operand, marks));
  const [first, ...others] = numbers.filter((each) => each !== undefined);
  if (first === undefined || others.length + 1 < numbers.length) return undefined;
  if (operator === '&') return others.reduce((bits, each) => (bits & each) >>> 0, first);
  if (operator === '|') return others.reduce((bits, each) => (bits | each) >>> 0, first);
  return operator === '^' ? others.reduce((bits, each) => (bits ^ each) >>> 0, first) : undefined;
}

/** Returns whether a statement matches; one without a condition always does. */
export function matchStatement(statement: JsonObject, packet: Packet): MatchResult {
  if ('limit' in statement || 'xt' in statement || 'quota' in statement || 'ct count' in statement) return 'maybe';
  const match = recordOf(statement['match']);
  if (match['left'] === undefined) return isOfOtherFamily(statement, packet) ? 'no' : 'yes';
  const left = recordOf(match['left']);
  // Of a packet of the other family not even `!=` is true: nft asks for the family first.
  if (isOfOtherHeader(recordOf(left['payload']), packet)) return 'no';
  const answer = matchValue(left, match['right'], packet);
  return match['op'] === '!=' ? negated(answer) : answer;
}

/** A rule that writes a field of a header matches packets of that family: nft does not list this condition. */
function isOfOtherFamily(statement: JsonObject, packet: Packet): boolean {
  return isOfOtherHeader(recordOf(recordOf(recordOf(statement['mangle'])['key'])['payload']), packet);
}

function isOfOtherHeader({ protocol }: JsonObject, { family }: Packet): boolean {
  return protocol === (family === 4 ? 'ip6' : 'ip');
}

function matchValue(left: JsonObject, right: unknown, packet: Packet): MatchResult {
  const values = valuesOf(right);
  if (values === undefined) return 'maybe';
  return anyMatch(values.map((value) => matchOne(left, value, packet)));
}

/** Returns the elements of an anonymous set, or the value itself; undefined for a named set. */
function valuesOf(right: unknown): readonly unknown[] | undefined {
  if (typeof right === 'string' && right.startsWith('@')) return undefined;
  const set = recordOf(right)['set'] ?? right;
  return Array.isArray(set) ? set : [set];
}

function matchOne(left: JsonObject, value: unknown, packet: Packet): MatchResult {
  const { family, src, dst, iifs, oifs, isEstablished = false } = packet;
  const { protocol, field } = recordOf(left['payload']);
  if (field === 'saddr' || field === 'daddr') {
    if (protocol !== (family === 4 ? 'ip' : 'ip6')) return 'no';
    return matchAddress(value, field === 'saddr' ? src : dst);
  }
  switch (recordOf(left['meta'])['key']) {
    case 'iifname':
    case 'iif':
      return matchLink(iifs, (name) => isNamed(name, value));
    case 'oifname':
    case 'oif':
      return matchLink(oifs, (name) => isNamed(name, value));
    case 'protocol':
      return value === (family === 4 ? 'ip' : 'ip6') ? 'yes' : 'no';
    case 'l4proto':
      return value === 'tcp' ? 'yes' : 'no';
    case 'nfproto':
      return value === `ipv${family}` ? 'yes' : 'no';
    default:
  }
  const wayBack = wayBackOf(recordOf(left['fib']), packet);
  if (wayBack !== undefined) return wayBack === !NO_LINK.includes(value) ? 'yes' : 'no';
  const asked = stateOf(left, packet);
  if (asked !== undefined) return asked === value ? 'yes' : 'no';
  const { key } = recordOf(left['ct']);
  if (key === 'state') return value === (isEstablished ? 'established' : 'new') ? 'yes' : 'no';
  // A connection that a Service has translated is not the ordinary one that is tested.
  return key === 'status' ? 'no' : 'maybe';
}

/** What `fib` is compared with where it found no link: `missing`, or the index 0. */
const NO_LINK: readonly unknown[] = [false, 0, '0'];

/** Reports whether `fib` finds the way back by the link of the packet; undefined where it asks something else, or that is not known. */
function wayBackOf({ result, flags }: JsonObject, { isMarkedWayBack }: Packet): boolean | undefined {
  const asked = listOf(flags);
  if (isMarkedWayBack !== true || result !== 'oif' || !asked.includes('saddr') || !asked.includes('iif'))
    return undefined;
  return asked.includes('mark');
}

/** Returns what an expression asks of the state of the packet; undefined where it asks something else, or that is not known. */
function stateOf(expression: JsonObject, { state }: Packet): unknown {
  if (state === undefined) return undefined;
  const { result, flags } = recordOf(expression['fib']);
  if (result === 'oif' && String(flags) === 'saddr,iif') return state.isSourceRouted;
  if (result === 'type' && String(flags) === 'daddr') return state.isLocal ? 'local' : 'unicast';
  if (recordOf(expression['meta'])['key'] === 'iifgroup') return state.iifgroup;
  if (recordOf(expression['ct'])['key'] === 'direction') return state.direction;
  return numberOf(expression, state);
}

function matchAddress(value: unknown, address: string | undefined): MatchResult {
  const { range } = recordOf(value);
  if (Array.isArray(range)) return matchRange(range.map(String), address);
  const { addr, len } = recordOf(recordOf(value)['prefix']);
  const prefix =
    typeof addr === 'string' ? `${addr}/${String(len)}` : typeof value === 'string' ? hostPrefix(value) : undefined;
  if (prefix === undefined || address === undefined) return 'maybe';
  return prefixContains(prefix, address) ? 'yes' : 'no';
}

function matchRange([first, last]: readonly string[], address: string | undefined): MatchResult {
  const [from, to, at] = [first, last, address].map((ip) => (ip === undefined ? undefined : parseIp(ip)));
  if (from === undefined || to === undefined || at === undefined) return 'maybe';
  return Buffer.compare(from, at) <= 0 && Buffer.compare(at, to) <= 0 ? 'yes' : 'no';
}

function isNamed(name: string, pattern: unknown): boolean {
  if (typeof pattern !== 'string') return false;
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
