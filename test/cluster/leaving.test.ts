import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { at } from '../kube-api/contract/contract-case.ts';
import { childEnv } from '../support/child-env.ts';
import { run } from '../support/run.ts';
import { waitUntil } from '../support/wait-until.ts';
import type { ClusterNode } from './cluster-node.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitServing, CLOUD_ENDPOINT, CLUSTER_ID, ENI_IP_RESOURCE, loadImages, tellOurPods } from './deploy.ts';
import { blockOf, shellCommandsOf } from './doc-commands.ts';
import { awaitPods, deploymentManifest, podsOf, spreadOverNodes } from './pods.ts';
import { type RealCluster, startRealCluster } from './real-cluster.ts';
import { BUSYBOX_IMAGE } from './small-images.ts';

// Installed, left and installed again by the commands of docs/install.md and docs/uninstall.md themselves: taken out of the
// pages, their placeholders filled in. Afterwards the nodes are compared with what they were before.

const ROOT = join(import.meta.dirname, '../..');
const INSTALL = readFileSync(join(ROOT, 'docs/install.md'), 'utf8');
const LEAVE = readFileSync(join(ROOT, 'docs/uninstall.md'), 'utf8');
const STEP_MS = 240_000;
const OVERLAY = 'conf/kubernetes/overlays/mine';
const HELM = process.env['HELM'] ?? 'helm';
const hasHelm = spawnSync(HELM, ['version', '--short']).status === 0;

const before = new Map<string, NodeSnapshot>();

const running = clusterOfFile(
  () => startRealCluster(),
  async (cluster) => {
    for (const node of cluster.nodes) before.set(node.name, await snapshot(node));
    // The pages copy and change files of the repository.
    cpSync(join(ROOT, 'conf'), join(placeOf(cluster), 'conf'), { recursive: true });
    // `make image` and `ctr images import`.
    await loadImages(cluster.nodes);
  },
);

test.serial('docs/install.md: the commands for kustomize bring a cluster up', async (t) => {
  t.timeout(STEP_MS * 2);
  const cluster = running();
  for (const line of commandsUnder(INSTALL, 'With kustomize')) {
    if (line === 'make image') continue;
    await sh(line);
    if (line.startsWith('cp ')) fillOverlay(cluster);
  }
  await awaitServing(cluster);
  await seeThatItWorks(t);
});

test.serial('docs/uninstall.md: the commands leave nothing in the cloud, in the cluster, on a node', async (t) => {
  t.timeout(STEP_MS * 4);
  const cluster = running();
  await cluster.apply(deploymentManifest('web', 4, { spec: spreadOverNodes('web') }));
  await awaitPods(cluster, 'app=web', 4);
  t.true(cluster.nodes.some(({ name }) => cluster.cloud.vpc.enisOf(name).length > 0));
  cpSync(join(ROOT, 'conf/kubernetes/uninstall'), join(placeOf(cluster), 'cleaning'), { recursive: true });
  for (const { heading, lines } of shellCommandsOf(LEAVE)) for (const line of lines) await leave(heading, line);

  t.deepEqual(
    [...cluster.cloud.host.model.state.enis.values()].filter((eni) => !eni.isPrimary),
    [],
  );
  for (const node of cluster.nodes) t.deepEqual(await snapshot(node), before.get(node.name), node.name);
  t.deepEqual(await ourObjects(), []);
  for (const { name } of cluster.nodes) {
    const node = await cluster.kubectlJson('get', 'node', name);
    t.true(Number(at(node, 'status', 'allocatable', ENI_IP_RESOURCE) ?? 0) === 0, name);
    t.notRegex(JSON.stringify([at(node, 'metadata'), at(node, 'spec')]), /tke\.cloud\.tencent\.com/, name);
  }
});

