import test from 'ava';
import type { JsonObject } from '../../sim/support/netns.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitPods, pingFrom, podManifest, podsOf, type SeenPod } from './pods.ts';
import { type RealCluster, startRealCluster } from './real-cluster.ts';
import { deploymentOfDocs, LABEL_OF_DOCS } from './workloads/deployment-of-docs.ts';
import { ask, ECHO_PORT, ECHO_SERVER, isSilent, netnsAsker, podAsker } from './workloads/echo.ts';
import { ECHO_PATH } from './workloads/echo-script.ts';
import { awaitEvent } from './workloads/events.ts';
import { forgetWays, refusals, waysOf } from './workloads/ways.ts';

const running = clusterOfFile(
  () => startRealCluster(),
  async (cluster) => {
    await cluster.deploy();
  },
);

/** More than an ENI of these nodes has addresses for, on each of the two. */
const REPLICAS = 22;

test.serial(
  'the Deployment of the documents: its Pods have addresses of the VPC, on more than one ENI of a node',
  async (t) => {
    const cluster = running();
    const { vpc } = cluster.cloud;
    await cluster.apply(deploymentOfDocs(REPLICAS));
    const pods = await awaitPods(cluster, LABEL_OF_DOCS, REPLICAS, { timeoutMs: 180_000 });
    t.is(new Set(pods.map(({ ip }) => ip)).size, REPLICAS);
    for (const { name, ip, node } of pods)
      t.true(vpc.enisOf(node).includes(vpc.eniOf(ip) ?? 'none'), `${name} ${ip} on ${node}: on ${vpc.eniOf(ip)}`);
    t.true(new Set(pods.map(({ ip }) => vpc.eniOf(ip))).size >= 4);
  },
);

test.serial(
  'a Pod: reaches Pods of every ENI of both nodes, the nodes, and what is beyond the VPC by its own ENI',
  async (t) => {
    const cluster = running();
    const { vpc } = cluster.cloud;
    const samples = await onePodOfEachEni(cluster);
    const nodeIps = cluster.nodes.map(({ ip }) => ip);
    for (const from of samples) {
      for (const ip of [...samples.map((pod) => pod.ip), ...nodeIps, vpc.outside.ip])
        t.true(await pingFrom(cluster, from, ip), `${from.name} on ${from.node} (${vpc.eniOf(from.ip)}) to ${ip}`);
    }
    const [first] = samples;
    if (first === undefined) return t.fail('no Pods');
    await forgetWays(vpc);
    t.true(await pingFrom(cluster, first, vpc.outside.ip));
    const passed = (await vpc.packetLog()).filter(({ src, dst }) => [src, dst].includes(vpc.outside.ip));
    const eni = vpc.eniOf(first.ip) ?? 'none';
    t.deepEqual(passed.map(({ via, to, src, dst }) => `${via} -> ${to}: ${src} > ${dst}`).sort(), [
      `${eni} -> outside: ${first.ip} > ${vpc.outside.ip}`,
      `outside -> ${eni}: ${vpc.outside.ip} > ${first.ip}`,
    ]);
    t.deepEqual(await refusals(vpc), []);
  },
);

test.serial('a node, and a host beyond the VPC: reach Pods, which see who asks', async (t) => {
  const cluster = running();
  const { outside } = cluster.cloud.vpc;
  const askers = [
    ...cluster.nodes.map(({ name, ns, ip }) => ({ ...netnsAsker(name, ns), ip })),
    { ...netnsAsker('outside', outside.netns), ip: outside.ip },
  ];
  for (const pod of await onePodOfEachEni(cluster))
    for (const asker of askers)
      t.deepEqual(
        await ask(asker, pod.ip, ECHO_PORT),
        { client: asker.ip, pod: pod.name },
        `${asker.name} to ${pod.ip}`,
      );
});

