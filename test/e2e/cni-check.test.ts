import { join } from 'node:path';
import test from 'ava';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import { partOf, shortTest } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { fail, succeedSilently } from './support/cni-answers.ts';
import { createRepairHold, type RepairHold } from './support/repair-hold.ts';
import { openScenes, RULE_MODES } from './support/scene.ts';
import type { AttachedPod } from './support/scene-node.ts';

/** Events and our hold decide when repair runs; the timer must not. */
const FLAGS = { 'repair-interval': '1h' } as const;

const holds = new Map<string, RepairHold>();
const scenes = openScenes(
  test,
  RULE_MODES.map((ruleMode) => ({
    ruleMode,
    isDual: true,
    agentFlags: FLAGS,
    nodes: [
      {
        name: 'n1',
        enis: [{ eniId: 'eni-1', ips: 8 }],
        wrapAgent: (dir: string) => {
          const hold = createRepairHold(join(dir, 'hold'));
          holds.set(ruleMode, hold);
          return hold.wrap;
        },
      },
    ],
  })),
);

function holdOf(ruleMode: string): RepairHold {
  const hold = holds.get(ruleMode);
  if (hold === undefined) throw new Error(`${ruleMode}: no hold`);
  return hold;
}

/** What a case needs to break one thing and to say what must be named. */
type Broken = {
  readonly pod: AttachedPod;
  readonly ip: string;
  readonly ipv6: string;
  /** Host side's name, MAC and link group. */
  readonly veth: string;
  readonly mac: string;
  readonly group: string;
  readonly eni: string;
};

type Case = {
  readonly title: string;
  readonly modes: readonly string[];
  readonly breakIt: (context: Broken) => Promise<unknown>;
  readonly named: (context: Broken) => readonly string[];
  /** What has to be done by hand before the node is well again: foreign things are reported, never removed. */
  readonly tidy?: (context: Broken) => Promise<unknown>;
};

const BOTH = RULE_MODES;
const inPod = ({ pod }: Broken, ...args: readonly string[]): Promise<string> => pod.netns.ip(...args);
const onHost = ({ pod }: Broken, ...args: readonly string[]): Promise<string> => pod.node.netns.ip(...args);

/** What is inside the Pod the agent does not watch: it stays broken by itself. */
const IN_POD: readonly Case[] = [
  {
    title: 'the default route is gone',
    modes: BOTH,
    breakIt: (context) => inPod(context, 'route', 'delete', 'default'),
    named: () => ['Pod: route "default via 169.254.1.1 dev eth0 proto 84" is missing'],
  },
  {
    title: 'the IPv6 default route is gone',
    modes: BOTH,
    breakIt: (context) => inPod(context, '-6', 'route', 'delete', 'default'),
    named: () => ['Pod: route "default via fe80::1 dev eth0 proto 84" is missing'],
  },
  {
    title: "the gateway's neighbour has another MAC",
    modes: BOTH,
    breakIt: (context) =>
      inPod(context, ...'neigh replace 169.254.1.1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent'.split(' ')),
    named: ({ mac }) => [`Pod: neighbour 169.254.1.1 on eth0 is 02:00:00:00:00:01, should be ${mac}`],
  },
  {
    title: 'the MTU is another',
    modes: BOTH,
    breakIt: (context) => inPod(context, 'link', 'set', 'eth0', 'mtu', '1400'),
    named: () => ['Pod: link eth0: mtu is 1400, should be 1500'],
  },
  {
    title: 'the address is gone',
    modes: BOTH,
    breakIt: (context) => inPod(context, 'address', 'delete', `${context.ipv6}/128`, 'dev', 'eth0'),
    named: ({ ipv6 }) => [`Pod: address ${ipv6}/128 is missing on eth0`],
  },
  {
    title: 'the MAC is another',
    modes: BOTH,
    breakIt: (context) => inPod(context, 'link', 'set', 'eth0', 'address', '02:00:00:00:00:02'),
    named: ({ pod }) => [`Pod: MAC of eth0 is 02:00:00:00:00:02, should be ${macOf(pod.result, 1)}`],
  },
  {
    title: 'the interface is gone by another name',
    modes: BOTH,
    breakIt: async (context) => {
      await inPod(context, 'link', 'set', 'eth0', 'down');
      await inPod(context, 'link', 'set', 'eth0', 'name', 'other0');
    },
    named: () => ['Pod: interface eth0 is missing'],
  },
];

