import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { ENI_TAG } from '../../crd/cloud-tags.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { type RunResult, tryRun } from '../../sim/support/run.ts';
import { buildExecutables } from '../../tools/build.ts';
import { DIST_BIN_DIR } from '../support/executables.ts';
import { waitUntil } from '../support/wait-until.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { CLOUD_ENDPOINT, CLUSTER_ID } from './deploy.ts';
import { blockOf } from './doc-commands.ts';
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

test.serial('tke-eni: answers in the agent’s Pod what people ask a node', async (t) => {
  const cluster = running();
  const [pod] = await podsOf(cluster, 'app=web');
  const agents = await podsOf(cluster, 'k8s-app=tke-eni-agent', 'kube-system');
  const agent = agents.find(({ node }) => node === pod?.node);
  if (pod === undefined || agent === undefined) return t.fail('no Pod, or no agent on its node');
  const ask = (...words: readonly string[]): Promise<RunResult> =>
    cluster.tryKubectl(['-n', 'kube-system', 'exec', agent.name, '--', 'tke-eni', ...words]);
  const routes = await ask('routes', '-o', 'ip');
  t.is(routes.code, 0, routes.stderr);
  t.true(routes.stdout.includes(`route add ${pod.ip}/32 `), routes.stdout);
  const told = await ask('explain', `default/${pod.name}`);
  t.is(told.code, 0, `${told.stdout}${told.stderr}`);
  t.true(told.stdout.includes(pod.ip));
  const diff = await ask('diff');
  t.is(diff.code, 0, `${diff.stdout}${diff.stderr}`);
  const status = await ask('status');
  t.is(status.code, 0, `${status.stdout}${status.stderr}`);
  t.true(status.stdout.includes(agent.node));
  const pods = await ask('pods', '-o', 'json');
  t.true(pods.stdout.includes(pod.ip), pods.stdout);
  const drawn = await ask('graph', '-o', 'svg');
  t.is(drawn.code, 0, drawn.stderr);
  t.regex(drawn.stdout, /^<\?xml [^>]*>\s*<svg [\s\S]*<\/svg>\s*$/);
  t.true(drawn.stdout.includes(pod.ip));
  // Two nodes share one machine here, and its settings: the doctor may say something of it, but it must look.
  const doctor = await ask('doctor', '-o', 'json');
  t.true(doctor.code === 0 || doctor.code === 1, `${doctor.stdout}${doctor.stderr}`);
  const { findings } = JSON.parse(doctor.stdout) as { readonly findings: readonly { readonly id: string }[] };
  const ids = findings.map(({ id }) => id);
  t.false(ids.includes('agent-dead') || ids.includes('journal-missing'), ids.join(' '));
});

test.serial('tke-eni bundle: a support archive of a node is fetched by the lines of the page', async (t) => {
  const cluster = running();
  const { code, stderr } = await runLines(cluster, sectionOf('A support archive', 'sh').replace('NODE', 'node1'));
  t.is(code, 0, stderr);
  t.notRegex(stderr, /left out|skipped/);
  const listed = await tryRun(['tar', '-tzf', join(cluster.dir, 'bundle.tar.gz')]);
  for (const part of ['agent/recorder.json', 'node/journal.json', 'graph.html'])
    t.true(listed.stdout.includes(`/${part}\n`), listed.stdout + listed.stderr);
  t.regex(listed.stdout, /logs\/\d+-\S+-agent-\d+\.log/);
});

