import test from 'ava';
import { expectRepairs, type ForeignChange, restoredMs } from './support/foreign-changes.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// What others do to the bridge of GlobalRoute Pods and to what leads to it.

const GR = { cidr: '172.20.0.0/26', wiring: 'bridge' } as const;

const ip =
  (...args: readonly string[]) =>
  ({ node }: Trial): Promise<string> =>
    node.netns.ip(...args);

/** Name of the host's end of a Pod's link. */
async function portOf({ node }: Trial, pod: AttachedPod): Promise<string> {
  const ports = await node.netns.ipJson('-d', 'link');
  const port = ports.find(({ ifalias }) => ifalias === `tke-eni/${pod.containerId}/${pod.ifName}`);
  return String(port?.['ifname']);
}

const atPort =
  (...args: readonly string[]) =>
  async (trial: Trial, pod: AttachedPod): Promise<string> =>
    trial.node.netns.ip('link', 'set', await portOf(trial, pod), ...args);

const CHANGES: Readonly<Record<string, ForeignChange>> = {
  'cbr0 deleted': { does: ip('link', 'del', 'cbr0') },
  'cbr0 set down': { does: ip('link', 'set', 'cbr0', 'down') },
  'the address of cbr0 deleted': { does: ip('addr', 'flush', 'dev', 'cbr0') },
  'cbr0 in promiscuous mode': { does: ip('link', 'set', 'cbr0', 'promisc', 'on') },
  'a port out of the bridge': { does: atPort('nomaster') },
  'a port set down': { does: atPort('down') },
  'hairpin of a port off': { does: atPort('type', 'bridge_slave', 'hairpin', 'off') },
  'rule 1024 deleted': { does: ip('rule', 'del', 'pref', '1024') },
  'the routes of the block deleted': { does: ip('route', 'flush', 'table', 'main', 'proto', '84') },
};

for (const ruleMode of ['compact', 'per-pod'] as const) {
  test(`agent: repairs what others did to the bridge, ${ruleMode}`, (t) =>
    expectRepairs(t, { ruleMode, gr: GR }, CHANGES));
}

test('agent: puts settings of the bridge back', async (t) => {
  t.timeout(120_000);
  const trial = await openTrial({ ruleMode: 'compact', gr: GR });
  try {
    const pods = [await trial.addPod(), await trial.addPod()] as const;
    for (const [key, wrong, right] of [
      ['ipv4/conf/cbr0/forwarding', 0, '1'],
      ['ipv4/conf/cbr0/rp_filter', 0, '1'],
      ['ipv4/conf/cbr0/proxy_arp', 0, '1'],
      ['bridge/bridge-nf-call-iptables', 0, '1'],
    ] as const) {
      await trial.node.netns.sysctl({ [`net/${key}`]: wrong });
      t.log(`figure: ${key}: ${await restoredMs(trial, key, right)} ms`);
    }
    t.true(await pods[0].netns.ping(pods[1].ip));
    t.true(await pods[0].netns.ping(trial.vpc.outside.ip));
  } finally {
    await trial.close();
  }
});
