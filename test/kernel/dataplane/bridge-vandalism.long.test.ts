import test from 'ava';
import fc from 'fast-check';
import type { RuleMode } from '../../../dataplane/network.ts';
import { assertLaw } from '../../support/law.ts';
import { A, B, BLOCK, pings, serve, threePods, VIP } from './bridge-scene.ts';
import { type TestNode, withTestNode } from './test-node.ts';

type Scene = Awaited<ReturnType<typeof threePods>>;

/** What other programs may do to the bridge, its ports, routes and settings. */
const HARMS: Readonly<Record<string, (node: TestNode, scene: Scene) => void>> = {
  'bridge deleted': ({ ip }) => ip('link', 'del', 'cbr0'),
  'bridge down': ({ ip }) => ip('link', 'set', 'cbr0', 'down'),
  'bridge renamed': ({ ip }) => {
    ip('link', 'set', 'cbr0', 'down');
    ip('link', 'set', 'cbr0', 'name', 'old0');
  },
  'bridge made by another program': ({ ip }) => {
    ip('link', 'del', 'cbr0');
    ip('link', 'add', 'cbr0', 'type', 'bridge');
  },
  'bridge promiscuous': ({ ip }) => ip('link', 'set', 'cbr0', 'promisc', 'on'),
  'MTU of the bridge': ({ ip }) => ip('link', 'set', 'cbr0', 'mtu', '1300'),
  'MAC of the bridge': ({ ip }) => ip('link', 'set', 'cbr0', 'address', '02:11:22:33:44:55'),
  'bridge in the group of an ENI': ({ ip }) => ip('link', 'set', 'dev', 'cbr0', 'group', '4025'),
  'no address': ({ ip }) => ip('address', 'flush', 'dev', 'cbr0'),
  'address of a former block': ({ ip }) => ip('address', 'add', '172.31.9.1/26', 'dev', 'cbr0'),
  'port in no bridge': ({ ip }, { a }) => ip('link', 'set', a.pod.hostVeth.name, 'nomaster'),
  'port in another bridge': ({ ip }, { b }) => {
    ip('link', 'add', 'other', 'type', 'bridge');
    ip('link', 'set', b.pod.hostVeth.name, 'master', 'other');
    ip('link', 'set', b.pod.hostVeth.name, 'type', 'bridge_slave', 'hairpin', 'on');
  },
  'port without hairpin': ({ ip }, { a }) =>
    ip('link', 'set', a.pod.hostVeth.name, 'type', 'bridge_slave', 'hairpin', 'off'),
  'port down': ({ ip }, { b }) => ip('link', 'set', b.pod.hostVeth.name, 'down'),
  'port in the group of an ENI': ({ ip }, { a }) => ip('link', 'set', 'dev', a.pod.hostVeth.name, 'group', '4025'),
  'rule 1024': ({ ip }) => ip('rule', 'del', 'pref', '1024'),
  'our routes': ({ ip }) => ip('route', 'flush', 'proto', '84'),
  "the kernel's route": ({ ip }) => ip('route', 'del', BLOCK.cidr, 'dev', 'cbr0', 'proto', 'kernel'),
  'settings of the bridge': ({ run }) =>
    run('sysctl', '-qw', 'net.ipv4.conf.cbr0.forwarding=0', 'net.ipv4.conf.cbr0.rp_filter=2'),
  'bridge-nf-call-iptables': ({ run }) => run('sysctl', '-qw', 'net.bridge.bridge-nf-call-iptables=0'),
  'our table': ({ run }) => run('nft', 'delete table inet tke_eni'),
};

/** A harm that has nothing to harm any more does nothing. */
function tryHarm(harm: () => void): void {
  try {
    harm();
  } catch {
    // An earlier one took its object away.
  }
}

const inMode = test.macro(async (t, ruleMode: RuleMode) => {
  const harms = fc.array(fc.constantFrom(...Object.keys(HARMS)), { minLength: 1, maxLength: 4 });
  await assertLaw(
    t,
    (t) =>
      fc.asyncProperty(harms, async (names) => {
        await withTestNode(async (node) => {
          const scene = await threePods(node, ruleMode, 'bridge');
          serve(node, A);
          for (const name of names) tryHarm(() => HARMS[name]?.(node, scene));
          await node.reach(scene.plan());
          t.deepEqual(await node.reach(scene.plan()), [], names.join(', '));
          const { a, b, ofEni } = scene;
          for (const [from, to] of [
            [a.sandbox, B],
            [b.sandbox, VIP],
            [a.sandbox, VIP],
            [ofEni.sandbox, A],
            [node, A],
          ] as const) {
            t.true(pings(from, to), `${names.join(', ')}: to ${to}`);
          }
        });
      }),
    { numRuns: 25, endOnFailure: true },
  );
});

test.serial(
  'diffHost: one pass repairs whatever was done to the bridge of GlobalRoute Pods; compact',
  inMode,
  'compact',
);
test.serial(
  'diffHost: one pass repairs whatever was done to the bridge of GlobalRoute Pods; per-pod',
  inMode,
  'per-pod',
);
