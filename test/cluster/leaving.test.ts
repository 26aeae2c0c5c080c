import { spawnSync } from 'node:child_process';
import test, { type ExecutionContext } from 'ava';
import { EXTENDED_RESOURCES, INGRESS_FINALIZER, SERVICE_FINALIZER } from '../../crd/names.ts';
import { balancedIn, lastResort, perNamespace, STEPS } from '../docs/page-uninstall.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitServing, loadImages, tellOurPods } from './deploy.ts';
import { blockOf, shellCommandsOf } from './doc-commands.ts';
import { type NodeSnapshot, snapshotNode } from './node-snapshot.ts';
import { COMMAND_MS, HELM, OVERLAY, PageUser, readPage } from './page-user.ts';
import { awaitPods, podsOf, spreadOverNodes } from './pods.ts';
import { type RealCluster, startRealCluster } from './real-cluster.ts';
import { BUSYBOX_IMAGE } from './small-images.ts';
import { POD_KINDS, type PodKind, workloadName, workloadOfKind } from './workloads/kinds.ts';

// Installed, left and installed again by the commands of docs/install.md and docs/uninstall.md themselves: taken out of the
// pages, their placeholders filled in. Afterwards the nodes are compared with what they were before.

const INSTALL = readPage('install.md');
const LEAVE = readPage('uninstall.md');
const hasHelm = spawnSync(HELM, ['version', '--short']).status === 0;

/** Pods of each kind. */
const REPLICAS = 2;
/** Kinds of Pods that leave something behind. */
const KEEPING: readonly PodKind[] = ['static', 'eip', 'static-exclusive'];

const before = new Map<string, NodeSnapshot>();
let user: PageUser | undefined;

/** A finalizer of nobody, which has to outlive ours. */
const OTHER_FINALIZER = 'example.com/first';
/** What has a load balancer, by its finalizer; no cloud controller manager runs here, and the test stands for it. */
const BALANCED = [
  {
    object: 'service/balanced',
    finalizer: SERVICE_FINALIZER,
    manifest: { apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 }] } },
  },
  {
    object: 'ingress/balanced',
    finalizer: INGRESS_FINALIZER,
    manifest: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      spec: { defaultBackend: { service: { name: 'balanced', port: { number: 80 } } } },
    },
  },
];
/** The same as the page has it listed. */
let balanced: ReturnType<typeof balancedIn> = [];

const running = clusterOfFile(
  // Of eight cores: places for exclusive ENIs beside the shared ones.
  () => startRealCluster({ nodes: ['node1', 'node2'].map((name) => ({ name, cores: 8 })) }),
  async (cluster) => {
    for (const node of cluster.nodes) before.set(node.name, await snapshotNode(node));
    user = new PageUser(cluster);
    // `make image` and `ctr images import`.
    await loadImages(cluster.nodes, ['webhook']);
  },
);

test.serial('docs/install.md: the commands for kustomize bring a cluster up', async (t) => {
  t.timeout(COMMAND_MS * 2);
  const cluster = running();
  for (const line of commandsUnder(INSTALL, 'With kustomize')) {
    if (line.startsWith('make ')) continue;
    await sh(line);
    if (line.startsWith('cp ')) user?.fillOverlay();
  }
  await awaitServing(cluster);
  await seeThatItWorks(t);
});