/** What is on the host the agent repairs at once: repair is held up. */
const ON_HOST: readonly Case[] = [
  {
    title: 'the host link is down',
    modes: BOTH,
    breakIt: (context) => onHost(context, 'link', 'set', context.veth, 'down'),
    named: ({ veth }) => [`host: link ${veth}: up is false, should be true`],
  },
  {
    title: 'the host link has another MTU',
    modes: BOTH,
    breakIt: (context) => onHost(context, 'link', 'set', context.veth, 'mtu', '1400'),
    named: ({ veth }) => [`host: link ${veth}: mtu is 1400, should be 1500`],
  },
  {
    title: 'the host link has another group',
    modes: BOTH,
    breakIt: (context) => onHost(context, 'link', 'set', context.veth, 'group', '7'),
    named: ({ veth, group }) => [`host: link ${veth}: group is 7, should be ${group}`],
  },
  {
    title: 'the host route is gone',
    modes: ['compact'],
    breakIt: ({ ip, pod }) => pod.node.netns.ip('route', 'delete', ip, 'table', '3999'),
    named: ({ ip, veth }) => [`host: route "${ip}/32 dev ${veth} table 3999 proto 84 scope link" is missing`],
  },
  {
    title: 'the host route is gone',
    modes: ['per-pod'],
    breakIt: ({ ip, pod }) => pod.node.netns.ip('route', 'delete', ip),
    named: ({ ip, veth }) => [`host: route "${ip}/32 dev ${veth} proto 84 scope link" is missing`],
  },
  {
    title: 'rp_filter of the host link is off',
    modes: BOTH,
    breakIt: ({ pod, veth }) => pod.node.netns.sysctl({ [`net/ipv4/conf/${veth}/rp_filter`]: 0 }),
    named: ({ veth }) => [`host: sysctl net.ipv4.conf.${veth}.rp_filter is 0, should be 1`],
  },
  {
    title: 'the host link has an IPv4 address',
    modes: BOTH,
    breakIt: (context) => onHost(context, 'address', 'add', '192.0.2.7/32', 'dev', context.veth),
    named: ({ veth }) => [
      `host: ${veth} has the IPv4 address 192.0.2.7/32: its Pod could forge sources; delete the address and stop what adds it`,
    ],
    tidy: (context) => onHost(context, 'address', 'delete', '192.0.2.7/32', 'dev', context.veth),
  },
  {
    title: 'the table has no rule for the link group',
    modes: BOTH,
    breakIt: async ({ pod, group }) => {
      const listing = await pod.node.netns.run(['nft', '-n', '-s', 'list', 'table', 'inet', 'tke_eni']);
      const without = listing.replace(`iifgroup ${group} goto eni_${group}`, `iifgroup 7 goto eni_${group}`);
      if (without === listing) throw new Error(`no rule for ${group} in ${listing}`);
      await pod.node.netns.nft(`delete table inet tke_eni\n${without}`);
    },
    named: ({ group }) => [`host: nftables table inet tke_eni is altered; it has no rule for link group ${group}`],
  },
  {
    title: 'the nftables table is gone',
    modes: BOTH,
    breakIt: ({ pod }) => pod.node.netns.nft('delete table inet tke_eni\n'),
    named: () => ['host: nftables table inet tke_eni is missing'],
  },
  {
    title: 'the rule that leads to the Pod routes is gone',
    modes: ['compact'],
    breakIt: (context) => onHost(context, 'rule', 'delete', 'pref', '512'),
    named: () => ['host: IPv4 rule "pref 512 lookup 3999 proto 84" is missing'],
  },
  {
    title: "the rule that maps the ENI's mark is gone",
    modes: ['compact'],
    breakIt: (context) => onHost(context, 'rule', 'delete', 'pref', '1536'),
    named: ({ group }) => [`host: IPv4 rule "pref 1536 fwmark 0x10000/0xff0000 lookup ${group} proto 84" is missing`],
  },
  {
    title: 'both rules of the Pod are gone',
    modes: ['per-pod'],
    breakIt: async (context) => {
      await onHost(context, 'rule', 'delete', 'pref', '512', 'to', context.ip);
      await onHost(context, 'rule', 'delete', 'pref', '1536', 'from', context.ip);
    },
    named: ({ ip, group }) => [
      `host: IPv4 rule "pref 512 to ${ip}/32 lookup main proto 84" is missing`,
      `host: IPv4 rule "pref 1536 from ${ip}/32 lookup ${group} proto 84" is missing`,
    ],
  },
  {
    title: "the ENI's table is empty",
    modes: BOTH,
    breakIt: (context) => onHost(context, 'route', 'flush', 'table', context.group),
    named: ({ pod, eni, group }) => [
      `host: route "${pod.node.enis[0]?.gateway}/32 dev ${eni} table ${group} proto 84 scope link" is missing`,
      `host: route "default via ${pod.node.enis[0]?.gateway} dev ${eni} table ${group} proto 84" is missing`,
    ],
  },
  {
    title: "the ENI's link is down",
    modes: BOTH,
    breakIt: (context) => onHost(context, 'link', 'set', context.eni, 'down'),
    named: ({ eni }) => [`host: link ${eni}: up is false, should be true`],
  },
];