test.serial('tke-eni cluster leaks: runs in the cluster by the lines of the page', async (t) => {
  const cluster = running();
  const [rights, now] = (OPERATIONS.split(/^## Leaks$/m)[1] ?? '').matchAll(/```sh\n([\s\S]*?)```/g);
  const granted = await runLines(cluster, rights?.[1] ?? '');
  t.is(granted.code, 0, granted.stderr);
  const agent = await cluster.kubectl(
    ...['-n', 'kube-system', 'get', 'daemonset', 'tke-eni-agent', '-o', 'jsonpath={..containers[0].image}'],
  );
  // The cloud of the test is at a place of its own.
  const place = `--region, ap-guangzhou, --endpoint, "http://${CLOUD_ENDPOINT}"`;
  await cluster.apply(
    sectionOf('Leaks', 'yaml')
      .replace('image: tke-eni-agent', `image: ${agent}`)
      .replace('--cloud]', `--cloud, ${place}]`),
  );
  const { code, stdout, stderr } = await runLines(cluster, now?.[1] ?? '');
  t.is(code, 0, stderr);
  t.regex(stdout, /no leaks, no duplicates/, stdout + stderr);
  await cluster.awaitKubectl(
    ...([
      ['-n', 'kube-system', 'wait', '--for=condition=Complete', 'job/tke-eni-leaks-now', '--timeout=5s'],
      'the Job',
    ] as const),
  );
});

test.serial('tke-eni cluster: answers outside, with the viewer’s rights, and finds what was planted', async (t) => {
  const cluster = running();
  await buildExecutables(['tke-eni']);
  const ask = await viewerOf(t, cluster);
  const nodes = await ask('nodes');
  t.is(nodes.code, 0, `${nodes.stdout}${nodes.stderr}`);
  const rows = (
    JSON.parse(nodes.stdout) as { readonly nodes: readonly { readonly node: string; readonly addresses: object }[] }
  ).nodes;
  t.deepEqual(
    rows.map(({ node }) => node),
    ['node1', 'node2'],
  );
  const pods = await podsOf(cluster, 'app=web');
  for (const { node, addresses } of rows) {
    t.like(addresses, { used: pods.filter((one) => one.node === node).length }, JSON.stringify(rows));
  }
  const enough = await ask('capacity', '--nodes', '1');
  t.is(enough.code, 0, `${enough.stdout}${enough.stderr}`);
  // The subnet has 253 addresses.
  const lacking = await ask('capacity', '--nodes', '200');
  t.is(lacking.code, 1, `${lacking.stdout}${lacking.stderr}`);
  t.regex(lacking.stdout, /IP for pods in Zone ap-guangzhou-3 is not enough to scale out 200 nodes/);
  const well = await ask('leaks', '--sample', '3', '--grace', '0');
  t.is(well.code, 0, `${well.stdout}${well.stderr}`);
  await plant(cluster);
  // A VpcIP outlives its claim: ipamd takes the planted one for an address that is kept, and makes the claim again.
  await waitUntil(async () => (await cluster.tryKubectl(['get', 'vipc', 'nobody'])).code === 0, {
    what: 'the claim of the planted VpcIP',
    timeoutMs: 60_000,
    everyMs: 500,
  });
  const found = await ask('leaks', '--sample', '3', '--grace', '0');
  t.is(found.code, 1, `${found.stdout}${found.stderr}`);
  const { findings } = JSON.parse(found.stdout) as { readonly findings: readonly { readonly id: string }[] };
  t.deepEqual(
    findings.map(({ id }) => id),
    ['eni-orphaned'],
  );
  await cluster.kubectl('delete', 'vpcip', PLANTED_IP);
});

test.serial('deploy: gives the addresses of deleted Pods back to their node', async (t) => {
  const cluster = running();
  t.is((await podLinksOf(cluster)).length, (await podsOf(cluster, 'app=web')).length);
  await cluster.kubectl('delete', 'deployment', 'web', '--wait', '--cascade=foreground', '--timeout=60s');
  t.deepEqual(await podsOf(cluster, 'app=web'), []);
  t.deepEqual(await podLinksOf(cluster), []);
});

const CHECKOUT = join(import.meta.dirname, '..', '..');
const OPERATIONS = readFileSync(join(CHECKOUT, 'docs', 'operations.md'), 'utf8');

function sectionOf(heading: string, language: string): string {
  return blockOf(OPERATIONS, language, heading);
}

/** Runs lines of a page as an administrator does, in the folder of the cluster, where `conf` is that of the checkout. */
function runLines(cluster: RealCluster, lines: string): Promise<RunResult> {
  const env = { ...childEnv(), PATH: `${cluster.assets}:${childEnv()['PATH']}`, KUBECONFIG: cluster.kubeconfig };
  const script = `set -e\n${lines.replaceAll(' conf/', ` ${CHECKOUT}/conf/`)}`;
  return tryRun(['sh', '-c', script], { env, cwd: cluster.dir, timeoutMs: 180_000 });
}

/** Host ends of Pods' links: eni and eleven digits; the ENIs are veths too, in this VPC. */
async function podLinksOf(cluster: RealCluster): Promise<readonly string[]> {
  const links = await Promise.all(cluster.nodes.map(({ ns }) => ns.ipJson('link', 'show', 'type', 'veth')));
  return links
    .flat()
    .map((link) => String(link['ifname']))
    .filter((name) => /^eni[0-9a-f]{11}$/.test(name));
}

/** In the Pods' subnet, and of nobody. */
const PLANTED_IP = '10.0.1.250';

/** A record of a Pod that never was, and an ENI with our tags that nobody asked for. */
async function plant(cluster: RealCluster): Promise<void> {
  const claimRef = { namespace: 'default', name: 'nobody', uid: 'none' };
  const vip = {
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'VpcIP',
    metadata: { name: PLANTED_IP },
    spec: { type: 'Pod', ip: PLANTED_IP, claimRef, nodeName: 'node1' },
  };
  await cluster.apply(JSON.stringify(vip));
  const { host, vpcId, podSubnetIds } = cluster.cloud;
  const Tags = [
    { Key: 'tke-clusterId', Value: CLUSTER_ID },
    { Key: 'tke-created-eni', Value: 'true' },
    { Key: ENI_TAG.uid, Value: 'of-a-node-that-is-gone' },
  ];
  const params = { VpcId: vpcId, SubnetId: podSubnetIds[0], NetworkInterfaceName: 'by-hand', Tags };
  await host.serve('vpc', 'CreateNetworkInterface', params);
}

/** Somebody on another machine: a token with the role of viewers and no more, and a way to the cloud. */
async function viewerOf(
  t: ExecutionContext,
  cluster: RealCluster,
): Promise<(...words: readonly string[]) => Promise<RunResult>> {
  await cluster.apply(
    readFileSync(new URL('../../conf/kubernetes/components/viewer/cluster-role.yaml', import.meta.url), 'utf8'),
  );
  await cluster.kubectl('create', 'serviceaccount', 'viewer');
  const binding = ['--clusterrole=tke-eni-viewer', '--serviceaccount=default:viewer'];
  await cluster.kubectl('create', 'clusterrolebinding', 'viewer', ...binding);
  const token = (await cluster.kubectl('create', 'token', 'viewer')).trim();
  const config = JSON.parse(readFileSync(cluster.kubeconfig, 'utf8')) as Record<string, unknown>;
  const path = join(cluster.dir, 'viewer.conf');
  writeFileSync(path, JSON.stringify({ ...config, users: [{ name: 'test', user: { token } }] }), { mode: 0o600 });
  const door = createServer((socket) => cluster.cloud.server.accept(socket));
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void door.close());
  const address = door.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const { secretId, secretKey } = cluster.cloud.key;
  const env = [`TENCENTCLOUD_SECRET_ID=${secretId}`, `TENCENTCLOUD_SECRET_KEY=${secretKey}`];
  const cloud = ['--cloud', '--region', 'ap-guangzhou', '--endpoint', `http://127.0.0.1:${port}`];
  const cli = ['env', ...env, join(DIST_BIN_DIR, 'tke-eni'), 'cluster', '--kubeconfig', path, '-o', 'json'];
  return (...words) => tryRun([...cli, ...words, ...(words.includes('leaks') ? cloud : [])], { timeoutMs: 60_000 });
}
