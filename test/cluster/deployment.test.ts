import test from 'ava';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitPods, deploymentManifest, pingFrom, podsOf, spreadOverNodes } from './pods.ts';
import { type RealCluster, startRealCluster } from './real-cluster.ts';

const running = clusterOfFile(
  () => startRealCluster(),
  async (cluster) => {
    await cluster.deploy();
  },
);

test.serial('deploy: Pods of a Deployment have addresses of the VPC when they ask for one', async (t) => {
  const cluster = running();
  await cluster.apply(deploymentManifest('web', 3, { spec: spreadOverNodes('web') }));
  const pods = await awaitPods(cluster, 'app=web', 3);
  t.is(new Set(pods.map(({ ip }) => ip)).size, 3);
  t.deepEqual([...new Set(pods.map(({ node }) => node))].sort(), ['node1', 'node2']);
  const { vpc } = cluster.cloud;
  for (const { name, ip, node } of pods) {
    // The cloud's book, not ours: the address is assigned to an ENI of the Pod's own node.
    const eniId = vpc.eniOf(ip) ?? 'none';
    t.true(vpc.enisOf(node).includes(eniId), `${name} ${ip} on ${node}: assigned to ${eniId}`);
  }
});

test.serial('deploy: each Pod reaches every other when they are on one node and on two', async (t) => {
  const cluster = running();
  const pods = await podsOf(cluster, 'app=web');
  t.is(pods.length, 3);
  for (const from of pods)
    for (const to of pods.filter((one) => one.ip !== from.ip))
      t.true(await pingFrom(cluster, from, to.ip), `${from.name} on ${from.node} to ${to.name} on ${to.node}`);
});

test.serial('deploy: a Pod reaches the API server by the address of its Service', async (t) => {
  const cluster = running();
  const [pod] = await podsOf(cluster, 'app=web');
  if (pod === undefined) return t.fail('no Pod');
  // Plain HTTP to a TLS port: whatever the answer is, the server has made it.
  const answer = await cluster.execInPod(pod.name, ['sh', '-c', 'echo GET / | nc -w 3 10.96.0.1 443']);
  t.regex(answer, /HTTPS server/);
});

test.serial('deploy: gives the addresses of deleted Pods back to their node', async (t) => {
  const cluster = running();
  t.is((await podLinksOf(cluster)).length, (await podsOf(cluster, 'app=web')).length);
  await cluster.kubectl('delete', 'deployment', 'web', '--wait', '--cascade=foreground', '--timeout=60s');
  t.deepEqual(await podsOf(cluster, 'app=web'), []);
  t.deepEqual(await podLinksOf(cluster), []);
});

/** Host ends of Pods' links: eni and eleven digits; the ENIs are veths too, in this VPC. */
async function podLinksOf(cluster: RealCluster): Promise<readonly string[]> {
  const links = await Promise.all(cluster.nodes.map(({ ns }) => ns.ipJson('link', 'show', 'type', 'veth')));
  return links
    .flat()
    .map((link) => String(link['ifname']))
    .filter((name) => /^eni[0-9a-f]{11}$/.test(name));
}
