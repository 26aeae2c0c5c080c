import { type JsonObject, listOf, recordOf } from '../../runtime/json.ts';
import { conditionText } from './evaluate-nft-rules.ts';
import { equalFlags, flagsOf, iptablesFlags, matchFlags } from './tcp-flags.ts';

// Which conditions, statements and targets are the same for all packets of a flow that the fast path takes, in one direction.

/** Names what of a statement is not known to be the same for each packet of a flow. */
export function nftKinds(statement: JsonObject): readonly string[] {
  return Object.entries(statement).flatMap(([kind, value]) => {
    if (kind === 'match')
      return establishedMatch(recordOf(value)) === undefined ? expressionKinds(recordOf(value)['left']) : [];
    if (kind === 'vmap') return expressionKinds(recordOf(value)['key']);
    if (kind === 'xt') return matchKinds([String(recordOf(value)['name'])]);
    if (kind === 'mangle') return mangleKinds(recordOf(value));
    // A set that a rule adds to, with a limit at each element.
    if (kind === 'set' || kind === 'map') return listOf(recordOf(value)['stmt']).map(recordOf).flatMap(nftKinds);
    if (kind === 'ct helper' || kind === 'ct timeout' || kind === 'ct expectation') return [];
    return FLOW_STATEMENTS.has(kind) ? [] : [kind];
  });
}

/** Statements that do the same with each packet of a flow, or nothing that decides about it. */
const FLOW_STATEMENTS: ReadonlySet<string> = new Set(
  'match vmap counter accept drop reject jump goto return continue log comment notrack flow last'.split(' '),
);

/** Conditions that are the same for all packets of a flow in one direction, by kind of expression. */
const FLOW_FIELDS: Readonly<Record<string, ReadonlySet<unknown>>> = {
  payload: new Set(
    'ip saddr,ip daddr,ip protocol,ip version,ip6 saddr,ip6 daddr,ip6 nexthdr,ip6 version,tcp sport,tcp dport,udp sport,udp dport,th sport,th dport,sctp sport,sctp dport,dccp sport,dccp dport,udplite sport,udplite dport,ether type,vlan id'.split(
      ',',
    ),
  ),
  meta: new Set(
    'iif oif iifname oifname iifgroup oifgroup iiftype oiftype iifkind oifkind ibrname obrname sdif sdifname nfproto l4proto protocol mark skuid skgid cgroup nftrace pkttype rtclassid'.split(
      ' ',
    ),
  ),
  ct: new Set(
    'state status direction mark zone id helper label protocol l3proto saddr daddr proto-src proto-dst event secmark'.split(
      ' ',
    ),
  ),
};
const FLOW_EXPRESSIONS: ReadonlySet<string> = new Set(['fib', 'rt', 'socket', 'ipsec', 'tunnel']);
/** Parts of expressions that hold others. */
const OPERATORS: ReadonlySet<string> = new Set([
  '&',
  '|',
  '^',
  '<<',
  '>>',
  'concat',
  'set',
  'range',
  'prefix',
  'elem',
  'jhash',
  'symhash',
]);

/**
 * Whether a condition on the state of the connection, or on flags, holds for the packets of an established connection that the fast path
 * takes; undefined for another condition, or where they differ.
 */
export function establishedMatch({ op, left, right }: JsonObject): boolean | undefined {
  if (isOfOtherProtocol({ op, left, right })) return false;
  const flags = flagsOf(recordOf(left));
  if (flags !== undefined) return matchFlags(TAKEN_FLAGS, String(op), flags.mask, right);
  if (recordOf(recordOf(left)['ct'])['key'] !== 'state') return undefined;
  const set = recordOf(right)['set'] ?? right;
  const isIn = (Array.isArray(set) ? set : [set]).includes('established');
  return op === '!=' ? !isIn : isIn;
}

/** Protocols of the flows that the fast path takes; all others stay slow. */
const TAKEN_PROTOCOLS: ReadonlySet<unknown> = new Set(['tcp', 'udp', 'all']);
const OTHER_HEADERS: ReadonlySet<unknown> = new Set('icmp icmpv6 igmp arp esp ah sctp dccp'.split(' '));

function isOfOtherProtocol({ op, left, right }: JsonObject): boolean {
  const { payload, meta } = recordOf(left);
  const { protocol, field } = recordOf(payload);
  if (OTHER_HEADERS.has(protocol)) return true;
  const isProtocol = recordOf(meta)['key'] === 'l4proto' || field === 'protocol' || field === 'nexthdr';
  const values = listOf(recordOf(right)['set'] ?? [right]);
  const areOthers = values.every(
    (value) => typeof value === 'string' && !value.startsWith('@') && !TAKEN_PROTOCOLS.has(value),
  );
  return isProtocol && op !== '!=' && areOthers;
}

