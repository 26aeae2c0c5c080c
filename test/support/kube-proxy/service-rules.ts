import { createHash } from 'node:crypto';

/** A Service with one port, as one node's kube-proxy has it. */
export type ProxiedService = {
  /** `namespace/name`. */
  readonly name: string;
  readonly clusterIp: string;
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
  readonly nodePort?: number;
  /** externalTrafficPolicy. */
  readonly policy: 'Cluster' | 'Local';
  readonly endpoints: readonly { readonly ip: string; readonly port: number; readonly isLocal: boolean }[];
};

/** How kube-proxy tells Pods of its node, whose requests to a ClusterIP keep their source; absent: it does not, and all keep it. */
export type LocalDetector = { readonly cluster: string } | { readonly interfacePrefix: string };

/**
 * The stand-in of kube-proxy: what it writes in iptables mode for these Services, as input of `iptables-restore --noflush`.
 * The one copy of its rules; `service-rules` are compared with those of the real one by `readProxyFacts`.
 */
export function serviceRules(services: readonly ProxiedService[], detector?: LocalDetector): string {
  const rules = services.flatMap((service) => rulesOf(service, detector));
  const chains = [...new Set([...FIXED_CHAINS, ...rules.map((rule) => rule.split(' ')[1] ?? '')])];
  const own = chains.filter((chain) => chain.startsWith('KUBE-'));
  return ['*nat', ...own.map((chain) => `:${chain} - [0:0]`), ...FIXED, ...rules, LAST, 'COMMIT', ''].join('\n');
}

const MASQUERADE_BIT = '0x4000/0x4000';
const FIXED_CHAINS = ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ'];
const FIXED = [
  '-A PREROUTING -j KUBE-SERVICES',
  '-A OUTPUT -j KUBE-SERVICES',
  '-A POSTROUTING -j KUBE-POSTROUTING',
  `-A KUBE-MARK-MASQ -j MARK --set-xmark ${MASQUERADE_BIT}`,
  `-A KUBE-POSTROUTING -m mark ! --mark ${MASQUERADE_BIT} -j RETURN`,
  '-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0',
  '-A KUBE-POSTROUTING -j MASQUERADE --random-fully',
];
/** After all Services: what is for the node itself may be a NodePort. */
const LAST = '-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS';

function rulesOf(service: ProxiedService, detector: LocalDetector | undefined): readonly string[] {
  const { clusterIp, port, protocol, nodePort, endpoints, policy } = service;
  const [svc, svl, ext] = (['KUBE-SVC', 'KUBE-SVL', 'KUBE-EXT'] as const).map((kind) => chainName(kind, service));
  const toPort = `-p ${protocol} -m ${protocol} --dport`;
  const local = policy === 'Local' ? endpoints.filter(({ isLocal }) => isLocal) : [];
  return [
    `-A KUBE-SERVICES -d ${clusterIp}/32 ${toPort} ${port} -j ${svc}`,
    ...(detector === undefined
      ? []
      : [`-A ${svc} ${match(detector, true)} -d ${clusterIp}/32 ${toPort} ${port} -j KUBE-MARK-MASQ`]),
    ...balance(svc ?? '', service, endpoints),
    ...(nodePort === undefined ? [] : [`-A KUBE-NODEPORTS ${toPort} ${nodePort} -j ${ext}`]),
    ...(nodePort === undefined
      ? []
      : external(ext ?? '', svc ?? '', local.length > 0 ? svl : undefined, policy, detector)),
    ...balance(svl ?? '', service, local),
    ...endpoints.flatMap(({ ip, port: to }) => {
      const sep = chainName('KUBE-SEP', service, `${ip}:${to}`);
      return [
        `-A ${sep} -s ${ip}/32 -j KUBE-MARK-MASQ`,
        `-A ${sep} -p ${protocol} -m ${protocol} -j DNAT --to-destination ${ip}:${to}`,
      ];
    }),
  ];
}

/** What came by a NodePort. With policy Local the Pods of the node and the node itself still reach every endpoint. */
function external(
  ext: string,
  svc: string,
  svl: string | undefined,
  policy: ProxiedService['policy'],
  detector: LocalDetector | undefined,
): readonly string[] {
  if (policy === 'Cluster') return [`-A ${ext} -j KUBE-MARK-MASQ`, `-A ${ext} -j ${svc}`];
  return [
    ...(detector === undefined ? [] : [`-A ${ext} ${match(detector, false)} -j ${svc}`]),
    `-A ${ext} -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ`,
    `-A ${ext} -m addrtype --src-type LOCAL -j ${svc}`,
    ...(svl === undefined ? [] : [`-A ${ext} -j ${svl}`]),
  ];
}

function balance(chain: string, service: ProxiedService, endpoints: ProxiedService['endpoints']): readonly string[] {
  return endpoints.map(({ ip, port }, at) => {
    const left = endpoints.length - at;
    const share = left === 1 ? '' : `-m statistic --mode random --probability ${(1 / left).toFixed(10)} `;
    return `-A ${chain} ${share}-j ${chainName('KUBE-SEP', service, `${ip}:${port}`)}`;
  });
}

function match(detector: LocalDetector, isNegated: boolean): string {
  const not = isNegated ? '! ' : '';
  return 'cluster' in detector ? `${not}-s ${detector.cluster}` : `${not}-i ${detector.interfacePrefix}+`;
}

/** As kube-proxy names them. */
function chainName(kind: string, { name, protocol }: ProxiedService, endpoint = ''): string {
  const digest = createHash('sha256').update(`${name}${protocol}${endpoint}`).digest();
  return `${kind}-${base32(digest).slice(0, 16)}`;
}

function base32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{5}/g) ?? [])
    .map((five) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[Number.parseInt(five, 2)])
    .join('');
}
