import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { isInCidr } from '../../crd/ip-text.ts';
import { POD_ANNOTATION } from '../../crd/names.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitServing } from './deploy.ts';
import {
  awaitPods,
  deploymentManifest,
  pingFrom,
  podsOf,
  restartsOf,
  type SeenPod,
  spreadOverNodes,
  statefulSetManifest,
} from './pods.ts';
import { CONTROL_PLANE, startRealCluster } from './real-cluster.ts';
import { refusedRequests } from './refused.ts';
import { declareChoiceTests } from './workloads/choice-tests.ts';
import { ask, ECHO_SERVER } from './workloads/echo.ts';
import { editSubnets } from './workloads/edit-subnets.ts';
import {
  blocksOf,
  GR_DEPLOYMENT,
  GR_KUBE_PROXY,
  GR_SERVICE_CIDR,
  routesOf,
  whyNotOpen,
} from './workloads/gr-cluster.ts';
import { differencesFromShown, nginxDeploy } from './workloads/nginx-deploy.ts';
import { startPings } from './workloads/steady-pings.ts';
import { forgetWays } from './workloads/ways.ts';
import { hostAskers, wrongSources } from './workloads/wrong-sources.ts';
import { declareZoneTests } from './workloads/zone-tests.ts';

// A cluster that begins as GlobalRoute; then VPC-CNI is enabled beside it, and each Pod chooses.

const [FOURTH, SIXTH, SEVENTH] = ['ap-guangzhou-4', 'ap-guangzhou-6', 'ap-guangzhou-7'] as const;
/** One of each zone. */
const SUBNETS = [
  { subnetId: 'subnet-f3m8i0xi', cidr: '10.0.4.0/24', zone: FOURTH },
  { subnetId: 'subnet-ef66oja6', cidr: '10.0.6.0/24', zone: SIXTH },
  { subnetId: 'subnet-q7m2a9kd', cidr: '10.0.7.0/24', zone: SEVENTH },
] as const;

const running = clusterOfFile(
  () =>
    startRealCluster({
      nodes: [
        // Of eight cores: places for exclusive ENIs beside the shared ones.
        { name: 'node1', cores: 8, zone: FOURTH },
        { name: 'node2', cores: 8, zone: FOURTH },
        { name: 'node3', zone: SIXTH, joins: 'later' },
        { name: 'node4', zone: SEVENTH, joins: 'later' },
      ],
      subnets: SUBNETS,
      serviceCidr: GR_SERVICE_CIDR,
      kubeProxyFlags: GR_KUBE_PROXY,
    }),
  (cluster) => cluster.deploy(GR_DEPLOYMENT),
);

/** The Deployment of GlobalRoute Pods that lives through it all: it names no network. */
const GR = { selector: 'app=gr', options: { ...ECHO_SERVER, network: '' } } as const;

test.serial('GlobalRoute: each Node has its block, the VPC the route, and no ENI is made', async (t) => {
  const cluster = running();
  const blocks = await blocksOf(cluster);
  t.deepEqual([...blocks.values()].toSorted(), ['192.168.0.0/26', '192.168.0.64/26']);
  for (const name of ['node1', 'node2']) t.deepEqual(await whyNotOpen(cluster, name), []);
  t.deepEqual(routesOf(cluster.cloud), cluster.nodes.map(({ name, ip }) => `${blocks.get(name)} ${ip}`).toSorted());
  const asked = Object.keys(cluster.cloud.host.counts());
  t.deepEqual(
    asked.filter((action) => /NetworkInterface|PrivateIp/.test(action) && !action.startsWith('Describe')),
    [],
  );
  t.deepEqual(at(await cluster.kubectlJson('get', 'nec'), 'items'), []);
});

