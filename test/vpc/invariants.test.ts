import test from 'ava';
import { openJournal } from '../../agent/journal/journal.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import type { AttachedEni } from '../../sim/vpc/nic.ts';
import { createTestVpc, type TestVpc } from '../../sim/vpc/vpc.ts';
import { findViolations, type InvariantScope } from '../support/invariants.ts';
import { createPodNetns } from '../support/pod-netns.ts';
import { createTempDir, type TempDir } from '../support/temp-dir.ts';

const HOST_VETH = { name: 'eni0123456789a', mac: '0a:58:00:00:00:01' };
const POD_MAC = '0a:58:00:00:00:02';
const CONTAINER = 'c0ffee';
const OTHER = 'other';
const RULE_MODES = ['compact', 'per-pod'] as const;
type RuleMode = (typeof RULE_MODES)[number];

type Scene = {
  readonly vpc: TestVpc;
  readonly scope: InvariantScope;
  readonly netns: NetnsView;
  readonly dir: TempDir;
};

/** Makes a scene or nothing. */
async function createScene(ruleMode: RuleMode): Promise<Scene> {
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [{ id: 'subnet-a', cidr: '10.0.1.0/24' }],
    nodes: [{ name: 'n1', primarySubnet: 'subnet-a' }],
  });
  const dir = createTempDir('invariants');
  try {
    return await wireScene(ruleMode, vpc, dir);
  } catch (error) {
    await closeScene({ vpc, dir });
    throw error;
  }
}

async function closeScene({ vpc, dir }: Pick<Scene, 'vpc' | 'dir'>): Promise<void> {
  await vpc.close();
  dir.close();
}

/** A node wired with `ip` and `nft` as the design says, and a journal that knows of it. */
async function wireScene(ruleMode: RuleMode, vpc: TestVpc, dir: TempDir): Promise<Scene> {
  const eni = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 'subnet-a' });
  const ip = await vpc.assignIp('eni-1');
  const pod = await createPodNetns(`${vpc.prefix}pod`);
  const { netns } = vpc.node('n1');
  await netns.ipBatch(wiring(ruleMode, eni, ip, pod.name));
  await netns.sysctl({ [`net/ipv4/conf/${eni.ifname}/rp_filter`]: 2 });
  await netns.nft(nftTable(ruleMode));
  await pod.ipBatch([
    `link set eth0 address ${POD_MAC} up`,
    `address add ${ip}/32 dev eth0`,
    'route add 169.254.1.1 dev eth0 scope link',
    'route add default via 169.254.1.1 dev eth0',
    `neigh add 169.254.1.1 lladdr ${HOST_VETH.mac} dev eth0 nud permanent`,
  ]);
  const [veth] = await netns.ipJson('link', 'show', HOST_VETH.name);
  writeJournal(dir, ip, pod.path, Number(veth?.['ifindex']));
  const sandboxes = [
    { id: CONTAINER, ips: [ip] },
    // Where the damages put what no lease knows of; the runtime lists it, so the checker looks into it.
    { id: OTHER, netns: `/run/netns/${vpc.prefix}other` },
  ];
  return {
    vpc,
    dir,
    netns,
    scope: { netns, stateDir: dir.path, ruleMode, enis: [eni], sandboxes, undecided: [OTHER] },
  };
}

function wiring(ruleMode: RuleMode, eni: AttachedEni, ip: string, pod: string): readonly string[] {
  const isCompact = ruleMode === 'compact';
  const podRules = [
    `rule add pref 512 to ${ip} lookup main protocol 84`,
    `rule add pref 1536 from ${ip} lookup 4003 protocol 84`,
    `route add unreachable ${ip} metric 2147483645 protocol 84`,
  ];
  const eniRules = [
    'rule add pref 512 lookup 3999 protocol 84',
    'rule add pref 1536 fwmark 0x10000/0xff0000 lookup 4003 protocol 84',
  ];
  return [
    `link set ${eni.ifname} up`,
    `address add ${eni.primaryIp}/32 dev ${eni.ifname}`,
    `route add ${eni.gateway} dev ${eni.ifname} scope link table 4003 protocol 84`,
    `route add default via ${eni.gateway} dev ${eni.ifname} table 4003 protocol 84`,
    `route add unreachable default table 4003 metric 2147483647 protocol 84`,
    `rule add pref 1280 fwmark 0x80/0x80 lookup main protocol 84`,
    'rule add pref 1280 lookup 4001 protocol 84',
    `rule add pref 1537 from ${eni.primaryIp} lookup 4003 protocol 84`,
    `link add ${HOST_VETH.name} address ${HOST_VETH.mac} group 4003 type veth peer name eth0 netns ${pod}`,
    `link set ${HOST_VETH.name} alias tke-eni/${CONTAINER}/eth0 up`,
    `route add ${ip} dev ${HOST_VETH.name} scope link table ${isCompact ? 3999 : 254} protocol 84`,
    ...(isCompact ? eniRules : podRules),
  ];
}

