import test from 'ava';
import { isObject } from '../kube-api/object.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { podsOf } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { declareServiceTests, makeServiceScene, type ServiceScene } from './workloads/service-tests.ts';

let made: ServiceScene | undefined;

function scene(): ServiceScene {
  if (made === undefined) throw new Error('the scene was not made');
  return made;
}

const running = clusterOfFile(
  () => startRealCluster(),
  async (cluster) => {
    await cluster.deploy({ agentSettings: { 'rule-mode': 'per-pod' } });
    made = await makeServiceScene(cluster);
  },
);

declareServiceTests('per-pod', running, scene);

test.serial('agent: goes over to compact rules under running Pods by a rollout', async (t) => {
  const cluster = running();
  await cluster.deploy();
  await cluster.kubectl('-n', 'kube-system', 'rollout', 'status', 'daemonset/tke-eni-agent', '--timeout=60s');
  for (const node of cluster.nodes) {
    // Two rules for each Pod before; now one for each ENI and one for all Pods.
    const rules = (await node.ns.ipJson('-N', 'rule')).filter((rule) => isObject(rule) && rule['protocol'] === '84');
    const podIps = (await podsOf(cluster, '')).map(({ ip }) => ip);
    t.deepEqual(
      rules.filter((rule) => podIps.includes(String(rule['src'])) || podIps.includes(String(rule['dst']))),
      [],
      node.name,
    );
    t.true(
      rules.some((rule) => rule['fwmark'] !== undefined),
      node.name,
    );
  }
});

declareServiceTests('compact', running, scene);

test.serial('audit: cloud, objects and kernels agree', async (t) => {
  t.deepEqual(await auditCluster(running()), []);
});
