import { join } from 'node:path';
import test from 'ava';
import { awaitPods, deploymentManifest, podsOf, spreadOverNodes } from './pods.ts';
import { type RealCluster, startRealCluster } from './real-cluster.ts';

const UNINSTALL = join(import.meta.dirname, '../../conf/kubernetes/uninstall');
const STEP_MS = 180_000;
const HOST_VETH = /^eni[0-9a-f]{11}$/;

let started: RealCluster | undefined;

function running(): RealCluster {
  if (started === undefined) throw new Error('the cluster did not start');
  return started;
}

test.before(async () => {
  started = await startRealCluster();
  await started.deploy({ agentSettings: { 'ip-cooldown': '2s' } });
});
test.after.always(() => started?.close());

// The order of docs/uninstall.md, by its commands.
test('leaving: in the documented order nothing is left in the cloud, in the cluster or on a node', async (t) => {
  t.timeout(600_000);
  const cluster = running();
  const kubectl = async (line: string): Promise<string> => {
    const { code, stdout, stderr } = await cluster.tryKubectl(line.split(' '), { timeoutMs: STEP_MS });
    if (code !== 0) throw new Error(`kubectl ${line}: ${stdout}${stderr}`);
    return stdout;
  };
  await cluster.apply(deploymentManifest('web', 4, { spec: spreadOverNodes('web') }));
  await awaitPods(cluster, 'app=web', 4);
  t.true(cluster.nodes.some(({ name }) => cluster.cloud.vpc.enisOf(name).length > 0));

  await kubectl('delete deployment web --cascade=foreground --timeout=60s');
  t.deepEqual(await podsOf(cluster, 'app=web'), []);
  await kubectl('annotate nodes --all tke.cloud.tencent.com/disable-node-eni=true');
  await kubectl('delete nec --all --timeout=150s');
  for (const { name } of cluster.nodes)
    t.deepEqual(cluster.cloud.vpc.enisOf(name), [], `the cloud has the ENIs of ${name} back`);
  await kubectl('-n kube-system delete deployment/tke-eni-ipamd poddisruptionbudget/tke-eni-ipamd');
  await kubectl('-n kube-system delete daemonset/tke-eni-agent');
  await kubectl('-n kube-system wait --for=delete pod -l app.kubernetes.io/name=tke-eni --timeout=120s');

  await kubectl(`apply -k ${UNINSTALL}`);
  await kubectl('-n kube-system rollout status daemonset/tke-eni-uninstall --timeout=150s');
  t.log(await kubectl('-n kube-system logs -l app.kubernetes.io/component=uninstall -c uninstall --tail=1'));
  for (const node of cluster.nodes) {
    const links = (await node.ns.ipJson('link')).map((link) => String(link['ifname']));
    t.deepEqual(
      links.filter((name) => HOST_VETH.test(name)),
      [],
    );
    for (const family of ['-4', '-6']) {
      t.is(
        await node.ns.ip(family, 'rule', 'show').then((text) =>
          text
            .split('\n')
            .filter((line) => line.includes('proto 84'))
            .join(),
        ),
        '',
      );
      t.deepEqual(await node.ns.ipJson(family, 'route', 'show', 'table', 'all', 'proto', '84'), []);
    }
    t.is(await node.ns.nftJson('table', 'inet', 'tke_eni'), undefined);
    t.notRegex(
      await node.exec(['ls', '-a', '/opt/cni/bin', '/etc/cni/net.d', '/run', '/var/lib/kubelet/device-plugins']),
      /tke-/,
    );
  }
  await kubectl(`delete -k ${UNINSTALL}`);
  const kinds = (await kubectl('get crd -o name')).split('\n').filter((name) => name.includes('networking.tke.cloud'));
  await kubectl(`delete ${kinds.join(' ')} --timeout=60s`);
});