test.serial('NodePort, policy Local: Pods on every ENI of a node answer, all by the primary NIC', async (t) => {
  const cluster = running();
  const { vpc } = cluster.cloud;
  const port = { port: 80, targetPort: ECHO_PORT, nodePort: 30_080 };
  const selector = { 'k8s-app': 'nginx-deploy' };
  const spec = { type: 'NodePort', externalTrafficPolicy: 'Local', selector, ports: [port] };
  await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'docs' }, spec }));
  const outside = netnsAsker('outside', vpc.outside.netns);
  const pods = (await podsOf(cluster, LABEL_OF_DOCS)).filter(({ node }) => node === 'node1');
  const [node] = cluster.nodes;
  if (node === undefined) return t.fail('no node');
  await waitUntil(async () => !(await isSilent(outside, node.ip, port.nodePort)), {
    what: 'kube-proxy with the Service',
    timeoutMs: 30_000,
    everyMs: 200,
    explain: () => node.logs(),
  });
  await forgetWays(vpc);
  const silent = new Set(vpc.enisOf(node.name));
  // kube-proxy throws dice.
  for (let asked = 0; asked < 200 && silent.size > 0; asked++) {
    const answer = await ask(outside, node.ip, port.nodePort, 1);
    t.is(answer?.client, vpc.outside.ip);
    silent.delete(vpc.eniOf(pods.find(({ name }) => name === answer?.pod)?.ip ?? '') ?? '');
  }
  t.deepEqual([...silent], []);
  t.deepEqual(await waysOf(vpc, [vpc.outside.ip]), [
    `node1/eth0 -> outside: ${node.ip} > ${vpc.outside.ip}`,
    `outside -> node1/eth0: ${vpc.outside.ip} > ${node.ip}`,
  ]);
  t.deepEqual(await refusals(vpc), []);
});