function macOf(result: JsonObject, index: number): string {
  const interfaces: unknown = result['interfaces'];
  const found: unknown = Array.isArray(interfaces) ? interfaces[index] : undefined;
  return isObject(found) ? String(found['mac']) : '';
}

async function contextOf(pod: AttachedPod): Promise<Broken> {
  const interfaces = pod.result['interfaces'] as readonly JsonObject[];
  const veth = String(interfaces[0]?.['name']);
  const [link] = await pod.node.netns.ipJson('-d', 'link', 'show', 'dev', veth);
  const [ip = '', ipv6 = ''] = pod.ips;
  const eni = pod.node.enis[0]?.ifname ?? '';
  return { pod, ip, ipv6, veth, mac: macOf(pod.result, 0), group: String(link?.['group']), eni };
}

/** The dearest to miss; the others are tried in the suite `long`. */
const isShort = ({ title, modes, ruleMode }: Case & { readonly ruleMode: string }): boolean =>
  ruleMode === modes[0] &&
  [
    'the default route is gone',
    'the MAC is another',
    'the host route is gone',
    'both rules of the Pod are gone',
    "the rule that maps the ENI's mark is gone",
    'the nftables table is gone',
  ].includes(title);

const inModes = (cases: readonly Case[]) =>
  RULE_MODES.flatMap((ruleMode) =>
    cases.filter(({ modes }) => modes.includes(ruleMode)).map((one) => ({ ...one, ruleMode })),
  );

for (const { title, breakIt, named, ruleMode } of partOf(inModes(IN_POD), isShort)) {
  test.serial(`CHECK: names it when in the Pod ${title}, ${ruleMode}`, async (t) => {
    const { node } = scenes.get(ruleMode);
    const pod = await node.addPod();
    const conf = node.conf({ prevResult: pod.result });
    const context = await contextOf(pod);
    succeedSilently(t, await node.call('CHECK', pod, { conf }));
    await breakIt(context);
    const before = await pod.netns.run(['ip', 'address']);
    const error = fail(t, await node.call('CHECK', pod, { conf }));
    t.is(error.code, 104);
    t.deepEqual(missing(named(context), error.details), []);
    fail(t, await node.call('CHECK', pod, { conf }));
    t.is(await pod.netns.run(['ip', 'address']), before, 'CHECK repairs nothing');
    await node.delete(pod);
    t.deepEqual(await node.tracesOf(pod.ip), []);
  });
}

