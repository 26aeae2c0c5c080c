import test from 'ava';
import type { EniPodNetwork, NodeNetwork } from '../../dataplane/network.ts';
import { planExclusivePod } from '../../dataplane/plan-exclusive-pod.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { sysctlName } from '../../sysctl/sysctl-key.ts';
import { blocks, bridge, bridgePod, eni, node, pod } from './fixtures.ts';

type Primary = NodeNetwork['primary'];

const ETH0: Primary = { ifindex: 77_001, ifname: 'eth0', addresses: ['10.0.0.2', 'fd00:10:0:9::2', 'fe80::2'] };
const BR7: Primary = { ifindex: 77_002, ifname: 'br7', addresses: ['10.0.9.7', 'fd00:10:0:9::7', 'fe80::7'] };

const direct: EniPodNetwork = {
  ...pod(5, 40),
  ...{ kind: 'direct-eni', eniTable: 3998, podVeth: { name: 'side0', mac: '02:00:00:00:00:05' } },
  nic: { mac: '52:54:00:00:00:09', hostName: 'eth9', mtu: 1500, addresses: [] },
};

/** All that a plan may hold: every choice that names the primary interface is made. */
function planOf(primary: Primary, more: Partial<NodeNetwork> = {}) {
  const full: NodeNetwork = {
    ...{ ...node, primary, egress: 'node', hasDirect: true, podCidrs: [blocks.present], fastPath: 'flowtable' },
    ...{ serviceCidrs: ['10.96.0.0/12'], bridge: { ...bridge, masquerade: { exempt: ['10.0.0.0/8'] } } },
    ...more,
  };
  const inside = planExclusivePod(full, direct, { nic: 3, side: 4 }).pod;
  return { host: planNode(full, [eni(5)], [pod(5, 10), bridgePod(10), direct]), inside };
}

function textOf({ host, inside }: ReturnType<typeof planOf>): readonly string[] {
  const { nft, flowtable, sysctls, routes, ...rest } = host;
  return [
    ...sysctls.map(({ key, value }) => `sysctl ${sysctlName(key)}=${value}`),
    ...(nft?.text ?? '').split('\n').map((line) => `nft ${line.trim()}`),
    ...(flowtable?.devices ?? []).map((device) => `flowtable ${JSON.stringify(device)}`),
    ...routes.map((route) => `route ${JSON.stringify(route)}`),
    ...inside.routes.map((route) => `inside route ${JSON.stringify(route)}`),
    ...Object.entries(rest).flatMap(([kind, items]) => [items].flat().map((item) => `${kind} ${JSON.stringify(item)}`)),
  ];
}

const isAboutPrimary = (line: string): boolean =>
  /\beth0\b|77001|10\.0\.0\.2\b|fd00:10:0:9::2\b|fe80::2\b/.test(line.replace(/"ifalias":"[^"]*"/, '')) &&
  !/podVeth/.test(line);

for (const ruleMode of ['compact', 'per-pod'] as const) {
  test(`planNode: everything that follows from the primary interface, ${ruleMode}`, (t) => {
    const lines = textOf(planOf(ETH0, { ruleMode })).filter(isAboutPrimary);
    const hostRoute = ruleMode === 'compact' ? 3999 : 254;
    t.deepEqual(lines, [
      'sysctl net.ipv4.conf.eth0.rp_filter=2',
      'sysctl net.ipv6.conf.eth0.accept_ra=2',
      'nft iifname != "eth0" ip saddr { 10.0.0.0/8 } ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80',
      'nft iifname != "eth0" ip6 saddr { fd00:10::/32 } ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80',
      'nft iifname { "eth5" } oifname { "eth0", "eth5" } ct status and 0x20 == 0x0 drop',
      'nft oifname "eth0" ct direction original meta mark and 0x80 == 0x80 masquerade',
      'nft oifname "eth0" ip saddr { 172.31.0.64/26 } ip daddr != { 10.0.0.0/8, 172.31.0.64/26 } masquerade',
      'nft meta nfproto ipv4 oifgroup 3998 ct direction original ct status dnat meta mark and 0x80 == 0x80 snat ip to 10.0.0.2',
      'nft meta nfproto ipv4 oifgroup 3998 ct direction original ct status dnat ct mark and 0x80 == 0x80 snat ip to 10.0.0.2',
      'nft meta nfproto ipv4 oifgroup 3998 ct direction original ip saddr != { 10.0.0.0/8, 169.254.0.0/16, 172.31.0.64/26, 224.0.0.0/4 } ct mark and 0x80 == 0x80 snat ip to 10.0.0.2',
      'nft meta nfproto ipv6 oifgroup 3998 ct direction original ct status dnat meta mark and 0x80 == 0x80 snat ip6 to fd00:10:0:9::2',
      'nft meta nfproto ipv6 oifgroup 3998 ct direction original ct status dnat ct mark and 0x80 == 0x80 snat ip6 to fd00:10:0:9::2',
      'nft meta nfproto ipv6 oifgroup 3998 ct direction original ip6 saddr != { fd00:10::/32, fe80::/10, ff00::/8 } ct mark and 0x80 == 0x80 snat ip6 to fd00:10:0:9::2',
      'flowtable {"ifindex":77001,"ifname":"eth0"}',
      `route {"table":${hostRoute},"dst":"10.0.5.40/32","oif":5040,"oifname":"eni5x40","scope":"link","prefsrc":"10.0.0.2"}`,
      `route {"table":${hostRoute},"dst":"fd00:10:0:5::40/128","oif":5040,"oifname":"eni5x40","prefsrc":"fd00:10:0:9::2"}`,
    ]);
  });
}

test('planNode: with another primary interface all of it follows, and nothing else changes', (t) => {
  for (const more of [{}, { ruleMode: 'per-pod' }, { fastPath: 'bpf' }, { egress: 'eni', hasDirect: false }] as const) {
    const renamed = textOf(planOf(ETH0, more)).map((line) =>
      line.startsWith('inside')
        ? line.replaceAll('10.0.0.2/', '10.0.9.7/').replaceAll('fd00:10:0:9::2/', 'fd00:10:0:9::7/')
        : isAboutPrimary(line)
          ? line
              .replaceAll('eth0', 'br7')
              .replaceAll('77001', '77002')
              .replaceAll(/10\.0\.0\.2\b/g, '10.0.9.7')
              .replaceAll(/fd00:10:0:9::2\b/g, 'fd00:10:0:9::7')
          : line,
    );
    t.deepEqual(renamed, textOf(planOf(BR7, more)));
  }
});