test.serial('a Pod: reaches the API server by the Service kubernetes, and is known by its token', async (t) => {
  const cluster = running();
  const [pod] = await podsOf(cluster, LABEL_OF_DOCS);
  if (pod === undefined) return t.fail('no Pod');
  // A static busybox has no certificates to check; who answers is told by the answer.
  const answer = await cluster.execInPod(pod.name, [
    'sh',
    '-c',
    'cd /var/run/secrets/kubernetes.io/serviceaccount && wget --no-check-certificate -qO- ' +
      '--header "Authorization: Bearer $(cat token)" https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/version',
  ]);
  t.regex(answer, /"gitVersion": "v1\./);
  await cluster.kubectl('delete', 'deployment', 'nginx-deploy', '--wait=false');
});

test.serial(
  'kubelet: its probes reach Pods: http, tcp and exec pass where they should and fail where they should',
  async (t) => {
    const cluster = running();
    await cluster.apply(
      [
        probed('well', {
          startupProbe: { exec: { command: ['sh', '-c', 'exit 0'] }, ...EACH_SECOND },
          livenessProbe: { tcpSocket: { port: ECHO_PORT }, ...EACH_SECOND },
          readinessProbe: { httpGet: { path: ECHO_PATH, port: ECHO_PORT }, ...EACH_SECOND },
        }),
        probed('bad-http', { readinessProbe: { httpGet: { path: '/nothing', port: ECHO_PORT }, ...EACH_SECOND } }),
        probed('bad-tcp', { readinessProbe: { tcpSocket: { port: 81 }, ...EACH_SECOND } }),
        probed('bad-exec', { readinessProbe: { exec: { command: ['sh', '-c', 'echo no; exit 1'] }, ...EACH_SECOND } }),
        probed('bad-life', { livenessProbe: { tcpSocket: { port: 81 }, ...EACH_SECOND, failureThreshold: 1 } }),
      ].join('\n---\n'),
    );
    await awaitEvent(cluster, 'bad-http', /^Readiness probe failed: HTTP probe failed with statuscode: 404$/);
    await awaitEvent(
      cluster,
      'bad-tcp',
      /^Readiness probe failed: dial tcp 10\.0\.1\.\d+:81: connect: connection refused$/,
    );
    await awaitEvent(cluster, 'bad-exec', /^Readiness probe failed: no$/);
    await awaitEvent(cluster, 'bad-life', /^Liveness probe failed: dial tcp .*:81: connect: connection refused$/);
    const [well] = await awaitPods(cluster, 'app=well', 1);
    t.is(well?.phase, 'Running');
    const others = (await podsOf(cluster, 'app in (bad-http,bad-tcp,bad-exec)')).map(({ phase, isReady }) => ({
      phase,
      isReady,
    }));
    t.deepEqual(others, Array(3).fill({ phase: 'Running', isReady: false }));
    const restarts = async (name: string) =>
      Number(at(await cluster.kubectlJson('get', 'pod', name), 'status', 'containerStatuses', '0', 'restartCount'));
    await waitUntil(async () => (await restarts('bad-life')) > 0, {
      what: 'the restart of a container whose liveness probe fails',
      timeoutMs: 60_000,
      everyMs: 500,
      explain: () => cluster.logs(),
    });
    t.is(await restarts('well'), 0);
    await cluster.kubectl('delete', 'pods', 'well', 'bad-http', 'bad-tcp', 'bad-exec', 'bad-life', '--wait=false');
  },
);

const HOST_PORT = 18_080;

test.serial('hostPort: answered by the node with the address of the client kept, and gone with the Pod', async (t) => {
  const cluster = running();
  const { vpc } = cluster.cloud;
  const ports = [{ containerPort: ECHO_PORT, hostPort: HOST_PORT }];
  const spec = { ...ECHO_SERVER.spec, nodeName: 'node1' };
  await cluster.apply(podManifest('hosted', { ...ECHO_SERVER, container: { ports }, spec }));
  await cluster.apply(podManifest('asking', { ...ECHO_SERVER, spec: { ...ECHO_SERVER.spec, nodeName: 'node2' } }));
  const [hosted] = await awaitPods(cluster, 'app=hosted', 1);
  const [asking] = await awaitPods(cluster, 'app=asking', 1);
  if (hosted === undefined || asking === undefined) return t.fail('no Pods');
  const [node, other] = [cluster.node('node1'), cluster.node('node2')];
  const outside = netnsAsker('outside', vpc.outside.netns);
  const from = async (asker: typeof outside) => ask(asker, node.ip, HOST_PORT);
  await forgetWays(vpc);
  t.deepEqual(await from(outside), { client: vpc.outside.ip, pod: 'hosted' });
  t.deepEqual(await waysOf(vpc, [vpc.outside.ip]), [
    `node1/eth0 -> outside: ${node.ip} > ${vpc.outside.ip}`,
    `outside -> node1/eth0: ${vpc.outside.ip} > ${node.ip}`,
  ]);
  t.deepEqual(await from(netnsAsker('node2', other.ns)), { client: other.ip, pod: 'hosted' });
  t.deepEqual(await from(podAsker(cluster, asking)), { client: asking.ip, pod: 'hosted' });
  t.is((await from(netnsAsker('node1', node.ns)))?.pod, 'hosted', 'the node itself');
  await cluster.kubectl('delete', 'pod', 'hosted', '--timeout=60s');
  // The kubelet reports the end when the sandbox is down; kubectl has waited for that.
  t.true(await isSilent(outside, node.ip, HOST_PORT));
  t.notRegex(await node.exec(['iptables-save', '-t', 'nat']), new RegExp(`${HOST_PORT}|${hosted.ip}\\b`));
});

test.serial('audit: cloud, objects and kernels agree after all of it', async (t) => {
  t.deepEqual(await auditCluster(running()), []);
});

const EACH_SECOND = { periodSeconds: 1, timeoutSeconds: 5 };

/** The echo server with probes; spread by the scheduler. */
function probed(name: string, probes: JsonObject): string {
  return podManifest(name, { ...ECHO_SERVER, container: probes });
}

async function onePodOfEachEni(cluster: RealCluster): Promise<readonly SeenPod[]> {
  const byEni = Map.groupBy(await podsOf(cluster, LABEL_OF_DOCS), ({ ip }) => cluster.cloud.vpc.eniOf(ip));
  return [...byEni.values()].flatMap(([first]) => first ?? []);
}
