import test from 'ava';
import { nameVeths } from '../../../agent/adopt/name-veths.ts';
import { planAdoption } from '../../../agent/adopt/plan-adoption.ts';
import type { CriSandbox } from '../../../agent/cri/sandbox-view.ts';
import type { PodEnd } from '../../../agent/node/kernel-evidence.ts';
import { type HostDump, readEvidence } from '../../../agent/node/read-evidence.ts';
import { hostVethAlias, hostVethName } from '../../../dataplane/host-veth-name.ts';
import { DEFAULT_ENI_MARK_MASK, PRIORITY, RTPROT_TKE_ENI, TABLE_POD_ROUTES } from '../../../dataplane/numbers.ts';
import { sampleEni, sampleSupply } from '../pool/supply-sample.ts';

const IP = '10.0.0.5';
const MAC = '02:00:00:00:00:11';
const TABLE = 4007;
const NETNS = '/run/netns/a';
const POD: CriSandbox = { id: 'c1', state: 'ready', podName: 'web-0', podNamespace: 'shop', podUid: 'u1' };
const OTHER: CriSandbox = { id: 'c2', state: 'ready', podName: 'web-1', podNamespace: 'shop', podUid: 'u2' };
const OWNER = { containerId: POD.id, ifName: 'eth0', podNamespace: POD.podNamespace, podName: POD.podName };
const NAME = hostVethName(OWNER);

/** What shows that the Pod lives and whose it is. */
type Scene = {
  readonly alias: string;
  readonly name: string;
  readonly group: number;
  readonly hasRoute: boolean;
  readonly hasRule: boolean;
  readonly ends: readonly PodEnd[];
  readonly sandboxes: readonly CriSandbox[];
  readonly netns: ReadonlyMap<string, string>;
  readonly ips: ReadonlyMap<string, readonly string[]>;
};

const END: PodEnd = {
  ...{ netns: NETNS, ifName: 'eth0', ifindex: 3, peerIfindex: 20, mac: '02:00:00:00:00:12', ips: [IP] },
  ...{ neighMacs: [MAC], hasGateway: true },
};
const ALL: Scene = {
  ...{ alias: hostVethAlias(OWNER), name: NAME, group: TABLE, hasRoute: true, hasRule: true },
  ...{ ends: [END], sandboxes: [POD, OTHER] },
  netns: new Map([['c1', NETNS]]),
  ips: new Map([['c1', [IP]]]),
};

function dumpOf({ alias, name, group, hasRoute, hasRule }: Scene): HostDump {
  const eni = { priority: PRIORITY.fromEniPrimary, src: '10.0.0.2/32', table: TABLE, protocol: RTPROT_TKE_ENI };
  const from = { priority: PRIORITY.fromPod, src: `${IP}/32`, table: TABLE, protocol: RTPROT_TKE_ENI };
  const route = { dst: `${IP}/32`, oif: 20, table: TABLE_POD_ROUTES, protocol: RTPROT_TKE_ENI };
  const link = { ifindex: 20, ifname: name, ifalias: alias, kind: 'veth', mtu: 1500, group, address: MAC, link: 3 };
  return {
    links: [link],
    routes: hasRoute ? [route] : [],
    rules: [eni, ...(hasRule ? [from] : [])],
  } as unknown as HostDump;
}

function adoptionOf(scene: Scene) {
  const kernel = readEvidence(dumpOf(scene), DEFAULT_ENI_MARK_MASK);
  const { ends, sandboxes, netns, ips: sandboxIps } = scene;
  const { veths, peers, held } = nameVeths({ kernel, ends, sandboxes, netns, sandboxIps });
  const primary = [{ ip: '10.0.0.2', family: 4 as const, gateway: '10.0.0.1', subnetCidr: '10.0.0.0/24' }];
  const supply = sampleSupply([sampleEni('eni-a', [IP, '10.0.0.6'], { primary })]);
  const { leases } = planAdoption({ kernel: { ...kernel, veths }, supply, sandboxes, peers, sandboxIps });
  return { leases, held };
}

/** How each witness is taken away. */
const WITHOUT: Readonly<Record<string, Partial<Scene>>> = {
  alias: { alias: 'web' },
  name: { name: 'veth7' },
  group: { group: 77 },
  'host route': { hasRoute: false },
  rule: { hasRule: false },
  "Pod's end": { ends: [] },
  "runtime's namespace": { netns: new Map() },
  "runtime's address": { ips: new Map() },
  "runtime's list": { sandboxes: [], netns: new Map(), ips: new Map() },
};

