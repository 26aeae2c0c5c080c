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
import { flagsOf, matchFlags, ordinaryFlags } from './tcp-flags.ts';

/** Elements of the named sets and maps of a table, by name. */
export type NftSets = ReadonlyMap<string, readonly unknown[]>;

/** Returns the elements of the named sets and maps of each table. @see libnftables-json(5) */
export function readNftSets(objects: readonly JsonObject[]): ReadonlyMap<string, NftSets> {
  const byTable = new Map<string, Map<string, readonly unknown[]>>();
  for (const object of objects) {
    const { family, table, name, elem } = recordOf(object['set'] ?? object['map']);
    if (typeof name !== 'string') continue;
    const key = `${family} ${table}`;
    byTable.set(key, (byTable.get(key) ?? new Map<string, readonly unknown[]>()).set(name, listOf(elem)));
  }
  return byTable;
}

/**
 * Evaluates the conditions of the rules of an nftables chain for a packet of TCP that is no fragment and has no extension headers:
 * the first of its connection or an ordinary later one.
 * @param listeners numbers of the queues that a program reads from; undefined where they are not known
 * @param sets named sets and maps of its table
 * @see libnftables-json(5)
 */
export function evaluateNftRules(
  expressions: readonly (readonly unknown[])[],
  packet: Packet,
  listeners: readonly number[] | undefined,
  sets: NftSets = NO_SETS,
): readonly RuleStep[] {
  return expressions.flatMap((statements) => stepsOf(statements.map(recordOf), packet, listeners, sets));
}

const NO_SETS: NftSets = new Map();

function stepsOf(
  statements: readonly JsonObject[],
  packet: Packet,
  listeners: readonly number[] | undefined,
  sets: NftSets,
): readonly RuleStep[] {
  const match = allMatch(statements.map((statement) => matchStatement(statement, packet, sets)));
  if (match === 'no') return [];
  return statements.flatMap((statement): readonly RuleStep[] => {
    const map = recordOf(statement['vmap']);
    if (map['key'] !== undefined)
      return ofMap(map, packet, sets).map((step) => ({ ...step, match: allMatch([match, step.match]) }));
    const verdict = 'queue' in statement ? queueVerdict(statement, listeners) : verdictOf(statement, packet);
    return verdict === undefined ? [] : [{ match, verdict }];
  });
}

function ofMap({ key, data }: JsonObject, packet: Packet, sets: NftSets): readonly RuleStep[] {
  const left = recordOf(key);
  if (headersOf(left).some((header) => isOfOtherHeader(header, packet))) return [];
  const entries = elementsOf(data, sets);
  if (entries === undefined) {
    const match = { notEvaluated: [`${conditionText(left)} vmap ${String(data)}`] };
    return [
      { match, verdict: { kind: 'accept' } },
      { match, verdict: { kind: 'drop' } },
    ];
  }
  // The element that stands for all others is looked up last.
  const ordered = [...entries].sort((a, b) => Number(isCatchAll(a)) - Number(isCatchAll(b)));
  return ordered.flatMap((entry: unknown): readonly RuleStep[] => {
    const [element, statement] = listOf(entry);
    const verdict = verdictOf(recordOf(statement), packet);
    return verdict === undefined ? [] : [{ match: matchElement(left, element, packet), verdict }];
  });
}

function isCatchAll(entry: unknown): boolean {
  return elementValue(listOf(entry)[0]) === '*';
}

