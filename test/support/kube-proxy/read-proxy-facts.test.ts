import test from 'ava';
import { kubeProxyText } from './captured-rules.ts';
import { readProxyFacts } from './read-proxy-facts.ts';
import { type ProxiedService, serviceRules } from './service-rules.ts';

const WEB: ProxiedService = {
  ...{ name: 'default/web', clusterIp: '10.96.0.1', port: 80, protocol: 'tcp', nodePort: 30000, policy: 'Cluster' },
  endpoints: [
    { ip: '172.31.1.2', port: 8080, isLocal: true },
    { ip: '10.0.0.9', port: 8080, isLocal: false },
  ],
};
// The other endpoint is of another node: what it asks itself does not come by.
const ENDPOINTS = '10.0.0.9:8080; [itself] masquerade 172.31.1.2:8080';

test('readProxyFacts: tells what the stand-in does, for each way to a Service', (t) => {
  t.deepEqual(readProxyFacts(serviceRules([WEB], { cluster: '172.31.0.0/16' }), [WEB]), [
    `tcp 10.96.0.1:80: [not from 172.31.0.0/16] masquerade; ${ENDPOINTS}`,
    `tcp node port 30000: masquerade; ${ENDPOINTS}`,
  ]);
});

// Of kube-proxy 1.33 in mode nftables, with fewer chains.
const NFTABLES = `table ip kube-proxy {
\tmap service-ips {
\t\ttype ipv4_addr . inet_proto . inet_service : verdict
\t\tcomment "ClusterIP, ExternalIP and LoadBalancer IP traffic"
\t\telements = { 10.96.0.1 . tcp . 80 : goto service-ABC-default/web/tcp/ }
\t}

\tmap service-nodeports {
\t\ttype inet_proto . inet_service : verdict
\t\telements = { tcp . 30000 : goto external-ABC-default/web/tcp/ }
\t}

\tchain mark-for-masquerade {
\t\tmeta mark set meta mark | 0x00004000
\t}

\tchain service-ABC-default/web/tcp/ {
\t\tip daddr 10.96.0.1 tcp dport 80 ip saddr != 172.31.0.0/16 jump mark-for-masquerade
\t\tnumgen random mod 2 vmap { 0 : goto endpoint-1-default/web/tcp/__10.0.0.9/8080, 1 : goto endpoint-2-default/web/tcp/__172.31.1.2/8080 }
\t}

\tchain external-ABC-default/web/tcp/ {
\t\tjump mark-for-masquerade
\t\tgoto service-ABC-default/web/tcp/
\t}

\tchain endpoint-1-default/web/tcp/__10.0.0.9/8080 {
\t\tip saddr 10.0.0.9 jump mark-for-masquerade
\t\tmeta l4proto tcp dnat to 10.0.0.9:8080
\t}

\tchain endpoint-2-default/web/tcp/__172.31.1.2/8080 {
\t\tip saddr 172.31.1.2 jump mark-for-masquerade
\t\tmeta l4proto tcp dnat to 172.31.1.2:8080
\t}
}
`;

test('readProxyFacts: says the same of both modes', (t) => {
  t.deepEqual(
    readProxyFacts(NFTABLES, [WEB]),
    readProxyFacts(serviceRules([WEB], { cluster: '172.31.0.0/16' }), [WEB]),
  );
});

// kube-proxy 1.36.3, nftables mode.
const NFTABLES_1_36 = kubeProxyText();
const SERVICES: readonly ProxiedService[] = [
  WEB,
  { ...WEB, name: 'default/local', clusterIp: '10.96.0.2', protocol: 'udp', nodePort: 30001, policy: 'Local' },
  // With session affinity.
  { ...WEB, name: 'default/sticky', clusterIp: '10.96.0.3', nodePort: 30002 },
];

test('readProxyFacts: says the same of what 1.36 writes in nftables mode', (t) => {
  const facts = readProxyFacts(NFTABLES_1_36, SERVICES).filter((line) => !/^tcp (10.96.0.5|203.0.113.5):/.test(line));
  t.deepEqual(facts, readProxyFacts(serviceRules(SERVICES, { cluster: '172.31.0.0/16' }), SERVICES));
  t.is(facts.length, 6);
});

for (const [what, rule] of [
  ['of what comes from outside of the cluster', /^\t\tip daddr @cluster-ips ip saddr .*\n/m],
  ['of what an endpoint asks itself', /^\t\tct status dnat .*@hairpin-connections .*\n/m],
  ['of one endpoint that asks itself', /172\.31\.1\.2 \. 172\.31\.1\.2 \. tcp \. 8080,\s+/],
  ['of a node port', /^\t\tmeta mark set meta mark \| 0x00004000 comment "masquerade"\n/m],
  ['of what the node asks', /^\t\tfib saddr type local meta mark set .*\n/m],
] as const) {
  test(`readProxyFacts: sees in the rules of 1.36 that the masquerading ${what} is missing`, (t) => {
    const less = NFTABLES_1_36.replace(rule, '');
    t.not(less, NFTABLES_1_36);
    t.notDeepEqual(readProxyFacts(less, SERVICES), readProxyFacts(NFTABLES_1_36, SERVICES));
  });
}

test('readProxyFacts: a rule less is another line', (t) => {
  const rules = serviceRules([{ ...WEB, policy: 'Local' }], { interfacePrefix: 'eni' });
  const [clusterIp, nodePort] = readProxyFacts(rules, [WEB]);
  t.is(clusterIp, `tcp 10.96.0.1:80: [not by eni*] masquerade; ${ENDPOINTS}`);
  t.regex(nodePort ?? '', /^tcp node port 30000: \[by eni\*.*; \[itself\] masquerade 172\.31\.1\.2:8080$/);
  const less = rules.split('\n').filter((line) => !line.includes('--src-type LOCAL -j KUBE-MARK-MASQ'));
  t.not(readProxyFacts(less.join('\n'), [WEB])[1], nodePort);
});
