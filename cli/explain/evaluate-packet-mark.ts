import { NFT_TABLE } from '../../dataplane/numbers.ts';
import { isRecord } from '../../runtime/decode.ts';
import { type JsonObject, recordOf } from '../../runtime/json.ts';
import { prefixContains } from './prefix-contains.ts';

/** A packet as the nftables table of tke-eni matches it in prerouting. */
export type NftPacket = {
  readonly family: 4 | 6;
  readonly src: string;
  readonly dst: string;
  readonly iifname: string;
  readonly iifgroup: number;
  readonly mark: number;
  /** Direction within its connection: packets of the side that opened it, or answers. */
  readonly direction: 'original' | 'reply';
  /** Mark of its connection. */
  readonly ctMark: number;
  /** Whether the route back to its source uses the link on which it arrived. */
  readonly isSourceRouted: boolean;
  /** Whether its destination is an address of the node. */
  readonly isLocal: boolean;
};

/** What the table does with a packet. */
export type NftVerdict = {
  readonly verdict: 'accept' | 'drop';
  readonly mark: number;
  /** Chains that the packet went through, in order. */
  readonly chains: readonly string[];
  /** Statements that are not supported here. If there are any, the mark is a guess. */
  readonly unsupported: readonly string[];
};

/** Limit of visited chains. Chains of tke-eni never loop; chains of other programs might. */
const MAX_JUMPS = 32;

/**
 * Evaluates the nftables table of tke-eni for a packet in prerouting. Supports the statements that tke-eni writes.
 * @see libnftables-json(5)
 */
export function evaluatePacketMark(objects: readonly JsonObject[], packet: NftPacket): NftVerdict {
  const run: Run = { packet, rules: rulesByChain(objects), mark: packet.mark, chains: [], unsupported: [] };
  for (const chain of baseChains(objects)) {
    if (runChain(run, chain) === 'drop') return { ...outcome(run), verdict: 'drop' };
  }
  return { ...outcome(run), verdict: 'accept' };
}

type Run = {
  readonly packet: NftPacket;
  readonly rules: ReadonlyMap<string, readonly JsonObject[]>;
  mark: number;
  readonly chains: string[];
  readonly unsupported: string[];
};

/** Result of a statement. skip: it does not match, the next rule follows; `to`: jump (`returns`) or goto to a chain. */
type Step = 'next' | 'skip' | 'return' | 'accept' | 'drop' | { readonly to: string; readonly returns: boolean };

function outcome({ mark, chains, unsupported }: Run): Omit<NftVerdict, 'verdict'> {
  return { mark, chains, unsupported };
}

function isOurs(object: JsonObject): boolean {
  return object['table'] === NFT_TABLE && object['family'] === 'inet';
}

function baseChains(objects: readonly JsonObject[]): readonly string[] {
  return objects
    .map((object) => object['chain'])
    .filter(isRecord)
    .filter((chain) => isOurs(chain) && chain['hook'] === 'prerouting')
    .sort((a, b) => Number(a['prio']) - Number(b['prio']))
    .map((chain) => String(chain['name']));
}

function rulesByChain(objects: readonly JsonObject[]): ReadonlyMap<string, readonly JsonObject[]> {
  const rules = objects.map((object) => object['rule']).filter(isRecord);
  return Map.groupBy(rules.filter(isOurs), (rule) => String(rule['chain']));
}

function runChain(run: Run, chain: string): 'accept' | 'drop' | 'return' {
  if (run.chains.length >= MAX_JUMPS) return 'return';
  run.chains.push(chain);
  for (const rule of run.rules.get(chain) ?? []) {
    const step = runRule(run, Array.isArray(rule['expr']) ? rule['expr'].filter(isRecord) : []);
    if (step === 'accept' || step === 'drop' || step === 'return') return step;
    if (typeof step === 'object') {
      const answer = runChain(run, step.to);
      if (answer !== 'return') return answer;
      if (!step.returns) return 'return';
    }
  }
  return 'return';
}

function runRule(run: Run, statements: readonly JsonObject[]): Step {
  for (const statement of statements) {
    const step = runStatement(run, statement);
    if (step === 'skip') return 'next';
    if (step !== 'next') return step;
  }
  return 'next';
}

function runStatement(run: Run, statement: JsonObject): Step {
  const [kind = ''] = Object.keys(statement);
  const body = statement[kind];
  switch (kind) {
    case 'match':
      return isRecord(body) && isMatch(run, body) ? 'next' : 'skip';
    case 'mangle':
      return isRecord(body) ? mangle(run, body) : 'next';
    case 'vmap':
      return isRecord(body) ? lookUpVmap(run, body) : 'next';
    case 'counter':
      return 'next';
    case 'drop':
    case 'accept':
    case 'return':
      return kind;
    case 'jump':
    case 'goto':
      return { to: isRecord(body) ? String(body['target']) : '', returns: kind === 'jump' };
    default:
      return skipUnsupported(run, statement);
  }
}

