import test, { type ExecutionContext } from 'ava';
import { longTest, partOf, shortTest } from '../support/suite-part.ts';
import { expectRepairs, type ForeignChange, restoredMs } from './support/foreign-changes.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// What others do to a node's network, one thing at a time: first while the agent is stopped, so that the checker can see
// that harm was done; then while it runs. Each time: repaired by its notification alone (the timer is an hour away),
// judged by the invariants and by pings. How fast is printed.

type RuleMode = 'compact' | 'per-pod';
type ChangeOfMode = ForeignChange & { readonly modes?: readonly RuleMode[] };

const ip =
  (...args: readonly string[]) =>
  ({ node }: Trial): Promise<string> =>
    node.netns.ip(...args);

/** What `ip rule flush` does, and what any sane program then does to keep the node alive. */
const flushRules = async ({ node }: Trial): Promise<void> => {
  for (const family of [4, 6] as const) {
    await node.netns.ipBatch(
      [
        'rule flush',
        'rule add pref 32766 lookup main',
        ...(family === 4 ? ['rule add pref 32767 lookup default'] : []),
      ],
      family,
    );
  }
};

const hostVeth = async ({ node }: Trial, pod: AttachedPod): Promise<string> => {
  const routes = await node.netns.ipJson('route', 'show', 'table', 'all', pod.ip);
  // One that refuses packets leads to no link.
  return String(routes.find(({ dev }) => dev !== undefined)?.['dev']);
};

const eniTable = async ({ node }: Trial): Promise<string> => {
  const routes = await node.netns.ipJson('-N', 'route', 'show', 'table', 'all', 'default', 'dev', 'eth1');
  return String(routes[0]?.['table']);
};

const gatewayOf = ({ enis }: Trial): string => String(enis[0]?.gateway);

const changeDefault = async (trial: Trial, ...more: readonly string[]): Promise<void> => {
  const route = ['default', 'via', gatewayOf(trial), 'dev', 'eth1', 'table', await eniTable(trial), 'proto', '84'];
  await trial.node.netns.ip('route', 'change', ...route, ...more);
};

const CHANGES: Readonly<Record<string, ChangeOfMode>> = {
  'all rules flushed': { does: flushRules },
  'the rules at priority 1537 deleted': { does: ip('rule', 'delete', 'pref', '1537') },
  'the table of all Pod routes flushed': {
    does: async (trial) => {
      await trial.node.netns.ip('-4', 'route', 'flush', 'table', '3999');
      await trial.node.netns.ip('-6', 'route', 'flush', 'table', '3999');
    },
    modes: ['compact'],
  },
  'our routes in main flushed': {
    does: async (trial) => {
      await trial.node.netns.ip('-4', 'route', 'flush', 'table', 'main', 'proto', '84');
      await trial.node.netns.ip('-6', 'route', 'flush', 'table', 'main', 'proto', '84');
    },
    modes: ['per-pod'],
  },
  "an ENI's table flushed": {
    does: async (trial) => {
      const table = await eniTable(trial);
      await trial.node.netns.ip('-4', 'route', 'flush', 'table', table);
      await trial.node.netns.ip('-6', 'route', 'flush', 'table', table);
    },
  },
  "one Pod's route deleted": {
    does: ({ node, ruleMode }, pod) =>
      node.netns.ip('route', 'delete', `${pod.ip}/32`, 'table', ruleMode === 'compact' ? '3999' : 'main'),
  },
  'our nftables table deleted': { does: ({ node }) => node.netns.nft('delete table inet tke_eni\n') },
  'the nftables ruleset flushed': { does: ({ node }) => node.netns.nft('flush ruleset\n') },
  'one of our chains flushed': {
    does: async (trial) => trial.node.netns.nft(`flush chain inet tke_eni eni_${await eniTable(trial)}\n`),
  },
  'a drop of another program in one of our chains': {
    does: async (trial) => trial.node.netns.nft(`insert rule inet tke_eni eni_${await eniTable(trial)} drop\n`),
  },
  "an ENI's last address deleted, which empties its table": { does: ip('-4', 'address', 'flush', 'dev', 'eth1') },
  'both addresses of an ENI deleted': { does: ip('address', 'flush', 'dev', 'eth1', 'scope', 'global') },
  'a rule with our protocol, at one of our priorities': {
    does: async (trial) =>
      trial.node.netns.ip(
        'rule',
        'add',
        'pref',
        '1536',
        'from',
        '192.0.2.1',
        'lookup',
        await eniTable(trial),
        'proto',
        '84',
      ),
  },
  "a route with our protocol, in an ENI's table": {
    does: async (trial) =>
      trial.node.netns.ip('route', 'add', '192.0.2.0/24', 'dev', 'eth1', 'table', await eniTable(trial), 'proto', '84'),
  },
  "an ENI's default route with one attribute more": {
    does: async (trial) => changeDefault(trial, 'initcwnd', '10'),
  },
  "an ENI's default route with several next hops": {
    does: async (trial) => {
      const hop = (weight: string) => ['nexthop', 'via', gatewayOf(trial), 'dev', 'eth1', 'onlink', 'weight', weight];
      const table = await eniTable(trial);
      await trial.node.netns.ip('route', 'change', 'default', 'table', table, 'proto', '84', ...hop('1'), ...hop('2'));
    },
  },
  "a second default route of ours before an ENI's": {
    does: async (trial) => {
      const route = ['default', 'via', gatewayOf(trial), 'dev', 'eth1', 'onlink', 'table', await eniTable(trial)];
      await trial.node.netns.ip('route', 'prepend', ...route, 'proto', '84', 'mtu', 'lock', '1300');
    },
  },
  "one Pod's route with a locked MTU": {
    does: async (trial, pod) => {
      const table = trial.ruleMode === 'compact' ? '3999' : 'main';
      const route = [pod.ip, 'dev', await hostVeth(trial, pod), 'scope', 'link', 'table', table, 'proto', '84'];
      await trial.node.netns.ip('route', 'change', ...route, 'mtu', 'lock', '1300');
    },
  },
  "an ENI's rule for one protocol in the place of ours": {
    does: async (trial) => {
      const rule = [
        'pref',
        '1537',
        'from',
        String(trial.enis[0]?.primaryIp),
        'lookup',
        await eniTable(trial),
        'proto',
        '84',
      ];
      await trial.node.netns.ip('rule', 'delete', ...rule);
      await trial.node.netns.ip('rule', 'add', ...rule, 'ipproto', 'tcp', 'dport', '80');
    },
  },
  "a Pod's link moved to another group": {
    does: async (trial, pod) => trial.node.netns.ip('link', 'set', await hostVeth(trial, pod), 'group', '77'),
  },
  "a Pod's link set down": {
    does: async (trial, pod) => trial.node.netns.ip('link', 'set', await hostVeth(trial, pod), 'down'),
  },
  "the MAC of a Pod's link changed": {
    does: async (trial, pod) =>
      trial.node.netns.ip('link', 'set', await hostVeth(trial, pod), 'address', '02:de:ad:be:ef:04'),
  },
  "the alias of a Pod's link changed": {
    does: async (trial, pod) => trial.node.netns.ip('link', 'set', await hostVeth(trial, pod), 'alias', 'web'),
  },
  "the alias of a Pod's link deleted": {
    does: async (trial, pod) => trial.node.netns.ip('link', 'set', await hostVeth(trial, pod), 'alias', ''),
  },
  "ARP turned off on a Pod's link": {
    does: async (trial, pod) => trial.node.netns.ip('link', 'set', await hostVeth(trial, pod), 'arp', 'off'),
  },
  'ARP turned off on an ENI': { does: ip('link', 'set', 'eth1', 'arp', 'off') },
  "a Pod's link in a bridge": {
    does: async (trial, pod) => {
      await trial.node.netns.tryRun(['ip', 'link', 'add', 'other-br', 'type', 'bridge']);
      await trial.node.netns.ip('link', 'set', await hostVeth(trial, pod), 'master', 'other-br');
    },
  },
  'an ENI set down': { does: ip('link', 'set', 'eth1', 'down') },
  "an ENI's link gone, and back with another index": { does: ({ vpc }) => vpc.replug('eni-1') },
};

