import { join } from 'node:path';
import test from 'ava';
import { isObject } from '../../sim/kube-api/object.ts';
import { buildExecutables } from '../../tools/build.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import type { ClusterNode } from './cluster-node.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { kubeProxyArgv } from './control-plane.ts';
import { Daemon } from './daemon.ts';
import { NODE_KUBE_DIR } from './node-mounts.ts';
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

const WRONG = { 'detect-local-mode': 'ClusterCIDR', 'cluster-cidr': '10.0.0.0/16' } as const;

for (const mode of ['iptables', 'nftables'] as const) {
  test.serial(`doctor: finds a kube-proxy of mode ${mode} that takes the VPC for Pods of its node`, async (t) => {
    const cluster = running();
    const node = cluster.node('node1');
    await buildExecutables(['tke-eni']);
    await awaitFinding(node, false);
    await node.kubeProxy.kill();
    const flags = { ...WRONG, 'proxy-mode': mode };
    const wrong = new Daemon({
      name: 'kube-proxy with the VPC as cluster-cidr',
      machine: node.machine,
      argv: () => kubeProxyArgv(`${NODE_KUBE_DIR}/kube-proxy`, node.name, flags),
      logPath: join(cluster.dir, `kube-proxy-${mode}.log`),
    });
    wrong.start();
    try {
      await awaitFinding(node, true);
    } finally {
      await wrong.kill();
      node.startKubelet();
    }
    t.pass();
  });
}

const FINDING = 'error kube-proxy-cluster-cidr';

/** Waits until the doctor of the node and that of the agent's Pod find kube-proxy's fault, or until neither does. */
async function awaitFinding(node: ClusterNode, isThere: boolean): Promise<void> {
  let last: readonly string[] = [];
  await waitUntil(
    async () => {
      last = [await doctorOfNode(node), await doctorOfPod(node)];
      return last.every((text) => findingsOf(text).includes(FINDING) === isThere);
    },
    {
      what: isThere ? FINDING : 'a good kube-proxy',
      timeoutMs: 90_000,
      everyMs: 1_000,
      explain: () => last.join('\n'),
    },
  );
}

const DOCTOR = ['doctor', '--only', 'kube-proxy', '-o', 'json'];

/** It reads rules by iptables-save. */
async function doctorOfNode(node: ClusterNode): Promise<string> {
  return (await node.tryExec([join(import.meta.dirname, '../../dist/bin/tke-eni'), ...DOCTOR])).stdout;
}

/** The image has no iptables: it reads the same rules by nft. */
async function doctorOfPod(node: ClusterNode): Promise<string> {
  const agents = await podsOf(running(), 'k8s-app=tke-eni-agent', 'kube-system');
  const pod = agents.find((one) => one.node === node.name)?.name ?? 'no agent';
  return (await running().tryKubectl(['-n', 'kube-system', 'exec', pod, '--', 'tke-eni', ...DOCTOR])).stdout;
}

/** `severity id` of each. @throws SyntaxError for what is no JSON */
function findingsOf(text: string): readonly string[] {
  const { findings = [] }: { findings?: { severity: string; id: string }[] } = JSON.parse(text);
  return findings.map(({ severity, id }) => `${severity} ${id}`);
}