function nftTable(ruleMode: RuleMode): string {
  const isCompact = ruleMode === 'compact';
  const mark = 'meta mark set meta mark and 0xff00ffff or 0x10000\n';
  return `table inet tke_eni {
    chain via_4003 {
      ${mark}
    }
    chain eni_4003 {
      ip6 saddr != { ::, fe80::/10 } fib saddr . iif oif missing drop
      ${isCompact ? mark : ''}
      ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
      ${isCompact ? 'ct direction reply ct mark and 0xff0000 vmap { 0x10000 : jump via_4003 }\n' : ''}
    }
    chain prerouting {
      type filter hook prerouting priority mangle; policy accept;
      iifgroup 4003 goto eni_4003
    }
    chain egress {
    }
    chain routed {
      type filter hook prerouting priority dstnat + 10; policy accept;
      iifgroup { 4003 } ct direction original jump egress
    }
  }\n`;
}

function writeJournal(dir: TempDir, ip: string, netns: string, ifindex: number): void {
  using journal = openJournal(dir.join('journal.db'), { clock: { bootMs: () => 1 } });
  const address = { ip, family: 4 as const, eniId: 'eni-1', assignmentId: 'asg-1' };
  journal.putEni({ eniId: 'eni-1', mac: '20:90:6f:00:00:02', table: 4003, slot: 1 });
  journal.putLease({
    containerId: CONTAINER,
    ifName: 'eth0',
    network: 'tke-route-eni',
    plugin: 'route-eni',
    netns,
    podNamespace: 'shop',
    podName: 'web-0',
    podUid: '',
    addresses: [address],
    eniId: 'eni-1',
    state: 'pending',
    mtu: 1500,
    createdAtMs: 1,
  });
  journal.activateLease(`${CONTAINER}/eth0`, { hostVeth: { ...HOST_VETH, ifindex }, podMac: POD_MAC });
}

function coolAddress(dir: TempDir, ip: string): void {
  using journal = openJournal(dir.join('journal.db'), { clock: { bootMs: () => 1 } });
  const times = { freedAtMs: 1, coolUntilMs: 1e15, cooldownMs: 1e15 };
  const of = { family: 4 as const, eniId: 'eni-1', assignmentId: 'asg-9' };
  // Any way into the table will do: the end of a lease is the only one.
  const lease = journal.load().leases[0];
  if (lease === undefined) throw new Error('the scene has a lease');
  journal.putLease({ ...lease, containerId: 'gone', addresses: [{ ip, ...of }] });
  journal.eraseLease('gone/eth0', [{ ip, ...of, ...times }]);
}

function markReleasing(dir: TempDir): void {
  using journal = openJournal(dir.join('journal.db'), { clock: { bootMs: () => 1 } });
  journal.markReleasing(`${CONTAINER}/eth0`);
}

type Damage = {
  readonly does: (scene: Scene) => Promise<unknown>;
  readonly says: RegExp;
  readonly modes?: readonly RuleMode[];
};

const ip =
  (...args: readonly string[]) =>
  ({ netns }: Scene) =>
    netns.ip(...args);