/** Flags of the packets that the fast path takes; the others differ. */
const TAKEN_FLAGS: ReadonlyMap<string, boolean> = new Map([
  ['ack', true],
  ['syn', false],
  ['fin', false],
  ['rst', false],
]);
/** A mark that is made of what is the same for a flow is the same too; the fast path repeats no rewriting of a header. */
function mangleKinds({ key, value }: JsonObject): readonly string[] {
  const { payload } = recordOf(key);
  if (payload === undefined) return expressionKinds(value);
  return TTL_FIELDS.has(recordOf(payload)['field']) ? ['ttl'] : [`${conditionText(key)} set`];
}

/** Names the parts of an expression that may differ from packet to packet. */
function expressionKinds(expression: unknown): readonly string[] {
  if (Array.isArray(expression)) return expression.flatMap(expressionKinds);
  if (typeof expression !== 'object' || expression === null) return [];
  return Object.entries(expression).flatMap(([kind, operand]) => {
    if (OPERATORS.has(kind)) return expressionKinds(operand);
    if (kind === 'map') return expressionKinds(recordOf(operand)['key']);
    const { protocol, field, key } = recordOf(operand);
    const name = kind === 'payload' ? `${protocol} ${field}` : key;
    if (FLOW_EXPRESSIONS.has(kind) || FLOW_FIELDS[kind]?.has(name) === true) return [];
    return [kind === 'numgen' ? kind : conditionText({ [kind]: operand })];
  });
}

const TTL_FIELDS: ReadonlySet<unknown> = new Set(['ttl', 'hoplimit']);

/** Matches of iptables that are the same for all packets of a flow in one direction. @see iptables-extensions(8) */
const FLOW_MATCHES: ReadonlySet<string> = new Set(
  'tcp udp udplite sctp dccp multiport iprange set mark connmark conntrack state comment addrtype physdev devgroup socket owner cgroup rpfilter policy helper realm connlabel  ipvs pkttype ah esp'.split(
    ' ',
  ),
);
/** Options of these that are not. */
const PACKET_OPTIONS: readonly string[] = [
  '--tcp-option',
  '--chunk-types',
  '--dccp-types',
  '--dccp-option',
  '--ctexpire',
  '--packets-eq',
  '--packets-lt',
  '--packets-gt',
  '--bytes-eq',
  '--bytes-lt',
  '--bytes-gt',
];
/** Targets that do the same with each packet of a flow, or nothing that decides about it. */
const FLOW_TARGETS: ReadonlySet<string> = new Set(
  'ACCEPT DROP REJECT RETURN LOG NFLOG ULOG MARK CONNMARK CONNSECMARK SECMARK TCPMSS SET CT NOTRACK TRACE CHECKSUM CLASSIFY AUDIT TPROXY RATEEST IDLETIMER'.split(
    ' ',
  ),
);

function matchKinds(matches: readonly string[]): readonly string[] {
  return matches.filter((match) => !FLOW_MATCHES.has(match) && !FLOW_TARGETS.has(match));
}

/**
 * Names what of a rule of iptables is not known to be the same for each packet of a flow.
 * @param target target of the rule; empty where it has none, or is a chain
 */
export function iptablesKinds(
  conditions: readonly string[],
  matches: readonly string[],
  target: string,
): readonly string[] {
  const options = PACKET_OPTIONS.filter((option) => conditions.includes(option)).map((option) => option.slice(2));
  return [
    ...matchKinds(matches),
    ...options,
    ...(conditions.includes('--tcp-flags') && tcpFlagsMatch(conditions) === undefined ? ['tcp-flags'] : []),
    ...(conditions.includes('-f') ? ['-f'] : []),
    ...(target === '' ? [] : matchKinds([target])),
  ];
}

/** Whether the conditions of a rule of iptables can hold for packets of an established connection that the fast path takes. */
export function holdsForEstablished(conditions: readonly string[]): boolean {
  const protocol = conditions.indexOf('-p');
  if (protocol >= 0 && conditions[protocol - 1] !== '!' && !TAKEN_PROTOCOLS.has(conditions[protocol + 1])) return false;
  if (conditions.includes('--syn') || tcpFlagsMatch(conditions) === false) return false;
  const at = conditions.findIndex((arg) => arg === '--ctstate' || arg === '--state');
  if (at < 0) return true;
  const isIn = (conditions[at + 1] ?? '').split(',').includes('ESTABLISHED');
  return conditions[at - 1] === '!' ? !isIn : isIn;
}

function tcpFlagsMatch(conditions: readonly string[]): boolean | undefined {
  const at = conditions.indexOf('--tcp-flags');
  if (at < 0) return undefined;
  const [mask = [], flags = []] = conditions.slice(at + 1, at + 3).map(iptablesFlags);
  const isEqual = equalFlags(TAKEN_FLAGS, mask, flags);
  return isEqual === undefined ? undefined : isEqual === (conditions[at - 1] !== '!');
}
