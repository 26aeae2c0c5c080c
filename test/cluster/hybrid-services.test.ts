import test from 'ava';
import { readProxyFacts } from '../support/kube-proxy/read-proxy-facts.ts';
import { type LocalDetector, serviceRules } from '../support/kube-proxy/service-rules.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { startRealCluster } from './real-cluster.ts';
import { CLUSTER_CIDR, GR_DEPLOYMENT, GR_KUBE_PROXY, GR_SERVICE_CIDR } from './workloads/gr-cluster.ts';

import {
  type HybridServiceScene,
  makeHybridServices,
  proxiedServices,
  wrongLocalAnswers,
  wrongServiceAnswers,
} from './workloads/hybrid-services.ts';
import { forgetWays } from './workloads/ways.ts';

// Services before Pods of both networks, by the real kube-proxy in both of its modes.

let made: HybridServiceScene | undefined;

const running = clusterOfFile(
  () => startRealCluster({ serviceCidr: GR_SERVICE_CIDR, kubeProxyFlags: GR_KUBE_PROXY }),
  async (cluster) => {
    await cluster.deploy({ ...GR_DEPLOYMENT, until: 'nodes', subnetIds: cluster.cloud.podSubnetIds });
    made = await makeHybridServices(cluster);
  },
);

/** The stand-in of kube-proxy, which tests without a cluster use, has rules that do the same. */
function declareRules(mode: 'iptables' | 'nftables', detector: LocalDetector): void {
  const argv = mode === 'iptables' ? ['iptables-save', '-t', 'nat'] : ['nft', 'list', 'table', 'ip', 'kube-proxy'];
  test.serial(
    `kube-proxy, ${mode}, ${JSON.stringify(detector)}: its rules do what those of the stand-in do`,
    async (t) => {
      for (const node of running().nodes) {
        if (made === undefined) return t.fail('no scene');
        const services = proxiedServices(made, node.name);
        const rules = serviceRules(services, detector);
        // A prefix is the whole name here.
        const wanted = readProxyFacts(rules, services).map((line) => line.replaceAll('cbr0*', 'cbr0'));
        const ways = wanted.map((line) => line.slice(0, line.indexOf(': ')));
        t.is(ways.length, 8);
        let facts: readonly string[] = [];
        // It writes what has changed once a second.
        const isDone = async (): Promise<boolean> => {
          const all = readProxyFacts((await node.tryExec(argv)).stdout, services);
          facts = all.filter((line) => ways.includes(line.slice(0, line.indexOf(': '))));
          return facts.join('\n') === wanted.join('\n');
        };
        await waitUntil(isDone, { what: 'rules', timeoutMs: 60_000, everyMs: 500 }).catch(() => undefined);
        t.deepEqual(facts, wanted, `${node.name}: ${node.kubeProxy.logs().slice(-1_000)}`);
        if (mode === 'nftables') t.notRegex(await node.exec(['iptables-save', '-t', 'nat']), /-A KUBE-SVC-/, node.name);
      }
    },
  );
}

/** @param refused what a node sends on with the address of a Pod of another one, which the VPC refuses */
function declareAnswers(what: string, refused = 0): void {
  test.serial(
    `Services before Pods of both networks, ${what}: the right Pod answers everybody, and sees who asks`,
    async (t) => {
      if (made === undefined) return t.fail('no scene');
      const { vpc } = running().cloud;
      await forgetWays(vpc);
      t.deepEqual(await wrongServiceAnswers(running(), made), []);
      t.is((await vpc.droppedPackets()).length, refused, JSON.stringify(await vpc.droppedPackets()));
      if (refused === 0) t.deepEqual(await wrongLocalAnswers(running(), made), []);
    },
  );
}

const BY_BRIDGE = { interfacePrefix: 'cbr0' } as const;

declareRules('iptables', BY_BRIDGE);
declareAnswers('kube-proxy in iptables mode');

test.serial('kube-proxy: goes over to nftables mode', async (t) => {
  for (const node of running().nodes) await node.replaceKubeProxy({ ...GR_KUBE_PROXY, 'proxy-mode': 'nftables' });
  t.pass();
});

declareRules('nftables', BY_BRIDGE);
declareAnswers('kube-proxy in nftables mode');

test.serial('agent: goes over to rules for each Pod by a rollout', async (t) => {
  const cluster = running();
  const agentSettings = { ...GR_DEPLOYMENT.agentSettings, 'rule-mode': 'per-pod' };
  const { podSubnetIds: subnetIds } = cluster.cloud;
  await cluster.deploy({ ...GR_DEPLOYMENT, until: 'nodes', subnetIds, agentSettings });
  await cluster.kubectl('-n', 'kube-system', 'rollout', 'status', 'daemonset/tke-eni-agent', '--timeout=90s');
  t.pass();
});

declareAnswers('rules for each Pod, nftables mode');

test.serial('agent: goes back to compact rules; cloud, objects and kernels agree', async (t) => {
  const cluster = running();
  await cluster.deploy({ ...GR_DEPLOYMENT, until: 'nodes', subnetIds: cluster.cloud.podSubnetIds });
  await cluster.kubectl('-n', 'kube-system', 'rollout', 'status', 'daemonset/tke-eni-agent', '--timeout=90s');
  t.deepEqual(await auditCluster(cluster), []);
});

test.serial('kube-proxy: tells Pods by the range of all blocks', async (t) => {
  const flags = { 'detect-local-mode': 'ClusterCIDR', 'cluster-cidr': CLUSTER_CIDR };
  for (const node of running().nodes) await node.replaceKubeProxy(flags);
  t.pass();
});

declareRules('iptables', { cluster: CLUSTER_CIDR });
// Of the GlobalRoute Pod of node1, to each of the two backends there, by node2, which has none.
declareAnswers('kube-proxy that tells Pods by the range of all blocks', 2);
