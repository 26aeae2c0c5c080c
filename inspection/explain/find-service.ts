import { isAddress } from '../../dataplane/ip-prefix.ts';
import { NFT_TABLE } from '../../dataplane/numbers.ts';
import { ownAddress } from '../../netlink/address-message.ts';
import { isRecord } from '../../runtime/decode.ts';
import { type JsonObject, listOf, recordOf } from '../../runtime/json.ts';
import type { NodeFacts } from '../node/node-facts.ts';

/** Link that has the addresses of Services in kube-proxy's IPVS mode. */
const IPVS_LINK = 'kube-ipvs0';

/** A destination that the node replaces by another address before it routes the packet. */
export type Service = {
  readonly ip: string;
  /** What replaces it: 'nftables table ip nat, chain KUBE-SERVICES'. */
  readonly by: string;
  /**
   * Whether kube-proxy does it: then no host has this address. Otherwise it may be a host with some redirected ports.
   */
  readonly isKubeProxy: boolean;
  /** Addresses that may replace it, sorted, as far as they can be read. */
  readonly backends: readonly string[];
  /**
   * What kube-proxy does with packets to a Service without backends: it rejects them, or drops them where the traffic policy
   * is Local and the backends are on other nodes. Undefined: it rewrites them.
   */
  readonly refusal: 'rejected' | 'dropped' | undefined;
};

/**
 * Finds what rewrites packets to an address: kube-proxy's rules (iptables by its nft variant, or nftables), DNAT of any
 * other program, or IPVS. Ports are not evaluated.
 * @see https://kubernetes.io/docs/reference/networking/virtual-ips/
 */
export function findService({ host }: Pick<NodeFacts, 'host'>, ip: string): Service | undefined {
  const ipvs = host.links.find(({ ifname }) => ifname === IPVS_LINK)?.ifindex;
  if (ipvs !== undefined && host.addresses.some((address) => address.ifindex === ipvs && ownAddress(address) === ip)) {
    return { ip, by: `IPVS (link ${IPVS_LINK})`, isKubeProxy: true, backends: [], refusal: undefined };
  }
  if (host.nft.kind === 'unknown') return undefined;
  const ruleset = rulesetOf(host.nft.value.objects);
  const found = startsFor(ruleset, ip).map((start) => ({ start, reached: follow(ruleset, start) }));
  const first =
    found.find(({ reached }) => reached.isRewriting) ??
    found.find(({ start, reached }) => isKubeProxys(start) && reached.isRefusing) ??
    found.find(({ start }) => isKubeProxys(start) && isDropping(start));
  if (first === undefined) return undefined;
  const { start, reached } = first;
  const backends = [...new Set(reached.backends)].filter((each) => each !== ip).sort();
  const by = `nftables table ${start.table}, ${start.where}`;
  const refusal = reached.isRewriting ? undefined : reached.isRefusing ? 'rejected' : 'dropped';
  return { ip, by, isKubeProxy: isKubeProxys(start), backends, refusal };
}

function isKubeProxys({ table, where }: Start): boolean {
  return /KUBE-/.test(where) || / kube-proxy$/.test(table);
}

/**
 * Reports whether it drops packets itself, as kube-proxy does by a rule of iptables or an element of a map: chains behind it
 * may drop those of some sources only.
 */
function isDropping({ where, body }: Start): boolean {
  return /^(map |chain KUBE-)/.test(where) && listOf(body).some((statement) => 'drop' in recordOf(statement));
}

type Ruleset = {
  /** Rules by '<family> <table> <chain>'. */
  readonly rules: ReadonlyMap<string, readonly JsonObject[]>;
  readonly maps: readonly JsonObject[];
};

type Start = { readonly table: string; readonly where: string; readonly body: unknown };

function rulesetOf(objects: readonly JsonObject[]): Ruleset {
  const rules = objects.map(({ rule }) => rule).filter(isRecord);
  const foreign = rules.filter(({ family, table }) => !(family === 'inet' && table === NFT_TABLE));
  return {
    rules: Map.groupBy(foreign, (rule) => `${tableOf(rule)} ${String(rule['chain'])}`),
    maps: objects.map(({ map }) => map).filter(isRecord),
  };
}