test.serial(`install again: ${hasHelm ? 'with Helm' : 'with kustomize, for there is no HELM'}`, async (t) => {
  t.timeout(STEP_MS * 2);
  const cluster = running();
  if (!hasHelm) t.log('skipped: With Helm. HELM names no helm executable');
  await cluster.kubectl('delete', 'deployment/web', '--ignore-not-found');
  for (const line of commandsUnder(INSTALL, 'With kustomize'))
    if (line.includes('create secret') || (!hasHelm && line.startsWith('kubectl apply'))) await sh(line);
  if (hasHelm) for (const line of commandsUnder(INSTALL, 'With Helm')) await sh(line + helmSettings(cluster));
  await awaitServing(cluster);
  await seeThatItWorks(t);
  const [, uninstall] = /`(helm uninstall [^`]*)`/.exec(LEAVE) ?? [];
  if (uninstall === undefined) return t.fail('docs/uninstall.md names no command of Helm');
  if (!hasHelm) return;
  await sh(uninstall);
  await cluster.kubectl('-n', 'kube-system', 'wait', '--for=delete', 'pod', '-l', 'k8s-app', '--timeout=50s');
  const left = await ourObjects();
  const isKept = (name: string): boolean => /^customresourcedefinition|-credentials$|-leader$/.test(name);
  t.deepEqual(
    left.filter((name) => !isKept(name)),
    [],
  );
});

/** What of a node is ours to change. */
type NodeSnapshot = Readonly<Record<string, readonly string[]>>;

/** Files of kubelet's own, and tables that kube-proxy and kubelet make when they come to it. */
const OF_OTHERS = /kubelet_internal_checkpoint|kubelet\.sock$|^table ip6? (nat|filter|mangle|raw|kube-proxy)$/;

async function snapshot(node: ClusterNode): Promise<NodeSnapshot> {
  const lines = async (script: string): Promise<readonly string[]> =>
    (await node.exec(['sh', '-c', script]))
      .split('\n')
      .filter((line) => line !== '' && !OF_OTHERS.test(line))
      .sort();
  const objects = async (...args: readonly string[]): Promise<readonly string[]> =>
    (await node.ns.ipJson(...args)).map((object) => JSON.stringify(object)).sort();
  return {
    links: (await node.ns.ipJson('link')).map((link) => String(link['ifname'])).sort(),
    addresses: await lines("ip -o addr | awk '{print $2, $3, $4}'"),
    rules4: await objects('-4', 'rule'),
    rules6: await objects('-6', 'rule'),
    routes4: await objects('-4', 'route', 'show', 'table', 'all'),
    routes6: await lines("ip -6 route show table all | sed 's/ expires [^ ]*//'"),
    tables: await lines('nft list tables'),
    files: await lines(
      'for dir in /etc/cni/net.d /opt/cni/bin /var/lib/kubelet/device-plugins /run/tke-eni; do ls -A $dir 2>/dev/null; done; ls -d /run/tke* 2>/dev/null; true',
    ),
    settings: await lines('cd /proc/sys/net; grep . ipv4/conf/*/rp_filter ipv6/conf/*/disable_ipv6'),
  };
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
  const names = cluster.nodes.map(({ name }) => name);
  if (line === 'kubectl get nec -w') return awaitNoNecs(cluster);
  const filled = line.replace('NODE...', names.join(' ')).replace('YOUR-OVERLAY', OVERLAY).replace('COPY', 'cleaning');
  const perNode = /\bNODE\b/.test(filled) ? names.map((name) => filled.replaceAll(/\bNODE\b/g, name)) : [filled];
  for (const command of perNode) {
    const answer = await sh(command).catch(async (error: Error) => {
      throw new Error(`${heading}: ${error.message}\n${await tellOurPods(cluster)}`);
    });
    if (!command.startsWith('kubectl get pods')) continue;
    const foreign = answer.split('\n').filter((row) => / default /.test(` ${row}`) && !/Completed/.test(row));
    if (foreign.length > 0) throw new Error(`left on the node: ${foreign.join('; ')}`);
  }
}

async function awaitNoNecs(cluster: RealCluster): Promise<void> {
  let last = '';
  await waitUntil(
    async () => {
      last = await cluster.kubectl('get', 'nec');
      return last.trim() === '';
    },
    { what: 'no NodeENIConfigs', timeoutMs: STEP_MS, everyMs: 500, explain: () => last },
  ).catch(async (error: Error) => {
    throw new Error(`${error.message}\n${await tellOurPods(cluster)}`);
  });
}

function commandsUnder(page: string, heading: string): readonly string[] {
  const lines = shellCommandsOf(page).flatMap((block) => (block.heading === heading ? block.lines : []));
  if (lines.length === 0) throw new Error(`no commands under ${heading}`);
  return lines;
}

/** Where the commands are run: a copy of the repository, as far as they need one. */
function placeOf({ dir }: RealCluster): string {
  const place = join(dir, 'user');
  mkdirSync(place, { recursive: true });
  return place;
}

/** Runs a line of a page as a person at the administrator's machine does. @throws RunError */
async function sh(line: string): Promise<string> {
  const { cloud, assets, kubeconfig } = running();
  const { secretId, secretKey } = cloud.key;
  const filled = line
    .replace('secretId=ID', `secretId=${secretId}`)
    .replace('secretKey=KEY', `secretKey=${secretKey}`)
    .replace('cls-a1b2c3d4', CLUSTER_ID)
    .replace('subnet-a1b2c3d4,subnet-e5f6a7b8', cloud.podSubnetIds.join(','))
    // Images were imported by their names alone.
    .replace('--set image.registry=registry.example.com/tke-eni', '');
  const env = childEnv();
  const place = placeOf(running());
  return run(['sh', '-ec', filled], {
    cwd: place,
    env: { ...env, HOME: place, KUBECONFIG: kubeconfig, PATH: `${assets}:${dirname(HELM)}:${env['PATH']}` },
    timeoutMs: STEP_MS,
  });
}

/** What is marked REPLACE, and what a test cloud needs. */
function fillOverlay(cluster: RealCluster): void {
  const path = join(placeOf(cluster), OVERLAY, 'kustomization.yaml');
  const { cloud } = cluster;
  const filled = readFileSync(path, 'utf8')
    .replaceAll(/newName: registry\.example\.com\/tke-eni\//g, 'newName: ')
    .replace('TKE_ENI_CLUSTERID=cls-a1b2c3d4', `TKE_ENI_CLUSTERID=${CLUSTER_ID}`)
    .replace(
      'TKE_ENI_ENDPOINT=*.internal.tencentcloudapi.com',
      `TKE_ENI_ENDPOINT=${CLOUD_ENDPOINT}\n      - TKE_ENI_PROTOCOL=http`,
    )
    .replace('SUBNET_ID: subnet-a1b2c3d4:subnet-e5f6a7b8', `SUBNET_ID: ${cloud.podSubnetIds.join(':')}`)
    .replace('VPC_ID: vpc-a1b2c3d4', `VPC_ID: ${cloud.vpcId}`)
    // Two minutes that nobody has to wait for here.
    .replace(
      '\npatches:',
      '\n  - name: tke-eni-agent-settings\n    namespace: kube-system\n    behavior: merge\n    literals: [TKE_ENI_IP_COOLDOWN=2s]\npatches:',
    );
  writeFileSync(path, filled);
}

/** What a test cloud needs. */
function helmSettings({ cloud }: RealCluster): string {
  return ` --set endpoint=${CLOUD_ENDPOINT} --set ipamd.settings.protocol=http --set vpcId=${cloud.vpcId}`;
}