function verdictOf(statement: JsonObject, packet: Packet): RuleVerdict | undefined {
  const [kind] = Object.keys(statement);
  if (kind === 'accept' || kind === 'return') return { kind };
  if (kind === 'drop' || kind === 'reject') return { kind: 'drop' };
  // The packet goes out by another link, past all that follows.
  if (kind === 'fwd') return { kind: 'drop' };
  if (kind === 'xt') return recordOf(statement['xt'])['name'] === 'REJECT' ? { kind: 'drop' } : undefined;
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
export function matchStatement(statement: JsonObject, packet: Packet, sets: NftSets = NO_SETS): MatchResult {
  if (statement['xt'] !== undefined) return matchXt(recordOf(statement['xt']));
  const limiting = LIMITING.find((kind) => kind in statement);
  if (limiting !== undefined) return { notEvaluated: [limiting] };
  const { set, stmt } = recordOf(statement['set'] ?? statement['map']);
  if (listOf(stmt).some((each) => LIMITING.some((kind) => kind in recordOf(each))))
    return { notEvaluated: [`update ${String(set)}`] };
  const match = recordOf(statement['match']);
  if (match['left'] === undefined) return isOfOtherFamily(statement, packet) ? 'no' : 'yes';
  const left = recordOf(match['left']);
  // Of a packet of another protocol not even `!=` is true: nft asks for the protocol first.
  if (headersOf(left).some((header) => isOfOtherHeader(header, packet))) return 'no';
  return matchBy(String(match['op']), left, match['right'], packet, sets);
}

/** Statements that let only some packets continue. */
const LIMITING = ['limit', 'quota', 'ct count', 'meter'] as const;

/** Matches of iptables that kube-proxy and policy engines use in every chain. */
const COMMON_XT: ReadonlySet<unknown> = new Set(
  'conntrack state addrtype mark connmark set tcp udp multiport nfacct ipvs rpfilter physdev socket owner'.split(' '),
);

/** Of a match of iptables nft lists the name alone. Where iptables-save cannot be run, the common ones are left open. */
function matchXt({ type, name }: JsonObject): MatchResult {
  if (type === 'target' || type === 'watcher' || name === 'comment') return 'yes';
  return COMMON_XT.has(name) ? 'maybe' : { notEvaluated: [`xt ${String(name)}`] };
}

function matchBy(op: string, left: JsonObject, right: unknown, packet: Packet, sets: NftSets): MatchResult {
  const flags = flagsOf(left);
  if (flags !== undefined)
    return matchFlags(ordinaryFlags(packet.isEstablished === true), op, flags.mask, right) === true ? 'yes' : 'no';
  if (!EQUALITIES.has(op)) return { notEvaluated: [conditionText(left)] };
  const answer = matchValue(left, right, packet, sets);
  return op === '!=' ? negated(answer) : answer;
}

const EQUALITIES: ReadonlySet<string> = new Set(['==', '!=', 'in']);

/** A rule that writes a field of a header matches packets of that family: nft does not list this condition. */
function isOfOtherFamily(statement: JsonObject, packet: Packet): boolean {
  return isOfOtherHeader(recordOf(recordOf(recordOf(statement['mangle'])['key'])['payload']), packet);
}

/** Lists the header fields that a condition asks for, masked or one of several. */
function headersOf(left: JsonObject): readonly JsonObject[] {
  const operands = listOf(left['&'] ?? left['concat']).map(recordOf);
  return [left, ...operands].flatMap(({ payload }) => (payload === undefined ? [] : [recordOf(payload)]));
}

/** Headers that a packet of TCP over IP has. */
const HEADERS: ReadonlySet<unknown> = new Set(['ip', 'ip6', 'tcp', 'th', 'ether']);

function isOfOtherHeader({ protocol }: JsonObject, { family }: Packet): boolean {
  return protocol !== undefined && (protocol === (family === 4 ? 'ip6' : 'ip') || !HEADERS.has(protocol));
}

function matchValue(left: JsonObject, right: unknown, packet: Packet, sets: NftSets): MatchResult {
  const values = elementsOf(right, sets);
  if (values === undefined) return { notEvaluated: [`${conditionText(left)} ${String(right)}`] };
  return anyMatch(values.map((value) => matchElement(left, value, packet)));
}

/** Returns the elements of a set, or the value itself; undefined for a named set that is not there. */
export function elementsOf(right: unknown, sets: NftSets): readonly unknown[] | undefined {
  if (typeof right === 'string' && right.startsWith('@')) return sets.get(right.slice(1));
  const set = recordOf(right)['set'] ?? right;
  return Array.isArray(set) ? set : [set];
}

/** Returns the value of an element of a set, which may have a timeout, a counter or a comment. */
function elementValue(element: unknown): unknown {
  return recordOf(recordOf(element)['elem'])['val'] ?? element;
}

function matchElement(left: JsonObject, element: unknown, packet: Packet): MatchResult {
  const value = elementValue(element);
  if (value === '*') return 'yes';
  const { concat } = left;
  if (!Array.isArray(concat)) return matchOne(left, value, packet);
  const values = listOf(recordOf(value)['concat']);
  return allMatch(concat.map((part, at) => matchOne(recordOf(part), values[at], packet)));
}

/** Bits of the mark by which kube-proxy masquerades, and kubelet once had packets dropped: an ordinary connection has neither. */
const KUBE_MARKS: readonly unknown[] = [0x4000, 0x8000];

function matchOne(left: JsonObject, value: unknown, packet: Packet): MatchResult {
  const { family, src, dst, iifs, oifs, isEstablished = false } = packet;
  const { protocol, field } = recordOf(left['payload']);
  if (field === 'saddr' || field === 'daddr') {
    if (protocol === 'ether') return { notEvaluated: [conditionText(left)] };
    if (protocol !== (family === 4 ? 'ip' : 'ip6')) return 'no';
    return matchAddress(value, field === 'saddr' ? src : dst);
  }
  const name = recordOf(left['meta'])['key'] ?? (protocol === undefined ? undefined : `${protocol} ${field}`);
  switch (name) {
    case 'iifname':
    case 'iif':
      return matchLink(iifs, (each) => isNamed(each, value));
    case 'oifname':
    case 'oif':
      return matchLink(oifs, (each) => isNamed(each, value));
    case 'protocol':
    case 'ether type':
      return value === (family === 4 ? 'ip' : 'ip6') ? 'yes' : 'no';
    case 'l4proto':
    case 'ip protocol':
    case 'ip6 nexthdr':
      return value === 'tcp' ? 'yes' : 'no';
    case 'nfproto':
      return value === `ipv${family}` ? 'yes' : 'no';
    case 'pkttype':
      return value === 'host' || value === 'unicast' ? 'yes' : 'no';
    default:
  }
  if (left['exthdr'] !== undefined && typeof value === 'boolean') return value ? 'no' : 'yes';
  const [operand, bits] = listOf(left['&'] ?? [left]);
  const { payload, meta } = recordOf(operand);
  if (recordOf(payload)['field'] === 'frag-off') return value === 0 ? 'yes' : 'no';
  const { result, flags } = recordOf(left['fib']);
  if (packet.isForNode === true && result === 'type' && String(flags) === 'daddr')
    return value === 'local' ? 'yes' : 'no';
  const wayBack = wayBackOf(recordOf(left['fib']), packet);
  if (wayBack !== undefined) return wayBack === !NO_LINK.includes(value) ? 'yes' : 'no';
  const asked = stateOf(left, packet);
  if (asked !== undefined) return asked === value ? 'yes' : 'no';
  if (recordOf(meta)['key'] === 'mark' && bits === value && KUBE_MARKS.includes(bits)) return 'no';
  const { key } = recordOf(left['ct']);
  if (key === 'state') return value === (isEstablished ? 'established' : 'new') ? 'yes' : 'no';
  // A connection that a Service has translated is not the ordinary one that is tested.
  if (key === 'status') return 'no';
  if (key === 'direction' && !isEstablished) return value === 'original' ? 'yes' : 'no';
  // explain evaluates the way back by routes.
  return left['fib'] !== undefined ? 'maybe' : { notEvaluated: [conditionText(left)] };
}

/** Renders what a condition asks, nearly as nft prints it: 'meta length', 'meta mark & 0x80', 'ip saddr . tcp dport'. */
export function conditionText(left: unknown): string {
  if (typeof left === 'number') return `0x${left.toString(16)}`;
  const [kind = '', operand] = Object.entries(recordOf(left))[0] ?? [];
  if (Array.isArray(operand)) return operand.map(conditionText).join(kind === 'concat' ? ' . ' : ` ${kind} `);
  const { protocol, field, base, offset, len, key, name } = recordOf(operand);
  if (kind !== 'payload') return [kind, name, key ?? field].filter((word) => word !== undefined).join(' ');
  return protocol === undefined ? `@${base},${offset},${len}` : `${protocol} ${field}`;
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