function tableOf({ family, table }: JsonObject): string {
  return `${String(family)} ${String(table)}`;
}

/** Returns the rules and map elements for exactly this destination. */
function startsFor({ rules, maps }: Ruleset, ip: string): readonly Start[] {
  const byRule = [...rules.values()]
    .flat()
    .filter((rule) => listOf(rule['expr']).some((statement) => isForDestination(statement, ip)))
    .map((rule) => ({ table: tableOf(rule), where: `chain ${String(rule['chain'])}`, body: rule['expr'] }));
  const byMap = maps.flatMap((map) =>
    listOf(map['elem'])
      .filter((element) => Array.isArray(element) && isKeyOf(element[0], ip))
      .map((element) => ({ table: tableOf(map), where: `map ${String(map['name'])}`, body: element })),
  );
  return [...byRule, ...byMap];
}

function isForDestination(statement: unknown, ip: string): boolean {
  const match = recordOf(statement)['match'];
  return isRecord(match) && match['op'] === '==' && match['right'] === ip && fieldOf(match) === 'daddr';
}

function fieldOf({ left }: JsonObject): unknown {
  const payload = recordOf(left)['payload'];
  return recordOf(payload)['field'];
}

/**
 * Reports whether a map key is the address, or a concatenation that begins with it: '10.96.0.10'. nft wraps the key of an
 * element that has a comment, as those of Services without backends have.
 */
function isKeyOf(key: unknown, ip: string): boolean {
  const value = recordOf(recordOf(key)['elem'])['val'] ?? key;
  if (value === ip) return true;
  const concat = recordOf(value)['concat'];
  return Array.isArray(concat) && concat[0] === ip;
}

type TraceResult = {
  isRewriting: boolean;
  isRefusing: boolean;
  readonly backends: string[];
  readonly visited: Set<string>;
};

function follow(ruleset: Ruleset, start: Start): TraceResult {
  const reached: TraceResult = { isRewriting: false, isRefusing: false, backends: [], visited: new Set() };
  const waiting: unknown[] = [start.body];
  for (let body = waiting.pop(); body !== undefined; body = waiting.pop()) {
    const targets = [...new Set(collect(reached, body))].filter((chain) => !reached.visited.has(chain));
    for (const chain of targets) {
      reached.visited.add(chain);
      const rules = ruleset.rules.get(`${start.table} ${chain}`) ?? [];
      const bodies = rules.map((rule) => rule['expr']);
      // nft does not show the new destination of a DNAT of iptables. kube-proxy's chain for a backend has it as a
      // source, too.
      if (bodies.some((expr) => JSON.stringify(expr).includes('{"type":"target","name":"DNAT"}'))) {
        reached.backends.push(...bodies.flatMap(sourcesOf));
      }
      waiting.push(...bodies);
    }
  }
  return reached;
}

/** Collects what a rule rewrites to; returns the chains that it jumps to. */
function collect(reached: TraceResult, body: unknown): readonly string[] {
  if (Array.isArray(body)) return body.flatMap((member) => collect(reached, member));
  if (!isRecord(body)) return [];
  return Object.entries(body).flatMap(([key, value]) => {
    if (key === 'reject' || (key === 'xt' && isRecord(value) && value['name'] === 'REJECT')) reached.isRefusing = true;
    if (key === 'dnat' || key === 'redirect' || (key === 'xt' && isRecord(value) && value['name'] === 'DNAT')) {
      reached.isRewriting = true;
      reached.backends.push(...addressesIn(value));
      return [];
    }
    if ((key === 'jump' || key === 'goto') && isRecord(value)) return [String(value['target'])];
    return collect(reached, value);
  });
}

function sourcesOf(expr: unknown): readonly string[] {
  return listOf(expr).flatMap((statement) => {
    const match = recordOf(statement)['match'];
    const isSource = isRecord(match) && match['op'] === '==' && fieldOf(match) === 'saddr';
    return isSource ? addressesIn(match['right']) : [];
  });
}

function addressesIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return isAddress(value) ? [value] : [];
  if (Array.isArray(value)) return value.flatMap(addressesIn);
  return isRecord(value) ? Object.values(value).flatMap(addressesIn) : [];
}
