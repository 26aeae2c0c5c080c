/**
 * Reads what kube-proxy's rules do, one line for each way to a Service, sorted; the same lines for both of its modes:
 * `tcp 10.96.0.10:80: [not from 172.31.0.0/16] masquerade; 172.31.1.10:8080 [itself] masquerade, 10.0.1.5:8080 [itself] masquerade`.
 * @param text what `iptables-save -t nat` or `nft list table ip kube-proxy` prints
 */
export function readProxyFacts(text: string): readonly string[] {
  const rules = /^\s*table ip kube-proxy/m.test(text) ? nftRules(text) : iptablesRules(text);
  return rules.starts
    .map(({ what, chain }) => `${what}: ${[...walk(rules.chains, chain, '', [])].join('; ')}`)
    .toSorted();
}

/** A rule after its own match of the Service: a condition and what follows. */
type Step = { readonly when: string; readonly go?: string; readonly dnat?: string; readonly masquerade?: true };
type Rules = {
  /** What leads to a Service, and the chain that serves it. */
  readonly starts: readonly { readonly what: string; readonly chain: string }[];
  readonly chains: ReadonlyMap<string, readonly Step[]>;
};

/** Most chains on the way of a packet: services, external, service, endpoint. */
const MOST_DEPTH = 5;

/** Lists in their order what a packet meets in a chain; endpoints of a random choice are sorted. */
function walk(chains: Rules['chains'], chain: string, when: string, path: readonly string[]): readonly string[] {
  if (path.length > MOST_DEPTH) throw new Error(`chains go deeper than kube-proxy's: ${path.join(' ')}`);
  const lines: string[] = [];
  const endpoints: string[] = [];
  for (const step of chains.get(chain) ?? []) {
    const condition = [when, step.when].filter((one) => one !== '').join(' and ');
    const prefix = condition === '' ? '' : `[${condition}] `;
    if (step.masquerade === true) lines.push(`${prefix}masquerade`);
    if (step.dnat !== undefined) lines.push(`${prefix}${step.dnat}`);
    if (step.go === undefined) continue;
    const below = walk(chains, step.go, condition, [...path, chain]);
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
  const starts: Rules['starts'][number][] = [];
  for (const line of lines) {
    const [, chain = ''] = line.split(' ');
    const target = / -j (\S+)/.exec(line)?.[1] ?? '';
    // Counts packets to 127.0.0.1 and decides nothing.
    if (line.includes('nfacct')) continue;
    const [protocol, ip, port] = [/ -p (\S+)/, / -d (\S+?)(?:\/32)? /, / --dport (\d+)/].map(
      (one) => one.exec(line)?.[1],
    );
    if (chain === 'KUBE-SERVICES' && ip !== undefined && target.startsWith('KUBE-SVC-'))
      starts.push({ what: `${protocol} ${ip}:${port}`, chain: target });
    else if (chain === 'KUBE-NODEPORTS') starts.push({ what: `${protocol} node port ${port}`, chain: target });
    else if (/^KUBE-(SVC|SVL|EXT|SEP)-/.test(chain))
      chains.set(chain, [...(chains.get(chain) ?? []), iptablesStep(chain, line, target)]);
  }
  return { starts, chains };
}

function iptablesStep(chain: string, line: string, target: string): Step {
  const source = / (! )?-s (\S+)/.exec(line);
  const link = / (! )?-i (\S+)/.exec(line);
  const dnat = /--to-destination (\S+)/.exec(line)?.[1];
  const when = [
    ...(isEndpoint(chain) && source !== null
      ? ['itself']
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
  const chains = new Map<string, Step[]>();
  for (const [, name = '', body = ''] of text.matchAll(/^\tchain (\S+) \{\n([^}]*(?:\{[^}]*\}[^}]*)*?)^\t\}/gm)) {
    chains.set(
      name,
      body.split('\n').flatMap((line) => nftSteps(name, line.trim())),
    );
  }
  const elements = [
    ...text.matchAll(
      /(?:(\d+\.\d+\.\d+\.\d+) \. )?(tcp|udp) \. (\d+) (?:comment "[^"]*" )?: goto ((?:service|external)-\S+?)(?=[,\s])/g,
    ),
  ];
  const starts = elements.map(([, ip, protocol, port, chain = '']) => ({
    what: ip === undefined ? `${protocol} node port ${port}` : `${protocol} ${ip}:${port}`,
    chain,
  }));
  return { starts, chains };
}

function nftSteps(chain: string, line: string): readonly Step[] {
  const source = /ip saddr (!= )?(\S+)/.exec(line);
  const link = /iifname (!= )?"([^"]+)"/.exec(line);
  const when = [
    ...(isEndpoint(chain) && source !== null
      ? ['itself']
      : source === null
        ? []
        : [`${source[1] === undefined ? '' : 'not '}from ${source[2]}`]),
    ...(link === null ? [] : [`${link[1] === undefined ? '' : 'not '}by ${link[2]}`]),
    ...(/fib saddr type local/.test(line) ? ['from the node'] : []),
  ].join(' and ');
  const dnat = /dnat to (\S+)/.exec(line)?.[1];
  if (dnat !== undefined) return [{ when, dnat }];
  if (line.includes('mark-for-masquerade')) return [{ when, masquerade: true }];
  return [...line.matchAll(/goto (\S+?)(?=[,\s]|$)/g)].map(([, go = '']) => ({ when, go }));
}
