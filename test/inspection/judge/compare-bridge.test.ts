import test from 'ava';
import { diffHost } from '../../../dataplane/diff.ts';
import type { ObservedHost } from '../../../dataplane/observed.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import type { DesiredNode } from '../../../inspection/desired/desired-of.ts';
import { compareHost } from '../../../inspection/judge/compare-host.ts';
import { buildNames } from '../../../inspection/model/build-names.ts';
import { buildNodeModel } from '../../../inspection/model/node-model.ts';
import { bareKernel, blocks, bridge, bridgePod, node } from '../../dataplane/fixtures.ts';
import { applyToModel } from '../../dataplane/kernel-model.ts';
import { healthySight } from './sight-fixture.ts';

const pod = bridgePod(10);
const host = planNode({ ...node, podCidrs: [blocks.present], bridge }, [], [pod]);
const desired: DesiredNode = {
  ...{
    ruleMode: 'per-pod' as const,
    host,
    pods: new Map(),
    networks: new Map([['c/eth0', pod]]),
    enis: [],
    unplanned: [],
  },
  ...{ inTransit: new Set<string>(), unjudged: [], isComplete: true },
};
const names = buildNames(buildNodeModel(healthySight().facts), desired);
const asPlanned = diffHost(host, bareKernel(host)).operations.reduce(
  (kernel, operation) => applyToModel(kernel, operation, () => host.nft?.text ?? ''),
  bareKernel(host),
);

const harm = test.macro(
  (t, change: (kernel: ObservedHost) => Partial<ObservedHost>, ...expected: readonly string[]) => {
    const found = compareHost(desired, { ...asPlanned, ...change(asPlanned) }, names);
    t.deepEqual(
      found.map(({ id, whose, what }) => `${id} of ${whose}: ${what}`),
      expected,
    );
    for (const { changes, isOurs } of found) t.true(isOurs && changes.length === 1);
  },
);
const link = (ifname: string, change: object) => (kernel: ObservedHost) => ({
  links: kernel.links.map((one) => (one.ifname === ifname ? { ...one, ...change } : one)),
});

test('compareHost: nothing about a bridge as planned', harm, () => ({}));
test(
  'compareHost: the bridge is promiscuous',
  harm,
  link('cbr0', { isPromisc: true }),
  'bridge-changed of node: cbr0: promisc is true, should be false',
);
test(
  'compareHost: the bridge has lost its address',
  harm,
  ({ addresses }) => ({ addresses: addresses.filter(({ ifname }) => ifname !== 'cbr0') }),
  'bridge-changed of node: cbr0 does not have its address 172.31.0.65/26',
);
test(
  'compareHost: the bridge has the address of a former block',
  harm,
  ({ addresses }) => ({
    addresses: [...addresses, { ifindex: bridge.ifindex, ifname: 'cbr0', prefix: '172.31.7.1/26' }],
  }),
  'bridge-changed of node: cbr0 has 172.31.7.1/26, of a block that no Pod lives in any more',
);
test(
  'compareHost: a port is in no bridge',
  harm,
  link('grx10', { master: undefined, oddPort: undefined }),
  'bridge-port-changed of Pod c/eth0: grx10 is in no bridge, should be in cbr0',
  'bridge-port-changed of Pod c/eth0: grx10 has hairpin off',
);

test(
  'compareHost: rule 1024 is missing',
  harm,
  ({ rules }) => ({ rules: rules.filter(({ priority }) => priority !== 1024) }),
  'rule-missing of node: IPv4 rule "pref 1024 to 172.31.0.64/26 lookup main proto 84" is missing',
);
test(
  'compareHost: packets between ports pass no iptables',
  harm,
  ({ sysctls }) => ({ sysctls: new Map([...sysctls, ['net.bridge.bridge-nf-call-iptables', '0']]) }),
  'br-netfilter of node: net.bridge.bridge-nf-call-iptables is 0, should be 1',
);
test(
  'compareHost: the table with the masquerade is gone',
  harm,
  () => ({ nft: {} }),
  'nft-table-missing of node: nftables table inet tke_eni is missing',
);

test('compareHost: a missing rule 1024 is a loop in per-pod mode, a detour in compact mode', (t) => {
  const { rules } = asPlanned;
  const without = { ...asPlanned, rules: rules.filter(({ priority }) => priority !== 1024) };
  const [loop] = compareHost(desired, without, names);
  const [detour] = compareHost({ ...desired, ruleMode: 'compact' }, without, names);
  t.regex(loop?.why ?? '', /^Loop:/);
  t.regex(detour?.why ?? '', /^Detour:/);
});

test('compareHost: the bridge is missing, with all that was on it', (t) => {
  const gone = { ...asPlanned, links: asPlanned.links.filter(({ ifname }) => ifname !== 'cbr0') };
  const [first] = compareHost(desired, gone, names);
  t.is(`${first?.id}: ${first?.what}`, 'bridge-missing: the bridge cbr0 is missing');
  t.deepEqual(first?.fix, [
    'tke-eni repair',
    'ip link add cbr0 index 1000001024 address 0a:58:00:00:00:01 type bridge',
  ]);
});
