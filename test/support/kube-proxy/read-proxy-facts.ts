import type { ProxiedService } from './service-rules.ts';

/**
 * Reads what kube-proxy's rules do, one line for each way to a Service, sorted; the same lines for both of its modes, and
 * for the rules that it writes in nftables mode before and since 1.36:
 * `tcp 10.96.0.10:80: [not from 172.31.0.0/16] masquerade; 10.0.1.5:8080; [itself] masquerade 172.31.1.10:8080`.
 * @param text what `iptables-save -t nat` or `nft list table ip kube-proxy` prints
 * @param services those that it serves: only an endpoint of the node can ask itself there, and only some versions have a
 * rule for the others
 */
export function readProxyFacts(text: string, services: readonly ProxiedService[]): readonly string[] {
  const rules = /^\s*table ip kube-proxy/m.test(text) ? nftRules(text) : iptablesRules(text);
  const local = new Set(
    services.flatMap(({ endpoints }) =>
      endpoints.filter(({ isLocal }) => isLocal).map(({ ip, port }) => `${ip}:${port}`),
    ),
  );
  return rules.starts
    .map((start) => `${start.what}: ${[...walk({ rules, start, local }, start.chain, '', [])].join('; ')}`)
    .toSorted();
}

/** A rule after its own match of the Service: a condition and what follows. */
type Step = {
  readonly when: string;
  /** The one destination that it is for. */
  readonly to?: string;
  readonly go?: string;
  readonly dnat?: string;
  readonly masquerade?: true;
};
/** What leads to a Service, and the chain that serves it. */
type Start = { readonly what: string; readonly ip: string | undefined; readonly chain: string };
type Rules = { readonly starts: readonly Start[]; readonly chains: ReadonlyMap<string, readonly Step[]> };
/** A way to a Service through the rules. */
type Way = { readonly rules: Rules; readonly start: Start; readonly local: ReadonlySet<string> };

/** Most chains on the way of a packet: services, external, service, endpoint. */
const MOST_DEPTH = 5;

/** The condition of the rule for what an endpoint sends to itself. */
const ITSELF = 'itself';

/** Lists in their order what a packet meets in a chain; endpoints of a random choice are sorted. */
function walk(way: Way, chain: string, when: string, path: readonly string[]): readonly string[] {
  if (path.length > MOST_DEPTH) throw new Error(`chains go deeper than kube-proxy's: ${path.join(' ')}`);
  const lines: string[] = [];
  const endpoints: string[] = [];
  const steps = way.rules.chains.get(chain) ?? [];
  const isLocal = steps.some(({ dnat }) => dnat !== undefined && way.local.has(dnat));
  for (const step of steps) {
    if (step.to !== undefined && step.to !== way.start.ip) continue;
    if (step.when === ITSELF && !isLocal) continue;
    const condition = [when, step.when].filter((one) => one !== '').join(' and ');
    const prefix = condition === '' ? '' : `[${condition}] `;
    if (step.masquerade === true) lines.push(`${prefix}masquerade`);
    if (step.dnat !== undefined) lines.push(`${prefix}${step.dnat}`);
    if (step.go === undefined) continue;
    const below = walk(way, step.go, condition, [...path, chain]);
    if (isEndpoint(step.go)) endpoints.push(below.join(' '));
    else lines.push(...below);
  }
  return [...lines, ...endpoints.toSorted()];
}

function isEndpoint(chain: string): boolean {
  return /^(KUBE-SEP-|endpoint-)/.test(chain);
}

function iptablesRules(text: string): Rules {
  const lines = text.split('\n').filter((line) => line.startsWith('-A KUBE-'));
  const chains = new Map<string, Step[]>();
  const starts: Start[] = [];
  for (const line of lines) {
    const [, chain = ''] = line.split(' ');
    const target = / -j (\S+)/.exec(line)?.[1] ?? '';
    // Counts packets to 127.0.0.1 and decides nothing.
    if (line.includes('nfacct')) continue;
    const [protocol, ip, port] = [/ -p (\S+)/, / -d (\S+?)(?:\/32)? /, / --dport (\d+)/].map(
      (one) => one.exec(line)?.[1],
    );
    if (chain === 'KUBE-SERVICES' && ip !== undefined && target.startsWith('KUBE-SVC-'))
      starts.push({ what: `${protocol} ${ip}:${port}`, ip, chain: target });
    else if (chain === 'KUBE-NODEPORTS')
      starts.push({ what: `${protocol} node port ${port}`, ip: undefined, chain: target });
    else if (/^KUBE-(SVC|SVL|EXT|SEP)-/.test(chain)) {
      const step = { ...iptablesStep(chain, line, target), ...(ip !== undefined && { to: ip }) };
      chains.set(chain, [...(chains.get(chain) ?? []), step]);
    }
  }
  return { starts, chains };
}

function iptablesStep(chain: string, line: string, target: string): Step {
  const source = / (! )?-s (\S+)/.exec(line);
  const link = / (! )?-i (\S+)/.exec(line);
  const dnat = /--to-destination (\S+)/.exec(line)?.[1];
  const when = [
    ...(isEndpoint(chain) && source !== null
      ? [ITSELF]
      : source === null
        ? []
        : [`${source[1] === undefined ? '' : 'not '}from ${source[2]}`]),
    ...(link === null ? [] : [`${link[1] === undefined ? '' : 'not '}by ${link[2]?.replace('+', '*')}`]),
    ...(line.includes('--src-type LOCAL') ? ['from the node'] : []),
  ].join(' and ');
  if (target === 'KUBE-MARK-MASQ') return { when, masquerade: true };
  return dnat === undefined ? { when, go: target } : { when, dnat };
}

