import { readFileSync } from 'node:fs';
import test from 'ava';
import { hostVethFallbackName, sideName } from '../../../dataplane/host-veth-name.ts';
import type { EniPodNetwork } from '../../../dataplane/network.ts';
import { DIRECT_LINK_GROUP } from '../../../dataplane/numbers.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { wireExclusivePod } from '../../../dataplane/wire-exclusive-pod.ts';
import { isObject } from '../../../sim/support/netns.ts';
import { threePods } from './bridge-scene.ts';
import { podOf, type TestNode, withTestNode } from './test-node.ts';

const PAGE = readFileSync(new URL('../../../docs/kernel-state.md', import.meta.url), 'utf8');

/** Fields of iproute2 and nft that hold what a plan sets: the plan is compared with them. */
const PLANNED: Readonly<Record<string, readonly string[]>> = {
  link: ['ifindex', 'ifname', 'flags', 'mtu', 'master', 'group', 'address', 'ifalias', 'info_kind'],
  port: ['hairpin', 'isolated', 'flood', 'bcast_flood', 'learning', 'proxy_arp', 'locked'],
  bridge: [],
  address: [
    ...['local', 'prefixlen', 'family', 'scope', 'broadcast', 'address'],
    ...['valid_life_time', 'preferred_life_time', 'nodad', 'noprefixroute', 'deprecated', 'dadfailed'],
  ],
  route: ['type', 'dst', 'gateway', 'dev', 'protocol', 'scope', 'table', 'metric', 'prefsrc', 'flags', 'pref', 'error'],
  rule: ['priority', 'src', 'srclen', 'dst', 'dstlen', 'fwmark', 'fwmask', 'table', 'protocol'],
  neighbour: ['dst', 'dev', 'lladdr', 'state'],
  qdisc: [],
  // Each line of the listing is compared with that of the planned text.
  nft: [
    'family',
    'name',
    'table',
    'chain',
    'type',
    'hook',
    'prio',
    'policy',
    'expr',
    'comment',
    'map',
    'elem',
    'flags',
  ],
};

/** Fields that `docs/kernel-state.md` lists with the reason why no plan has them: `kind: field, field`. */
function listed(kind: string): readonly string[] {
  const section = PAGE.split('## Attributes that no plan has\n')[1]?.split('\n## ')[0] ?? '';
  const rows = [...section.matchAll(/^\| (\w+): ([^|]+) \| [^|]+ \| [^|]+ \|$/gm)];
  return rows.filter(([, of]) => of === kind).flatMap(([, , names = '']) => names.replaceAll('`', '').split(', '));
}

type Objects = readonly Readonly<Record<string, unknown>>[];

/** What iproute2 and tc print of our objects in a namespace. */
function objectsOf(
  { ip, tc }: { readonly ip: TestNode['ip']; tc(...args: readonly string[]): string },
  devs: readonly string[],
) {
  const links = devs.flatMap((dev) => ip.json('-d', 'link', 'show', 'dev', dev));
  const infos = links.flatMap(({ linkinfo }) => (isObject(linkinfo) ? [linkinfo] : []));
  const dataOf = (name: string, kind: string, of: string): Objects =>
    infos.flatMap((info) => (info[kind] === 'bridge' && isObject(info[name]) ? [{ ...info[name], of }] : []));
  const of = (show: (family: string) => Objects): Objects => ['-4', '-6'].flatMap(show);
  return {
    link: [
      ...links.map(({ linkinfo: _, ...link }) => link),
      ...infos.map(({ info_data: _data, info_slave_kind: _kind, info_slave_data: _port, ...info }) => info),
    ],
    bridge: dataOf('info_data', 'info_kind', 'bridge').map(({ of: _, ...data }) => data),
    port: dataOf('info_slave_data', 'info_slave_kind', 'port').map(({ of: _, ...data }) => data),
    address: devs.flatMap((dev) =>
      ip.json('-d', 'address', 'show', 'dev', dev).flatMap(({ addr_info: info }) => info as Objects),
    ),
    route: of((family) => ip.json('-d', family, 'route', 'show', 'table', 'all', 'proto', '84')),
    rule: of((family) => ip.json('-d', family, 'rule').filter((rule) => rule['protocol'] === '84')),
    neighbour: devs.flatMap((dev) => ip.json('-d', 'neigh', 'show', 'dev', dev, 'nud', 'permanent')),
    qdisc: devs.flatMap((dev) => JSON.parse(tc('-j', '-d', 'qdisc', 'show', 'dev', dev)) as Objects),
  };
}

test('docs/kernel-state.md: each field that the kernel prints of our objects is planned, or listed with a reason', async (t) => {
  await withTestNode(async (node) => {
    const { plan, network, a, ofEni } = await threePods(node, 'compact', 'bridge');
    const [shared, own] = node.enis;
    if (shared === undefined || own === undefined) throw new Error('a test node has two ENIs');
    const direct = directPod(own);
    const sandbox = node.createPodNetns();
    const wired = wireExclusivePod(node.kernel, node.netns, sandbox.netns, {
      ...{ node: { ...network, hasDirect: true }, pod: direct, fallbackName: hostVethFallbackName(direct.key) },
    });
    const { nft } = plan();
    await node.reach({ ...planNode(network, [shared], []), ...(nft && { nft }) });
    const tcIn =
      (name: string) =>
      (...args: readonly string[]) =>
        node.run('ip', 'netns', 'exec', name, 'tc', ...args);
    const ours = [
      objectsOf({ ip: node.ip, tc: (...args) => node.run('tc', ...args) }, [
        'eth5',
        'cbr0',
        a.pod.hostVeth.name,
        ofEni.pod.hostVeth.name,
        wired.hostName,
      ]),
      ...[a.sandbox, ofEni.sandbox].map((pod) => objectsOf({ ip: pod.ip, tc: tcIn(pod.name) }, ['eth0'])),
      objectsOf({ ip: sandbox.ip, tc: tcIn(sandbox.name) }, ['eth0', sideName('eth0')]),
    ];
    const table = (JSON.parse(node.run('nft', '-j', 'list', 'table', 'inet', 'tke_eni')) as { nftables: Objects })
      .nftables;
    const inNft = table.flatMap((one) =>
      Object.entries(one).flatMap(([kind, body]) => (kind !== 'metainfo' && isObject(body) ? [body] : [])),
    );
    const unknown = Object.keys(PLANNED).flatMap((kind) => {
      const objects =
        kind === 'nft' ? inNft : ours.flatMap((side) => new Map<string, Objects>(Object.entries(side)).get(kind) ?? []);
      t.not(objects.length, 0, kind);
      const known = new Set([...(PLANNED[kind] ?? []), ...listed(kind)]);
      const fields = new Set(objects.flatMap((object) => Object.keys(object)));
      return [...fields].filter((field) => !known.has(field)).map((field) => `${kind}: ${field}`);
    });
    t.deepEqual(unknown.toSorted(), []);
  });
});

/** A Pod with a whole ENI. */
function directPod(eni: TestNode['enis'][number]): EniPodNetwork {
  const pod = podOf(
    eni,
    eni.addresses.map(({ ip }) => ip),
  );
  const addresses = eni.addresses.map(({ ip, gateway }) => ({ ip, gateway, prefixLength: ip.includes(':') ? 64 : 24 }));
  return {
    ...pod,
    ...{ kind: 'direct-eni', eniTable: DIRECT_LINK_GROUP, podVeth: { ...pod.podVeth, name: sideName('eth0') } },
    nic: { mac: eni.mac, hostName: eni.ifname, mtu: 1500, addresses },
  };
}
