import test from 'ava';
import { isInCidr } from '../../../crd/ip-text.ts';
import { awaitPods, podManifest, podsOf, spreadOverNodes } from '../pods.ts';
import type { RealCluster } from '../real-cluster.ts';
import { ECHO_SERVER } from './echo.ts';
import { awaitEvent } from './events.ts';
import { isOfBlockOf } from './gr-cluster.ts';
import { workloadOfKind } from './kinds.ts';
import { wrongSources } from './wrong-sources.ts';

/** What a Pod writes, and the network that it gets. */
const CHOICES = {
  none: { network: '', isOfBlock: true },
  bridge: { network: 'tke-bridge', isOfBlock: true },
  'bridge-json': { network: '[{"name":"tke-bridge","namespace":"kube-system"}]', isOfBlock: true },
  eni: { network: 'tke-route-eni', isOfBlock: false },
  'eni-long': { network: 'kube-system/tke-route-eni@eth0', isOfBlock: false },
} as const;

/**
 * Declares that each Pod of a hybrid cluster has the network that it chose.
 * @param subnet of Pods of ENIs on node1
 * @param gr selects GlobalRoute Pods that run on both nodes
 */
export function declareChoiceTests(running: () => RealCluster, subnet: string, gr: string): void {
  test.serial('the choice: each Pod has the network that its annotation names, on one node', async (t) => {
    const cluster = running();
    const manifests = Object.entries(CHOICES).map(([name, { network, isOfBlock }]) =>
      podManifest(name, {
        ...ECHO_SERVER,
        network,
        eniIps: isOfBlock ? 0 : 1,
        labels: { chooses: 'yes' },
        spec: { ...ECHO_SERVER.spec, nodeName: 'node1' },
      }),
    );
    await cluster.apply(manifests.join('\n---\n'));
    const pods = await awaitPods(cluster, 'chooses=yes', manifests.length);
    for (const [name, { isOfBlock }] of Object.entries(CHOICES)) {
      const { ip = '' } = pods.find((pod) => pod.name === name) ?? {};
      if (isOfBlock) t.true(await isOfBlockOf(cluster, 'node1', ip), `${name}: ${ip}`);
      else t.true(isInCidr(ip, subnet), `${name}: ${ip}`);
    }
  });

  test.serial(
    'the choice: what cannot be followed is said in an event of the Pod, with what is accepted',
    async (t) => {
      const cluster = running();
      const wrong = {
        'wrong-two': ['tke-route-eni,tke-bridge', /expected one network of .*tke-bridge.*tke-route-eni/],
        'wrong-slip': ['tke-bridges', /expected tke-bridge\b/],
        'wrong-name': ['calico', /tke-bridge.*tke-route-eni/],
        'wrong-interface': ['tke-bridge@net1', /expected no interface, or eth0/],
      } as const;
      for (const [name, [network]] of Object.entries(wrong))
        await cluster.apply(podManifest(name, { network, eniIps: 0, spec: { nodeName: 'node2' } }));
      for (const [name, [, message]] of Object.entries(wrong)) await awaitEvent(cluster, name, message);
      await cluster.kubectl('delete', 'pods', ...Object.keys(wrong), '--wait=false');
      t.pass();
    },
  );

  test.serial(
    'the choice: Pods of every kind on one node and on two reach each other with their own addresses',
    async (t) => {
      const cluster = running();
      await cluster.apply(
        [
          workloadOfKind('shared', 'eni-pods', 4, {
            ...ECHO_SERVER,
            spec: { ...ECHO_SERVER.spec, ...spreadOverNodes('eni-pods') },
          }),
          workloadOfKind('exclusive', 'whole', 1, ECHO_SERVER),
        ].join('\n---\n'),
      );
      const shared = await awaitPods(cluster, 'app=eni-pods', 4);
      const whole = await awaitPods(cluster, 'app=whole', 1, { timeoutMs: 120_000 });
      const onBridges = await podsOf(cluster, gr);
      t.deepEqual(await wrongSources(cluster, [...onBridges, ...shared, ...whole]), []);
    },
  );
}