const isShort = ([what]: readonly [string, ChangeOfMode]): boolean =>
  [
    'all rules flushed',
    'the nftables ruleset flushed',
    "one Pod's route deleted",
    "a route with our protocol, in an ENI's table",
    "an ENI's default route with one attribute more",
    'a rule with our protocol, at one of our priorities',
    'an ENI set down',
    "ARP turned off on a Pod's link",
    "the alias of a Pod's link changed",
  ].includes(what);

const repairs = test.macro(async (t: ExecutionContext, ruleMode: RuleMode) => {
  const all = Object.entries(CHANGES);
  const part = ruleMode === 'compact' ? partOf(all, isShort) : all;
  const changes = part.filter(([, { modes }]) => modes?.includes(ruleMode) ?? true);
  await expectRepairs(t, { ruleMode, isDual: true }, Object.fromEntries(changes));
});

test("agent: repairs what others did to the node's network, compact", repairs, 'compact');
longTest("agent: repairs what others did to the node's network, per-pod", repairs, 'per-pod');

shortTest('agent: puts settings back that the kernel notifies at once, and the others within 5 s', async (t) => {
  t.timeout(60_000);
  const trial = await openTrial({ ruleMode: 'compact', isDual: true });
  try {
    const pod = await trial.addPod();
    const veth = await hostVeth(trial, pod);
    const logged = trial.agent.logs().length;
    const notified: Readonly<Record<string, readonly [wrong: number, right: string]>> = {
      'ipv4/ip_forward': [0, '1'],
      'ipv4/conf/eth1/forwarding': [0, '1'],
      'ipv4/conf/eth1/rp_filter': [1, '2'],
      'ipv4/conf/eth0/rp_filter': [1, '2'],
      // No pass has planned this Pod yet.
      [`ipv4/conf/${veth}/forwarding`]: [0, '1'],
      [`ipv4/conf/${veth}/rp_filter`]: [0, '1'],
      [`ipv6/conf/${veth}/forwarding`]: [0, '1'],
      'ipv6/conf/all/forwarding': [0, '1'],
    };
    for (const [key, [wrong, right]] of Object.entries(notified)) {
      await trial.node.netns.sysctl({ [`net/${key}`]: wrong });
      t.log(`${key}: ${await restoredMs(trial, key, right)} ms`);
    }
    const causes = trial.agent.logs().slice(logged);
    t.true(causes.includes('"cause":"netconf new'));
    t.false(causes.includes('"cause":"sysctl"'), 'a setting waited for the next reading');
    for (const [key, [wrong, right]] of Object.entries({
      'ipv6/conf/eth1/accept_ra': [1, '0'] as const,
      'ipv4/conf/eth1/src_valid_mark': [0, '1'] as const,
      [`ipv6/conf/${veth}/disable_ipv6`]: [1, '0'] as const,
    })) {
      await trial.node.netns.sysctl({ [`net/${key}`]: wrong });
      const ms = await restoredMs(trial, key, right);
      t.log(`${key}: ${ms} ms`);
    }
    t.true(await pod.netns.ping(trial.vpc.outside.ip));
  } finally {
    await trial.close();
  }
});