test.serial(
  'GlobalRoute: thirty Pods of a Deployment have addresses of their blocks, without a question',
  async (t) => {
    const cluster = running();
    const spec = { ...GR.options.spec, ...spreadOverNodes('gr') };
    await cluster.apply(deploymentManifest('gr', 30, { ...GR.options, spec }));
    const pods = await awaitPods(cluster, GR.selector, 30, { timeoutMs: 120_000 });
    await assertOfBlocks(t, pods);
    // The watch has told the agents of these Pods.
    const questions = cluster
      .auditLog()
      .filter((one) => at(one, 'verb') === 'get' && at(one, 'objectRef', 'resource') === 'pods')
      .filter((one) => String(at(one, 'user', 'username')).endsWith(':tke-eni-agent'));
    t.deepEqual(
      questions.map((one) => at(one, 'requestURI')),
      [],
    );
    await cluster.kubectl('scale', 'deployment/gr', '--replicas=4');
    await awaitPods(cluster, GR.selector, 4);
  },
);

test.serial(
  'GlobalRoute: Pods reach Pods of both nodes, nodes, hosts and the API server, and are reached',
  async (t) => {
    const cluster = running();
    const { vpc } = cluster.cloud;
    const pods = await podsOf(cluster, GR.selector);
    const others = [...cluster.nodes.map(({ ip }) => ip), vpc.outside.ip, vpc.node(CONTROL_PLANE).primary.primaryIp];
    const unreached = await Promise.all(
      pods.map(async (pod) => {
        const lost: string[] = [];
        for (const ip of [...pods.map((one) => one.ip), ...others])
          if (!(await pingFrom(cluster, pod, ip))) lost.push(`${pod.name} on ${pod.node} to ${ip}`);
        return lost;
      }),
    );
    t.deepEqual(unreached.flat(), []);
    t.deepEqual(await wrongSources(cluster, pods), []);
    const [first] = pods;
    if (first === undefined) return t.fail();
    // Plain HTTP to a TLS port: whatever the answer is, the server has made it.
    const answer = await cluster.execInPod(first.name, ['sh', '-c', 'echo GET / | nc -w 3 192.168.12.1 443']);
    t.regex(answer, /HTTPS server/);
    await forgetWays(vpc);
    t.true(await pingFrom(cluster, first, vpc.outside.ip));
    const ways = (await vpc.packetLog()).filter(({ src, dst }) => [src, dst].includes(vpc.outside.ip));
    const node = cluster.node(first.node);
    t.deepEqual(ways.map(({ via, to, src, dst }) => `${via} -> ${to}: ${src} > ${dst}`).toSorted(), [
      `${node.name}/eth0 -> outside: ${node.ip} > ${vpc.outside.ip}`,
      `outside -> ${node.name}/eth0: ${vpc.outside.ip} > ${node.ip}`,
    ]);
  },
);

test.serial(
  'VPC-CNI enabled beside it: nodes get addresses of ENIs, no packet of a GlobalRoute Pod is lost',
  async (t) => {
    const cluster = running();
    const pods = await podsOf(cluster, GR.selector);
    const stop = startPings(cluster.cloud.vpc.node(CONTROL_PLANE).netns, pods);
    await sleep(1_000);
    await editSubnets(cluster, SUBNETS.slice(0, 1));
    await awaitServing(cluster, ['node1', 'node2']);
    for (const name of ['node1', 'node2']) t.deepEqual(await whyNotOpen(cluster, name), []);
    await sleep(1_000);
    for (const { pod, sent, answered } of await stop()) {
      t.true(sent > 30, `${pod}: ${sent}`);
      t.is(answered, sent, pod);
    }
    t.deepEqual(await podsOf(cluster, GR.selector), pods);
    t.deepEqual(await restartsOf(cluster, GR.selector), [0, 0, 0, 0]);
  },
);

test.serial(
  'the Deployment that users are shown: its Pod is in the network of the nodes and sees the client',
  async (t) => {
    const cluster = running();
    const { vpc } = cluster.cloud;
    await cluster.apply(nginxDeploy());
    t.deepEqual(differencesFromShown(await cluster.kubectlJson('get', 'deployment', 'nginx-deploy')), [
      'spec.template.spec.containers.0.image: nginx is localhost/web:1',
      'spec.template.spec.containers.0.imagePullPolicy: Always is Never',
      'spec.template.spec.imagePullSecrets.0.name: qcloudregistrykey is none',
    ]);
    const [pod] = await awaitPods(cluster, 'k8s-app=nginx-deploy', 1, { timeoutMs: 120_000 });
    if (pod === undefined) return t.fail();
    t.true(isInCidr(pod.ip, SUBNETS[0].cidr), pod.ip);
    t.true(vpc.enisOf(pod.node).includes(vpc.eniOf(pod.ip) ?? 'none'));
    for (const asker of hostAskers(cluster))
      t.deepEqual(await ask(asker, pod.ip, 80), { client: asker.ip, pod: pod.name }, asker.name);
  },
);