function skipUnsupported(run: Run, statement: unknown): 'skip' {
  run.unsupported.push(JSON.stringify(statement));
  return 'skip';
}

function mangle(run: Run, body: JsonObject): Step {
  const key = JSON.stringify(body['key']);
  // The mark of the connection is for answers. It changes nothing for this packet.
  if (key === '{"ct":{"key":"mark"}}') return 'next';
  const value = evaluate(run, body['value']);
  if (key !== '{"meta":{"key":"mark"}}' || typeof value !== 'number') return skipUnsupported(run, { mangle: body });
  run.mark = value;
  return 'next';
}

function lookUpVmap(run: Run, body: JsonObject): Step {
  const key = evaluate(run, body['key']);
  const set = recordOf(body['data'])['set'];
  if (key === undefined || !Array.isArray(set)) return skipUnsupported(run, { vmap: body });
  const found = set.find((element: unknown) => Array.isArray(element) && element[0] === key);
  const verdict: unknown = Array.isArray(found) ? found[1] : undefined;
  return isRecord(verdict) ? runStatement(run, verdict) : 'next';
}

function isMatch(run: Run, body: JsonObject): boolean {
  const left = evaluate(run, body['left']);
  if (left === NO_HEADER) return false;
  if (left === undefined) {
    skipUnsupported(run, { match: body });
    return false;
  }
  const isEqual = membersOf(body['right']).some((member) => isMember(left, member));
  return body['op'] === '!=' ? !isEqual : isEqual;
}

function membersOf(right: unknown): readonly unknown[] {
  const set = recordOf(right)['set'];
  return Array.isArray(set) ? set : [right];
}

function isMember(left: unknown, member: unknown): boolean {
  if (!isRecord(member)) return left === member;
  const prefix = member['prefix'];
  return isRecord(prefix) && typeof left === 'string' && prefixContains(`${prefix['addr']}/${prefix['len']}`, left);
}

/** Evaluates an expression. Undefined: not supported here; NO_HEADER: a field of the other family's header. */
function evaluate(run: Run, expression: unknown): unknown {
  if (!isRecord(expression)) return expression;
  const [kind = ''] = Object.keys(expression);
  const body = expression[kind];
  const { packet } = run;
  switch (kind) {
    case 'meta':
      return isRecord(body) ? metaOf(run, String(body['key'])) : undefined;
    case 'ct':
      return isRecord(body) ? { direction: packet.direction, mark: packet.ctMark }[String(body['key'])] : undefined;
    case 'payload':
      return isRecord(body) ? addressOf(packet, body) : undefined;
    case 'fib':
      return isRecord(body) ? fibOf(packet, body) : undefined;
    case '&':
    case '|':
    case '^':
      return Array.isArray(body) ? bitwise(kind, evaluate(run, body[0]), evaluate(run, body[1])) : undefined;
    default:
      return undefined;
  }
}

function metaOf(run: Run, key: string): unknown {
  const { iifname, iifgroup, family } = run.packet;
  return { mark: run.mark, iifname, iifgroup, nfproto: family === 4 ? 'ipv4' : 'ipv6' }[key];
}

/**
 * Returns a field of the packet. A field of the other family's header matches nothing, not even `!=`: nft checks the
 * family first.
 */
function addressOf(packet: NftPacket, body: JsonObject): unknown {
  const isOfFamily = body['protocol'] === (packet.family === 4 ? 'ip' : 'ip6');
  return isOfFamily ? { saddr: packet.src, daddr: packet.dst }[String(body['field'])] : NO_HEADER;
}

const NO_HEADER = Symbol('header of another family');

function fibOf(packet: NftPacket, body: JsonObject): unknown {
  const flags = JSON.stringify(body['flags']);
  if (body['result'] === 'oif' && flags === '["saddr","iif"]') return packet.isSourceRouted;
  if (body['result'] === 'type' && flags === '["daddr"]') return packet.isLocal ? 'local' : 'unicast';
  return undefined;
}

function bitwise(operator: string, left: unknown, right: unknown): number | undefined {
  if (typeof left !== 'number' || typeof right !== 'number') return undefined;
  if (operator === '&') return (left & right) >>> 0;
  return (operator === '|' ? left | right : left ^ right) >>> 0;
}