for (const { title, breakIt, named, tidy, ruleMode } of partOf(inModes(ON_HOST), isShort)) {
  test.serial(`CHECK: names it when on the host ${title}, and repair mends it, ${ruleMode}`, async (t) => {
    const { node, vpc } = scenes.get(ruleMode);
    const hold = holdOf(ruleMode);
    const pod = await node.addPod();
    const conf = node.conf({ prevResult: pod.result });
    const context = await contextOf(pod);
    await hold.hold(node);
    try {
      succeedSilently(t, await node.call('CHECK', pod, { conf }));
      await breakIt(context);
      const error = fail(t, await node.call('CHECK', pod, { conf }));
      t.is(error.code, 104);
      t.deepEqual(missing(named(context), error.details), []);
      t.is(fail(t, await node.call('CHECK', pod, { conf })).details, error.details, 'CHECK repairs nothing');
    } finally {
      hold.release();
    }
    await tidy?.(context);
    await waitUntil(async () => (await node.violations()).length === 0, {
      what: 'the node repaired',
      explain: () => node.agent.logs().slice(-3_000),
    });
    succeedSilently(t, await node.call('CHECK', pod, { conf }));
    for (const ip of [vpc.outside.ip, vpc.outside.ipv6]) t.true(await pod.netns.ping(ip));
    await node.delete(pod);
    await scenes.verify(t, ruleMode);
  });
}

/** The lines that should be among the differences and are not, with what is there instead. */
function missing(named: readonly string[], details = ''): readonly string[] {
  const found = details.split('\n');
  return named.filter((line) => !found.includes(line)).map((line) => `${line}\n  not in\n${details}`);
}

shortTest.serial('CHECK: reports every difference at once', async (t) => {
  const { node } = scenes.get('compact');
  const pod = await node.addPod();
  const context = await contextOf(pod);
  const broken = IN_POD.slice(0, 5);
  for (const { breakIt } of broken) await breakIt(context);
  const error = fail(t, await node.call('CHECK', pod, { conf: node.conf({ prevResult: pod.result }) }));
  t.deepEqual(
    missing(
      broken.flatMap(({ named }) => named(context)),
      error.details,
    ),
    [],
  );
  t.regex(error.msg, new RegExp(`^${pod.containerId} eth0: \\d+ difference\\(s\\) from what ADD made$`));
});

shortTest.serial('CHECK: names what prevResult says and the agent does not hold', async (t) => {
  const { node } = scenes.get('compact');
  const pod = await node.addPod();
  const prevResult = JSON.parse(JSON.stringify(pod.result).replace(pod.ip, '192.0.2.1'));
  const error = fail(t, await node.call('CHECK', pod, { conf: node.conf({ prevResult }) }));
  t.is(error.code, 104);
  t.is(error.details, `prevResult: the agent holds ${pod.ip}/32, prevResult has 192.0.2.1/32, ${pod.ips[1]}/128`);
});

shortTest.serial('CHECK: says so when the agent knows no such sandbox', async (t) => {
  const { node } = scenes.get('compact');
  const pod = await node.newPod();
  const prevResult = { cniVersion: '1.0.0', interfaces: [], ips: [{ address: '192.0.2.1/32' }] };
  t.deepEqual(fail(t, await node.call('CHECK', pod, { conf: node.conf({ prevResult }) })), {
    code: 3,
    msg: `container ${pod.containerId} has no attachment eth0 on this node`,
    details: 'the Pod sandbox must be made anew',
  });
});

shortTest.serial('CHECK: asks for prevResult when the conf has none', async (t) => {
  const { node } = scenes.get('compact');
  const pod = await node.newPod();
  const error = fail(t, await node.call('CHECK', pod));
  t.is(error.code, 7);
  t.is(error.msg, 'network configuration: prevResult: expected the result of ADD, as CHECK requires, got nothing');
});
