import test, { type ExecutionContext } from 'ava';
import { isInCidr } from '../../../crd/ip-text.ts';
import { at } from '../../kube-api/contract/contract-case.ts';
import { awaitServing, loadImages } from '../deploy.ts';
import { awaitPods, podManifest, podsOf, restartsOf } from '../pods.ts';
import type { RealCluster } from '../real-cluster.ts';
import { ECHO_SERVER } from './echo.ts';
import { editSubnets } from './edit-subnets.ts';
import { awaitEvent } from './events.ts';
import { blocksOf, isOfBlockOf, routesOf, whyNotOpen } from './gr-cluster.ts';
import { wrongSources } from './wrong-sources.ts';

const ON_BRIDGE = { ...ECHO_SERVER, network: '' } as const;

/**
 * Declares that a hybrid cluster grows by nodes of two more zones: node3 and node4, which join meanwhile.
 * @param subnets of the zone that the cluster has, of node3's and of node4's
 * @param gr selects GlobalRoute Pods that run
 */
export function declareZoneTests(
  running: () => RealCluster,
  subnets: readonly { readonly subnetId: string; readonly cidr: string; readonly zone: string }[],
  gr: string,
): void {
  test.serial(
    'another zone, as the users do it: its subnet is written down, the Pod of ipamd deleted, the node added',
    async (t) => {
      const cluster = running();
      await editSubnets(cluster, subnets.slice(0, 2));
      const lock = await cluster.kubectlJson('-n', 'kube-system', 'get', 'configmap', 'tke-eni-ipamd-leader');
      const record = String(at(lock, 'metadata', 'annotations', 'control-plane.alpha.kubernetes.io/leader'));
      const ipamds = await podsOf(cluster, 'k8s-app=tke-eni-ipamd', 'kube-system');
      const leader = ipamds.find(({ name }) => record.includes(name));
      if (leader === undefined) return t.fail(`${record} is none of ${ipamds.map(({ name }) => name)}`);
      await cluster.kubectl('delete', 'pod', leader.name, '-n', 'kube-system');
      const node = await cluster.join('node3');
      await loadImages([node]);
      await awaitServing(cluster, ['node3']);
      await assertZone(t, cluster, gr, 'node3', subnets[1]?.cidr);
    },
  );

  test.serial(
    'another zone without a restart: the node has GlobalRoute Pods at once, and ENIs once its subnet is written down',
    async (t) => {
      const cluster = running();
      const node = await cluster.join('node4');
      await loadImages([node]);
      await cluster.awaitReady(['node4']);
      await cluster.apply(podManifest('early', { ...ON_BRIDGE, spec: { ...ON_BRIDGE.spec, nodeName: 'node4' } }));
      const [early] = await awaitPods(cluster, 'app=early', 1);
      t.true(await isOfBlockOf(cluster, 'node4', early?.ip ?? ''), early?.ip);
      await awaitEvent(cluster, 'node4', /no subnet is configured in zone ap-guangzhou-7/);
      const since = await restartsOf(cluster, 'k8s-app=tke-eni-ipamd', 'kube-system');
      await editSubnets(cluster, subnets);
      await awaitServing(cluster, ['node4']);
      await assertZone(t, cluster, gr, 'node4', subnets[2]?.cidr);
      t.deepEqual(await restartsOf(cluster, 'k8s-app=tke-eni-ipamd', 'kube-system'), since);
    },
  );
}

/** A new node has its block and route, an ENI Pod of its zone's subnet, and a GlobalRoute Pod; all others are reached. */
async function assertZone(
  t: ExecutionContext,
  cluster: RealCluster,
  selector: string,
  node: string,
  subnet = '',
): Promise<void> {
  const block = (await blocksOf(cluster)).get(node);
  t.true(routesOf(cluster.cloud).includes(`${block} ${cluster.node(node).ip}`));
  t.deepEqual(await whyNotOpen(cluster, node), []);
  const spec = { ...ECHO_SERVER.spec, nodeName: node };
  const names = [`eni-${node}`, `gr-${node}`] as const;
  await cluster.apply(
    [podManifest(names[0], { ...ECHO_SERVER, spec }), podManifest(names[1], { ...ON_BRIDGE, spec })].join('\n---\n'),
  );
  const [eni] = await awaitPods(cluster, `app=${names[0]}`, 1);
  const [gr] = await awaitPods(cluster, `app=${names[1]}`, 1);
  if (eni === undefined || gr === undefined) return t.fail();
  t.true(isInCidr(eni.ip, subnet), eni.ip);
  t.true(await isOfBlockOf(cluster, node, gr.ip), gr.ip);
  const [far] = await podsOf(cluster, selector);
  const [farEni] = await podsOf(cluster, 'app=eni-pods');
  t.deepEqual(
    await wrongSources(cluster, [
      eni,
      gr,
      ...(far === undefined ? [] : [far]),
      ...(farEni === undefined ? [] : [farEni]),
    ]),
    [],
  );
}