test.serial('docs/uninstall.md: the commands leave nothing in the cloud, in the cluster, on a node', async (t) => {
  t.timeout(COMMAND_MS * 4);
  const cluster = running();
  for (const kind of POD_KINDS)
    await cluster.apply(workloadOfKind(kind, kind, REPLICAS, { spec: spreadOverNodes(kind) }));
  for (const kind of POD_KINDS) await awaitPods(cluster, `app=${kind}`, REPLICAS, { timeoutMs: 120_000 });
  await retainOne(cluster);
  for (const { manifest, finalizer } of BALANCED) {
    const metadata = { name: 'balanced', namespace: 'default', finalizers: [OTHER_FINALIZER, finalizer] };
    await cluster.apply(JSON.stringify({ ...manifest, metadata }));
  }
  t.true(cluster.nodes.some(({ name }) => cluster.cloud.vpc.enisOf(name).length > 0));
  t.is(cluster.cloud.host.model.state.eips.size, REPLICAS);
  await sh('cp -r conf/kubernetes/uninstall cleaning');
  let lists = 0;
  for (const { heading, line } of STEPS) {
    await leave(heading, line);
    if (line.startsWith('kubectl get services,ingresses'))
      t.is(balanced.length, lists++ === 0 ? BALANCED.length : 0, 'with a load balancer');
    // What an unlucky node does in the midst of it: nobody of ipamd is left, and every node is cordoned.
    if (line.startsWith('kubectl drain')) await loseIpamd(cluster);
  }
  t.is(lists, 2);

  const { state } = cluster.cloud.host.model;
  t.deepEqual(
    [...state.enis.values()].filter((eni) => !eni.isPrimary),
    [],
  );
  t.deepEqual([...state.eips.values()], []);
  for (const node of cluster.nodes) t.deepEqual(await snapshotNode(node), before.get(node.name), node.name);
  t.deepEqual(await ourObjects(), []);
  for (const { name } of cluster.nodes) {
    const node = await cluster.kubectlJson('get', 'node', name);
    for (const resource of EXTENDED_RESOURCES)
      t.is(Number(at(node, 'status', 'allocatable', resource) ?? 0), 0, `${name}: ${resource}`);
    t.notRegex(JSON.stringify([at(node, 'metadata'), at(node, 'spec')]), /tke\.cloud\.tencent\.com/, name);
  }
});