for (const [what, change] of Object.entries(WITHOUT))
  test(`planAdoption: the Pod keeps its name and address without its ${what}`, (t) => {
    for (const scene of [change, { ...change, alias: 'web' }]) {
      const { leases, held } = adoptionOf({ ...ALL, ...scene });
      const isKnown = what !== "runtime's list" || !('alias' in scene);
      t.deepEqual(
        leases.map(({ containerId, plugin, addresses }) => [containerId, plugin, addresses.map(({ ip }) => ip)]),
        [[isKnown ? 'c1' : `unknown-${NAME}`, 'route-eni', [IP]]],
      );
      t.is(leases[0]?.hostVeth?.name, scene.name ?? NAME);
      t.is(held.length, isKnown ? 0 : 1);
    }
  });

/** A name or a group alone says that a Pod lives, and not with which address. */
const SAYS_ADDRESS = ['host route', 'rule', "Pod's end", "runtime's address"];

for (const left of SAYS_ADDRESS)
  test(`planAdoption: the Pod's address is not free while its ${left} alone is left`, (t) => {
    const lost = Object.entries(WITHOUT).filter(([what]) => what !== left && what !== "runtime's list");
    const scene: Scene = Object.assign({}, ALL, ...lost.map(([, change]) => change));
    const unlisted = left === "runtime's address" ? {} : { sandboxes: [] };
    const { leases } = adoptionOf({ ...scene, ...unlisted });
    t.deepEqual(
      leases.flatMap(({ addresses }) => addresses.map(({ ip }) => ip)),
      [IP],
    );
  });

const NO_ALIAS = { ...ALL, alias: '' };
const OF_OTHER = hostVethName({ ...OWNER, containerId: 'c2', podName: 'web-1' });

const heldBy = test.macro((t, scene: Scene, why: RegExp) => {
  const { leases, held } = adoptionOf(scene);
  t.deepEqual(
    leases.map(({ containerId, addresses }) => [containerId, addresses.map(({ ip }) => ip)]),
    [[`unknown-${scene.name}`, [IP]]],
  );
  t.is(held.length, 1);
  t.regex(held[0]?.why ?? '', why);
});
const both = new Map([
  ['c1', [IP]],
  ['c2', [IP]],
]);
test('nameVeths: two sandboxes with one address', heldBy, { ...NO_ALIAS, ips: both }, /^c1 and c2 have its address$/);
test("nameVeths: another Pod's name", heldBy, { ...NO_ALIAS, name: OF_OTHER }, /^it shows marks of c1 and c2$/);
test(
  "nameVeths: the namespace of another's",
  heldBy,
  { ...NO_ALIAS, netns: new Map([['c2', NETNS]]) },
  /^it shows marks of c2 and c1$/,
);
const foreignAlias = hostVethAlias({ containerId: 'c2', ifName: 'eth0' });
test(
  "nameVeths: another's alias",
  heldBy,
  { ...ALL, alias: foreignAlias },
  /^its alias is of c2, its Pod's end of c1$/,
);

test('nameVeths: of two sandboxes of one Pod the link is that of the living one', (t) => {
  const ended: CriSandbox = { ...POD, id: 'c0', state: 'not-ready' };
  const { leases, held } = adoptionOf({ ...NO_ALIAS, ends: [], sandboxes: [ended, POD] });
  t.deepEqual([leases.map(({ containerId }) => containerId), held], [['c1'], []]);
});

test('nameVeths: the placeholder of an owner that was not found is looked up again', (t) => {
  const alias = hostVethAlias({ containerId: `unknown-${NAME}`, ifName: 'eth0' });
  t.is(adoptionOf({ ...ALL, alias }).leases[0]?.containerId, 'c1');
});

test('nameVeths: of several Pod ends with the same indexes the neighbour entry tells', (t) => {
  const twin: PodEnd = { ...END, netns: '/run/netns/b', ips: ['10.0.0.6'], neighMacs: ['02:00:00:00:00:99'] };
  const netns = new Map([...ALL.netns, ['c2', twin.netns] as const]);
  const { leases } = adoptionOf({ ...NO_ALIAS, ends: [twin, END], netns });
  t.deepEqual(
    leases.map(({ containerId, addresses }) => [containerId, addresses[0]?.ip]),
    [['c1', IP]],
  );
});

test('nameVeths: links of other programs are not ours', (t) => {
  const { ends } = { ends: [{ ...END, neighMacs: [], hasGateway: false, ips: ['172.17.0.2'] }] };
  const stranger = { ...NO_ALIAS, name: 'veth7', group: 0, hasRoute: false, hasRule: false, ends, ips: new Map() };
  t.deepEqual(adoptionOf(stranger), { leases: [], held: [] });
});
