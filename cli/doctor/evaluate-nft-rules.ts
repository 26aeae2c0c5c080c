import { parseIp } from '../../netlink/ip-text.ts';
import { prefixContains } from '../explain/prefix-contains.ts';
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

/** Evaluates the conditions of the rules of an nftables chain for a packet. @see libnftables-json(5) */
export function evaluateNftRules(expressions: readonly (readonly unknown[])[], packet: Packet): readonly RuleStep[] {
  return expressions.flatMap((statements) => stepsOf(statements.map(asObject), packet));
}

type Json = Readonly<Record<string, unknown>>;

function stepsOf(statements: readonly Json[], packet: Packet): readonly RuleStep[] {
  const match = allMatch(statements.map((statement) => matchStatement(statement, packet)));
  if (match === 'no') return [];
  return statements.flatMap((statement): readonly RuleStep[] => {
    const map = asObject(statement['vmap']);
    if (map['key'] !== undefined)
      return ofMap(map, packet).map((step) => ({ ...step, match: allMatch([match, step.match]) }));
    const verdict = verdictOf(statement);
    return verdict === undefined ? [] : [{ match, verdict }];
  });
}

function ofMap({ key, data }: Json, packet: Packet): readonly RuleStep[] {
  const entries = asObject(data)['set'];
  // The content of a named map changes, so it is not known.
  if (!Array.isArray(entries)) return [{ match: 'maybe', verdict: { kind: 'accept' } }];
  return entries.flatMap((entry: unknown): readonly RuleStep[] => {
    const [element, statement]: readonly unknown[] = Array.isArray(entry) ? entry : [];
    const verdict = verdictOf(asObject(statement));
    return verdict === undefined ? [] : [{ match: matchValue(asObject(key), element, packet), verdict }];
  });
}

function verdictOf(statement: Json): RuleVerdict | undefined {
  const [kind] = Object.keys(statement);
  if (kind === 'accept' || kind === 'return') return { kind };
  if (kind === 'drop' || kind === 'reject') return { kind: 'drop' };
  // A program that reads from a queue, or a flow table, usually lets the packets continue.
  if (kind === 'queue') return { kind: 'accept' };
  if (kind !== 'jump' && kind !== 'goto') return undefined;
  return { kind, chain: String(asObject(statement[kind])['target']) };
}

/** Returns whether a statement matches; one without a condition always does. */
function matchStatement(statement: Json, packet: Packet): MatchResult {
  if ('limit' in statement || 'xt' in statement || 'quota' in statement || 'ct count' in statement) return 'maybe';
  const match = asObject(statement['match']);
  if (match['left'] === undefined) return 'yes';
  const answer = matchValue(asObject(match['left']), match['right'], packet);
  return match['op'] === '!=' ? negated(answer) : answer;
}

function matchValue(left: Json, right: unknown, packet: Packet): MatchResult {
  const values = valuesOf(right);
  if (values === undefined) return 'maybe';
  return anyMatch(values.map((value) => matchOne(left, value, packet)));
}

/** Returns the elements of an anonymous set, or the value itself; undefined for a named set. */
function valuesOf(right: unknown): readonly unknown[] | undefined {
  if (typeof right === 'string' && right.startsWith('@')) return undefined;
  const set = asObject(right)['set'] ?? right;
  return Array.isArray(set) ? set : [set];
}

function matchOne(left: Json, value: unknown, packet: Packet): MatchResult {
  const { family, src, dst, iifs, oifs, isEstablished = false } = packet;
  const { protocol, field } = asObject(left['payload']);
  if (field === 'saddr' || field === 'daddr') {
    if (protocol !== (family === 4 ? 'ip' : 'ip6')) return 'no';
    return matchAddress(value, field === 'saddr' ? src : dst);
  }
  switch (asObject(left['meta'])['key']) {
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
  const { key } = asObject(left['ct']);
  if (key === 'state') return value === (isEstablished ? 'established' : 'new') ? 'yes' : 'no';
  // A connection that a Service has translated is not the ordinary one that is tested.
  return key === 'status' ? 'no' : 'maybe';
}

function matchAddress(value: unknown, address: string | undefined): MatchResult {
  const { range } = asObject(value);
  if (Array.isArray(range)) return matchRange(range.map(String), address);
  const { addr, len } = asObject(asObject(value)['prefix']);
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

function hostPrefix(ip: string): string {
  return `${ip}/${ip.includes(':') ? 128 : 32}`;
}

function isNamed(name: string, pattern: unknown): boolean {
  if (typeof pattern !== 'string') return false;
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function asObject(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
}
