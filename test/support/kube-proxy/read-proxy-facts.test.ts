import test from 'ava';
import { readProxyFacts } from './read-proxy-facts.ts';
import { type ProxiedService, serviceRules } from './service-rules.ts';

const WEB: ProxiedService = {
  ...{ name: 'default/web', clusterIp: '10.96.0.1', port: 80, protocol: 'tcp', nodePort: 30000, policy: 'Cluster' },
  endpoints: [
    { ip: '172.31.1.2', port: 8080, isLocal: true },
    { ip: '10.0.0.9', port: 8080, isLocal: false },
  ],
};
const ENDPOINTS = '[itself] masquerade 10.0.0.9:8080; [itself] masquerade 172.31.1.2:8080';

test('readProxyFacts: tells what the stand-in does, for each way to a Service', (t) => {
  t.deepEqual(readProxyFacts(serviceRules([WEB], { cluster: '172.31.0.0/16' })), [
    `tcp 10.96.0.1:80: [not from 172.31.0.0/16] masquerade; ${ENDPOINTS}`,
    `tcp node port 30000: masquerade; [not from 172.31.0.0/16] masquerade; ${ENDPOINTS}`,
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
  t.deepEqual(readProxyFacts(NFTABLES), readProxyFacts(serviceRules([WEB], { cluster: '172.31.0.0/16' })));
});

test('readProxyFacts: a rule less is another line', (t) => {
  const rules = serviceRules([{ ...WEB, policy: 'Local' }], { interfacePrefix: 'eni' });
  const [clusterIp, nodePort] = readProxyFacts(rules);
  t.is(clusterIp, `tcp 10.96.0.1:80: [not by eni*] masquerade; ${ENDPOINTS}`);
  t.regex(nodePort ?? '', /^tcp node port 30000: \[by eni\*.*; \[itself\] masquerade 172\.31\.1\.2:8080$/);
  const less = rules.split('\n').filter((line) => !line.includes('--src-type LOCAL -j KUBE-MARK-MASQ'));
  t.not(readProxyFacts(less.join('\n'))[1], nodePort);
});