function nftRules(text: string): Rules {
  const bodies = new Map<string, readonly string[]>();
  for (const [, name = '', body = ''] of text.matchAll(/^\tchain (\S+) \{\n([^}]*(?:\{[^}]*\}[^}]*)*?)^\t\}/gm))
    bodies.set(
      name,
      body.split('\n').map((line) => line.trim()),
    );
  const hairpins = hairpinsOf(text, bodies);
  const chains = new Map<string, readonly Step[]>();
  for (const [name, lines] of bodies) {
    chains.set(
      name,
      lines.flatMap((line) => choiceSteps(name, line, chains, hairpins) ?? nftSteps(name, line, hairpins)),
    );
  }
  const elements = text.matchAll(
    /(?:(\d+\.\d+\.\d+\.\d+) \. )?(tcp|udp) \. (\d+) (?:comment "[^"]*" )?: goto ((?:service|external)-\S+?)(?=[,\s])/g,
  );
  const starts = [...elements].map(([, ip, protocol, port, chain = '']) => {
    const what = ip === undefined ? `${protocol} node port ${port}` : `${protocol} ${ip}:${port}`;
    const before = ip !== undefined && elementsOf(text, 'cluster-ips').includes(ip) ? clusterSteps(bodies) : [];
    chains.set(what, [...before, { when: '', go: chain }]);
    return { what, ip, chain: what };
  });
  return { starts, chains };
}

/** Masquerading for all addresses of Services in one rule; of older versions each Service has its own. */
function clusterSteps(bodies: ReadonlyMap<string, readonly string[]>): readonly Step[] {
  const lines = (bodies.get('services') ?? []).filter((line) => line.startsWith('ip daddr @cluster-ips '));
  return lines.flatMap((line) => nftSteps('services', line, []));
}

/** Endpoints whose packets to themselves are masqueraded by one rule for all: `tcp 172.31.1.2:8080`. Before 1.36: none. */
function hairpinsOf(text: string, bodies: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const isUsed = bodies.get('masquerading')?.some((line) => /@hairpin-connections masquerade\b/.test(line)) ?? false;
  if (!isUsed) return [];
  return elementsOf(text, 'hairpin-connections').map((element) => {
    const [from, to, protocol, port] = element.split(' . ');
    return from === to ? `${protocol} ${from}:${port}` : element;
  });
}

function elementsOf(text: string, set: string): readonly string[] {
  const body = new RegExp(`^\\tset ${set} \\{[^{}]*elements = \\{([^}]*)\\}`, 'm').exec(text)?.[1] ?? '';
  return body.split(',').map((element) => element.trim());
}

/**
 * Reads a random choice among destinations, as 1.36 has it where a Service is not sticky: as if each had its chain;
 * undefined for another rule.
 */
function choiceSteps(
  chain: string,
  line: string,
  chains: Map<string, readonly Step[]>,
  hairpins: readonly string[],
): readonly Step[] | undefined {
  const [, match = '', choice] =
    /^(meta l4proto \w+ )dnat ip (?:addr \. port )?to numgen random mod \d+ map \{([^}]*)\}/.exec(line) ?? [];
  return choice?.split(',').map((entry) => {
    const [, ip, port] = /: (\S+) \. (\d+)/.exec(entry) ?? [];
    const go = `endpoint-${chain}__${ip}/${port}`;
    chains.set(go, nftSteps(go, `${match}dnat to ${ip}:${port}`, hairpins));
    return { when: '', go };
  });
}

function nftSteps(chain: string, line: string, hairpins: readonly string[]): readonly Step[] {
  // An endpoint that was chosen before, for a sticky Service: the choice has it too.
  if (line.includes('@affinity-')) return [];
  const source = /ip saddr (!= )?(\S+)/.exec(line);
  const link = /iifname (!= )?"([^"]+)"/.exec(line);
  const when = [
    ...(isEndpoint(chain) && source !== null
      ? [ITSELF]
      : source === null
        ? []
        : [`${source[1] === undefined ? '' : 'not '}from ${source[2]}`]),
    ...(link === null ? [] : [`${link[1] === undefined ? '' : 'not '}by ${link[2]}`]),
    ...(/fib saddr type local/.test(line) ? ['from the node'] : []),
  ].join(' and ');
  const to = /ip daddr (\d\S+)/.exec(line)?.[1];
  const step = { when, ...(to !== undefined && { to }) };
  const [, protocol, dnat] = /^meta l4proto (\w+) dnat to (\S+)/.exec(line) ?? [];
  if (dnat !== undefined)
    return [
      ...(hairpins.includes(`${protocol} ${dnat}`) ? [{ when: ITSELF, masquerade: true } as const] : []),
      { ...step, dnat },
    ];
  if (/mark-for-masquerade|mark set (?:meta )?mark (?:or|\|) 0x/.test(line)) return [{ ...step, masquerade: true }];
  return [...line.matchAll(/goto (\S+?)(?=[,\s]|$)/g)].map(([, go = '']) => ({ ...step, go }));
}