declareChoiceTests(running, SUBNETS[0].cidr, GR.selector);

let kept: Readonly<Record<string, string>> = {};

test.serial(
  'a StatefulSet that keeps its addresses: the same after each Pod is deleted, and after a rollout',
  async (t) => {
    const cluster = running();
    const annotations = { [POD_ANNOTATION.deletePolicy]: 'Never' };
    await cluster.apply(statefulSetManifest('web', 3, { ...ECHO_SERVER, annotations }));
    const before = await awaitPods(cluster, 'app=web', 3, { timeoutMs: 120_000 });
    kept = ipsOf(before);
    t.is(new Set(Object.values(kept)).size, 3);
    for (const { ip } of before) t.true(isInCidr(ip, SUBNETS[0].cidr), ip);
    await cluster.kubectl('delete', 'pods', '-l', 'app=web', '--wait=false');
    await waitUntil(
      async () => (await podsOf(cluster, 'app=web')).every(({ uid }) => before.every((pod) => pod.uid !== uid)),
      {
        what: 'other Pods of web',
        timeoutMs: 60_000,
        everyMs: 500,
      },
    );
    t.deepEqual(ipsOf(await awaitPods(cluster, 'app=web', 3, { timeoutMs: 120_000 })), kept);
    await cluster.kubectl('rollout', 'restart', 'statefulset/web');
    await cluster.kubectl('rollout', 'status', 'statefulset/web', '--timeout=240s');
    const after = await awaitPods(cluster, 'app=web', 3);
    t.deepEqual(ipsOf(after), kept);
    t.deepEqual(await wrongSources(cluster, [...after, ...(await podsOf(cluster, GR.selector))]), []);
  },
);

declareZoneTests(running, SUBNETS, GR.selector);

test.serial('hybrid: tke-eni finds nothing to repair on any node, and shows both kinds', async (t) => {
  const cluster = running();
  for (const agent of await podsOf(cluster, 'k8s-app=tke-eni-agent', 'kube-system')) {
    const cli = (...words: readonly string[]) =>
      cluster.tryKubectl(['-n', 'kube-system', 'exec', agent.name, '--', 'tke-eni', ...words]);
    const diff = await cli('diff');
    t.is(diff.code, 0, `${agent.node}: ${diff.stdout}${diff.stderr}`);
    const status = await cli('status');
    t.is(status.code, 0, `${agent.node}: ${status.stdout}${status.stderr}`);
    t.regex(status.stdout, /default tke-bridge; podCIDR 192\.168\./, agent.node);
  }
});

test.serial('hybrid: cloud, objects and kernels agree', async (t) => {
  t.deepEqual(await auditCluster(running()), []);
  t.deepEqual(ipsOf(await podsOf(running(), 'app=web')), kept);
});

test.serial('hybrid: nothing that was asked for was refused', (t) => {
  t.deepEqual(refusedRequests(running()), []);
});

function ipsOf(pods: readonly SeenPod[]): Readonly<Record<string, string>> {
  return Object.fromEntries(pods.map(({ name, ip }) => [name, ip]).toSorted());
}

async function assertOfBlocks(t: ExecutionContext, pods: readonly SeenPod[]): Promise<void> {
  const blocks = await blocksOf(running());
  t.is(new Set(pods.map(({ ip }) => ip)).size, pods.length);
  for (const { name, ip, node } of pods)
    t.true(isInCidr(ip, blocks.get(node) ?? '') && !/\.(0|1|63|64|65|127)$/.test(ip), `${name} ${ip} on ${node}`);
}