test.serial(`install again: ${hasHelm ? 'with Helm' : 'with kustomize, for there is no HELM'}`, async (t) => {
  t.timeout(COMMAND_MS * 2);
  const cluster = running();
  if (!hasHelm) t.log('skipped: With Helm. HELM names no helm executable');
  for (const kind of POD_KINDS) await cluster.kubectl('delete', workloadName(kind, kind), '--ignore-not-found');
  for (const line of commandsUnder(INSTALL, 'With kustomize'))
    if (line.includes('create secret') || (!hasHelm && line.startsWith('kubectl apply'))) await sh(line);
  const withHelm = hasHelm ? commandsUnder(INSTALL, 'With Helm').filter((line) => !line.startsWith('make ')) : [];
  for (const line of withHelm) await sh(line + (user?.helmSettings() ?? ''));
  await awaitServing(cluster);
  await seeThatItWorks(t);
  const [, uninstall] = /`(helm uninstall [^`]*)`/.exec(LEAVE) ?? [];
  if (uninstall === undefined) return t.fail('docs/uninstall.md names no command of Helm');
  if (!hasHelm) return;
  await sh(uninstall);
  await cluster.kubectl('-n', 'kube-system', 'wait', '--for=delete', 'pod', '-l', 'k8s-app', '--timeout=50s');
  const left = await ourObjects();
  const isKept = (name: string): boolean => /^customresourcedefinition|-credentials$|-leader$|-subnets$/.test(name);
  t.deepEqual(
    left.filter((name) => !isKept(name)),
    [],
  );
});

/** Ends one Pod of each workload that keeps something: it is kept for the next of its name, which does not come. */
async function retainOne(cluster: RealCluster): Promise<void> {
  for (const kind of KEEPING) await cluster.kubectl('scale', workloadName(kind, kind), `--replicas=${REPLICAS - 1}`);
  const claims = async () => cluster.kubectl('get', 'vipc,eipc', '-o', 'jsonpath={.items[*].status.phase}');
  await waitUntil(
    async () => (await claims()).split(' ').filter((phase) => phase === 'Retained').length >= KEEPING.length,
    {
      what: 'something that is kept without a Pod',
      timeoutMs: 60_000,
      everyMs: 500,
    },
  );
}

async function loseIpamd(cluster: RealCluster): Promise<void> {
  await cluster.kubectl('-n', 'kube-system', 'delete', 'pod', '-l', 'k8s-app=tke-eni-ipamd', '--wait=true');
}

/** Objects of the cluster with a name of ours. */
async function ourObjects(): Promise<readonly string[]> {
  const kinds =
    'crd,clusterrole,clusterrolebinding,sa,cm,secret,ds,deploy,pod,svc,pdb,role,rolebinding,lease,validatingadmissionpolicy';
  const names = await running().kubectl('get', kinds, '-A', '-o', 'name');
  return names.split('\n').filter((name) => name.includes('tke'));
}

/** The table "See that it works", and the Pod below it. */
async function seeThatItWorks(t: ExecutionContext): Promise<void> {
  const cluster = running();
  await sh('kubectl -n kube-system wait --for=condition=Ready pods -l app.kubernetes.io/name=tke-eni --timeout=100s');
  const manifest = blockOf(INSTALL, 'yaml', 'See that it works').replace('image: busybox', `image: ${BUSYBOX_IMAGE}`);
  await cluster.apply(manifest);
  const pod = await waitUntil(
    async () => (await podsOf(cluster, '')).find(({ name, isReady }) => name === 'try' && isReady),
    { what: 'the Pod of the page', timeoutMs: 60_000, everyMs: 300, explain: () => cluster.logs() },
  );
  t.true(cluster.cloud.vpc.enisOf(pod.node).includes(cluster.cloud.vpc.eniOf(pod.ip) ?? ''), `${pod.ip} of the VPC`);
  await cluster.kubectl('delete', 'pod', 'try');
}

/** Carries one command of docs/uninstall.md out. */
async function leave(heading: string, line: string): Promise<void> {
  const cluster = running();
  // No certificate and no shared load balancer is here: test/docs/leaving.test.ts has all of them.
  if (line.startsWith('sleep ')) return;
  if (line.includes('SERVICE-OR-INGRESS...')) {
    for (const command of perNamespace(line, balanced)) await Promise.all([sh(command), giveUpBalanced()]);
    return;
  }
  const names = cluster.nodes.map(({ name }) => name);
  const filled = line
    .replace('NODE...', names.join(' '))
    .replace('OWNER...', KEEPING.map((kind) => workloadName(kind, kind)).join(' '))
    .replace('NAMESPACE', 'default')
    .replace('YOUR-OVERLAY', OVERLAY)
    .replace('COPY', 'cleaning');
  const perNode = /\bNODE\b/.test(filled) ? names.map((name) => filled.replaceAll(/\bNODE\b/g, name)) : [filled];
  for (const command of perNode) {
    const answer = await sh(command).catch(async (error: Error) => {
      throw new Error(`${heading}: ${error.message}\n${await tellOurPods(cluster)}`);
    });
    if (command.startsWith('kubectl get services,ingresses')) balanced = balancedIn(answer);
    if (command.startsWith('kubectl get nec,') && answer.trim() !== '') throw new Error(`left: ${answer}`);
    if (!command.startsWith('kubectl get pods')) continue;
    const foreign = answer.split('\n').filter((row) => / default /.test(` ${row}`) && !/Completed/.test(row));
    if (foreign.length > 0) throw new Error(`left on the node: ${foreign.join('; ')}`);
  }
}

/** Takes our finalizer off what is being deleted, by the commands of the last resort, and then the other one. @throws Error */
async function giveUpBalanced(): Promise<void> {
  const cluster = running();
  const finalizersOf = async (object: string): Promise<readonly unknown[]> => {
    const found = at(await cluster.kubectlJson('get', object), 'metadata', 'finalizers');
    return Array.isArray(found) ? found : [];
  };
  for (const { object, finalizer } of BALANCED) {
    const isDeleted = async (): Promise<boolean> =>
      at(await cluster.kubectlJson('get', object), 'metadata', 'deletionTimestamp') !== undefined;
    await waitUntil(isDeleted, { what: `the deletion of ${object}`, timeoutMs: 60_000, everyMs: 300 });
    const { list, patch } = lastResort(object, finalizer);
    const shown: unknown = JSON.parse(await sh(list.line));
    if (!Array.isArray(shown)) throw new Error(`${list.line}: ${JSON.stringify(shown)}`);
    const wrong = await sh(patch(shown.indexOf(OTHER_FINALIZER)).line).catch(() => undefined);
    if (wrong !== undefined) throw new Error(`${object}: a wrong index was taken: ${wrong}`);
    await sh(patch(shown.indexOf(finalizer)).line);
    const left = JSON.stringify(await finalizersOf(object));
    if (left !== JSON.stringify([OTHER_FINALIZER])) throw new Error(`${object}: has the finalizers ${left}`);
    await cluster.kubectl('patch', object, '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
  }
}

function commandsUnder(page: string, heading: string): readonly string[] {
  const lines = shellCommandsOf(page).flatMap((block) => (block.heading === heading ? block.lines : []));
  if (lines.length === 0) throw new Error(`no commands under ${heading}`);
  return lines;
}

/** Runs a line of a page. @throws RunError */
async function sh(line: string): Promise<string> {
  if (user === undefined) throw new Error('the cluster did not start');
  return user.sh(line);
}