/** One thing broken at a time, and what must be said of it. */
const DAMAGES: Readonly<Record<string, Damage>> = {
  'a Pod route is gone': {
    does: ip('route', 'flush', 'table', '3999'),
    says: /route missing: 3999/,
    modes: ['compact'],
  },
  'the rule of all Pod routes is gone': {
    does: ip('rule', 'del', 'pref', '512'),
    says: /rule missing: 4 512 from all/,
  },
  'the rule of the ENI is gone': { does: ip('rule', 'del', 'pref', '1536'), says: /rule missing: 4 1536/ },
  'the default route of the ENI is gone': {
    does: ip('route', 'del', 'default', 'table', '4003'),
    says: /route missing: 4003 default via 10.0.1.1 dev eth1/,
  },
  'a rule of a Pod that is gone is left': {
    does: ip('rule', 'add', 'pref', '1536', 'from', '10.0.1.77', 'lookup', '4003', 'protocol', '84'),
    says: /rule nobody wants: 4 1536 from 10.0.1.77 lookup 4003/,
  },
  'a route of a Pod that is gone is left': {
    does: ip('route', 'add', '10.0.1.77', 'dev', HOST_VETH.name, 'table', '3999', 'protocol', '84'),
    says: /route nobody wants: 3999 10.0.1.77 dev eni0123456789a/,
  },
  'a link of a Pod that is gone is left': {
    does: ip('link', 'add', 'eniaaaaaaaaaaa', 'type', 'veth'),
    says: /link eniaaaaaaaaaaa .* has no lease/,
  },
  'the link group is another': { does: ip('link', 'set', HOST_VETH.name, 'group', '7'), says: /has group 7, not 4003/ },
  'the host veth is gone': { does: ip('link', 'del', HOST_VETH.name), says: /0 host links, not 1/ },
  'the nftables table is gone': {
    does: ({ netns }) => netns.nft('delete table inet tke_eni\n'),
    says: /table inet tke_eni is missing/,
    modes: ['compact'],
  },
  'the chain sets no mark': {
    does: ({ netns }) => netns.nft('flush chain inet tke_eni eni_4003\n'),
    says: /chain eni_4003 does not set mark 0x10000/,
    modes: ['compact'],
  },
  'a line leads a group nobody has': {
    does: ({ netns }) => netns.nft('add rule inet tke_eni prerouting iifgroup 4009 goto eni_4003\n'),
    says: /link group 4009, which no ENI has/,
  },
  'a line leads a group twice': {
    does: ({ netns }) => netns.nft('add rule inet tke_eni prerouting iifgroup 4003 goto via_4003\n'),
    says: /link group 4003 is led to \[eni_4003,via_4003\]/,
  },
  'a chain of an ENI that is gone is left': {
    does: ({ netns }) => netns.nft('add chain inet tke_eni eni_4009\n'),
    says: /chain eni_4009 is of no ENI/,
  },
  'the check of IPv6 sources is gone': {
    does: ({ netns }) => netns.nft('flush chain inet tke_eni eni_4003\n'),
    says: /chain eni_4003 lacks the check of IPv6 sources/,
  },
  'a second link has the MAC of the ENI': {
    does: ip('link', 'add', 'twin', 'address', '20:90:6f:00:00:02', 'type', 'veth'),
    says: /more than one link has its MAC/,
  },
  'two Pods have one address': {
    does: async ({ vpc, scope }) => {
      const [first] = scope.sandboxes ?? [];
      const other = await createPodNetns(`${vpc.prefix}other`);
      await other.ip('address', 'add', `${first?.ips?.[0]}/32`, 'dev', 'lo', 'scope', 'global');
    },
    says: /address 10\.0\.1\.\d+ is on two Pods/,
  },
  'a Pod has an address without a lease': {
    does: ({ vpc }) =>
      createPodNetns(`${vpc.prefix}other`).then((other) => other.ip('address', 'add', '10.0.1.77/32', 'dev', 'lo')),
    says: /address 10\.0\.1\.77 is on the Pod .* and in no lease/,
  },
  'a Pod has an address that cools': {
    does: async ({ vpc, dir }) => {
      const other = await createPodNetns(`${vpc.prefix}other`);
      await other.ip('address', 'add', '10.0.1.78/32', 'dev', 'lo');
      coolAddress(dir, '10.0.1.78');
    },
    says: /address 10\.0\.1\.78 is on the Pod .* and cools/,
  },
  'the Pod has lost its default route': {
    does: ({ vpc, netns }) => netns.run(['ip', '-n', `${vpc.prefix}pod`, 'route', 'del', 'default']),
    says: /eth0 in .* lacks: default via 169\.254\.1\.1/,
  },
  'the Pod has lost its neighbour': {
    does: ({ vpc, netns }) => netns.run(['ip', '-n', `${vpc.prefix}pod`, 'neigh', 'flush', 'all', 'nud', 'permanent']),
    says: /eth0 in .* lacks: 169\.254\.1\.1 dev eth0 lladdr/,
  },
  'a lease was never finished': {
    does: async ({ dir }) => markReleasing(dir),
    says: /lease c0ffee\/eth0 is releasing at a quiet moment/,
  },
  'the ENI has lost its address': { does: ip('address', 'flush', 'dev', 'eth1'), says: /ENI eni-1: address missing/ },
  'the ENI is down': { does: ip('link', 'set', 'eth1', 'down'), says: /ENI eni-1: eth1 is down/ },
  'the Pod has lost its address': {
    does: ({ vpc, netns }) => netns.run(['ip', '-n', `${vpc.prefix}pod`, 'address', 'flush', 'dev', 'eth0']),
    says: /eth0 in .* lacks 10\.0\.1\./,
  },
};

for (const ruleMode of RULE_MODES) {
  test(`findViolations: finds nothing wrong with a node wired by the book, ${ruleMode}`, async (t) => {
    const scene = await createScene(ruleMode);
    try {
      t.deepEqual(await findViolations(scene.scope), []);
      const sandboxless = await findViolations({ ...scene.scope, sandboxes: [{ id: 'stranger', ips: [] }] });
      t.is(sandboxless.length, 2, sandboxless.join('\n'));
    } finally {
      await closeScene(scene);
    }
  });

  for (const [name, { does, says, modes }] of Object.entries(DAMAGES)) {
    if (modes !== undefined && !modes.includes(ruleMode)) continue;
    test(`findViolations: says so when ${name}, ${ruleMode}`, async (t) => {
      const scene = await createScene(ruleMode);
      try {
        await does(scene);
        t.regex((await findViolations(scene.scope)).join('\n'), says);
      } finally {
        await closeScene(scene);
      }
    });
  }
}
