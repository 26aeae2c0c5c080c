// The commands about the whole cluster, on two nodes with ipamd; their views are tried without nodes in test/cli/commands/cluster.
import { readFileSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { parse } from 'yaml';
import { ENI_TAG } from '../../crd/cloud-tags.ts';
import { SUBNETS_CONFIG_MAP } from '../../crd/subnet-supply.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { VPC_IPS } from '../../kube/resource-types.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { buildExecutables } from '../../tools/build.ts';
import { createTempDir, type TempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openDoor } from '../system/door.ts';
import { assignedIps, countAssigned, createSystem, type System } from '../system/system.ts';
import type { SystemPod } from '../system/system-node.ts';
import { POD_SUBNET, ZONE } from '../system/vpc-cloud.ts';
import { askCli, type CliPlace, listOf, runCli } from './support/run-cli.ts';

// A whole system of two nodes, and somebody outside of it: a namespace with nothing but a way to the servers.

const KUBE_PORT = 6443;
const CLOUD_PORT = 8443;
const CLOUD = ['--cloud', '--region', 'ap-guangzhou', '--endpoint', `http://127.0.0.1:${CLOUD_PORT}`] as const;
/** So that what a test plants is told at once; still in two looks. */
const AT_ONCE = ['--sample', '3', '--grace', '0'] as const;
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1', isNamespaced: false } as const;
const ROLE_FILE = new URL('../../conf/kubernetes/components/viewer/cluster-role.yaml', import.meta.url);

let system: System;
let place: CliPlace;
let pods: readonly SystemPod[];
let files: TempDir;
const doors: (() => void)[] = [];

test.before(async (t) => {
  t.timeout(240_000);
  files = createTempDir('cli-cluster');
  await buildExecutables(['tke-eni']);
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }], ipamds: 1 });
  for (const name of ['n1', 'n2']) {
    await system.awaitNec(name, 'warm addresses', (nec) => countAssigned(nec) >= 5);
    await system.node(name).awaitReady();
  }
  pods = [await system.node('n1').runPod('p1'), await system.node('n2').runPod('p2')];
  await waitUntil(async () => system.cluster.server.objects(VPC_IPS.plural, VPC_IPS.group).length === 2, {
    what: 'two VpcIPs',
    timeoutMs: 30_000,
    everyMs: 100,
  });
  const room = await system.cloud.createRoom('people');
  const { server } = system.cluster;
  doors.push(openDoor(room, KUBE_PORT, server.accept).close);
  doors.push(openDoor(room, CLOUD_PORT, (socket) => system.cloud.server.accept(socket)).close);
  // The file of the component: what it grants is what this test has.
  const role = parse(readFileSync(ROLE_FILE, 'utf8')) as KubeObject;
  await grant('tke-eni-viewer', role);
  const { secretId, secretKey } = system.cloud.key;
  const env = {
    TENCENTCLOUD_SECRET_ID: secretId,
    TENCENTCLOUD_SECRET_KEY: secretKey,
    KUBECONFIG: kubeconfigOf('tke-eni-viewer'),
  };
  place = { netns: room, stateDir: files.join('none'), socketPath: files.join('none.sock'), env };
});
test.after.always(async () => {
  for (const close of doors) close();
  await system?.close();
  files?.close();
});

async function grant(name: string, role: KubeObject): Promise<void> {
  const { admin } = system.cluster;
  await admin.create({ ...RBAC, plural: 'clusterroles', kind: 'ClusterRole' }, role);
  await admin.create(
    { ...RBAC, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding' },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: RBAC.group, kind: 'ClusterRole', name: role.metadata.name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
    },
  );
}

function kubeconfigOf(serviceAccount: string): string {
  const token = system.cluster.server.addToken({ namespace: 'default', serviceAccount });
  const path = files.join(`kubeconfig-${serviceAccount}`);
  writeFileSync(path, renderKubeconfig({ url: `http://127.0.0.1:${KUBE_PORT}`, token }));
  return path;
}

function idsOf(document: Parameters<typeof listOf>[0]): readonly string[] {
  return listOf(document, 'findings').map(({ id }) => String(id));
}

test.serial('tke-eni cluster: tells of every node what its object has, and which of it Pods use', async (t) => {
  const { code, document } = await askCli(place, 'cluster');
  t.is(code, 0, JSON.stringify(document));
  for (const node of listOf(document, 'nodes')) {
    const nec = await system.nec(String(node['node']));
    t.truthy(nec);
    if (nec === undefined) continue;
    const assigned = assignedIps(nec).length;
    t.like(node, {
      instanceId: system.cloud.instanceOf(String(node['node'])),
      addresses: { assigned, used: 1, free: assigned - 1, releasing: 0 },
      desired: nec.spec?.desiredRouteENIIP,
      problems: [],
    });
  }
  const text = await runCli(place, 'cluster');
  t.regex(text.stdout, /^NODE .*\nn1 .*\nn2 .*\n2 nodes, no problems; 2 ENIs\n/);
});

test.serial(
  'tke-eni cluster subnets: what is left is known from the cloud, and without --cloud from ipamd',
  async (t) => {
    const { code, document } = await askCli(place, 'cluster', 'subnets', ...CLOUD);
    t.is(code, 0);
    const [subnet] = listOf(document, 'subnets');
    const held = [...system.cloud.host.model.state.enis.values()].filter((eni) => eni.subnetId === POD_SUBNET.subnetId);
    const taken = held.reduce((sum, eni) => sum + eni.ips.size, 0);
    t.like(subnet, { subnetId: POD_SUBNET.subnetId, used: taken, ours: taken, nodes: ['n1', 'n2'], enis: 2 });
    t.like(subnet?.['forecast'], { kind: 'not-before', ground: 'living VpcIPs by their age' });
    // ipamd describes its subnets twice a minute.
    const published = async () => listOf((await askCli(place, 'cluster', 'subnets')).document, 'subnets')[0];
    const isSame = async () => (await published())?.['free'] === subnet?.['free'];
    await waitUntil(isSame, { what: 'the free addresses without --cloud', timeoutMs: 60_000 });
    t.like(await published(), { total: 253, used: taken, ours: taken });
  },
);

test.serial('tke-eni cluster subnets --sample: measures what comes and goes', async (t) => {
  const { document } = await askCli(place, 'cluster', 'subnets', '--sample', '1', ...CLOUD);
  // How far apart the looks came to be is the machine's affair.
  const text = JSON.stringify(listOf(document, 'subnets')[0]?.['forecast']);
  t.regex(text, /"not-growing".*0 came and 0 went within \d+ s/);
});

test.serial(
  'tke-eni cluster capacity: counts as ipamd publishes, and says in the exit code whether it is enough',
  async (t) => {
    const { model } = system.cloud.host;
    const enis = [...model.state.enis.values()].filter(({ subnetId }) => subnetId === POD_SUBNET.subnetId);
    const free = 253 - enis.reduce((sum, eni) => sum + eni.ips.size, 0);
    const capacity = (...args: readonly string[]) => askCli(place, 'cluster', 'capacity', ...args);
    const read = async () => listOf((await capacity()).document, 'zones')[0];
    const isPublished = () =>
      system.cluster.server.objects('configmaps').some(({ metadata }) => metadata.name === SUBNETS_CONFIG_MAP);
    await waitUntil(isPublished, { what: SUBNETS_CONFIG_MAP, timeoutMs: 30_000 });
    // ipamd describes its subnets twice a minute.
    await waitUntil(async () => (await read())?.['free'] === free, { what: 'the free addresses', timeoutMs: 60_000 });
    const zone = await read();
    const warm = (await Promise.all(['n1', 'n2'].map((name) => system.nec(name)))).flatMap((nec) =>
      nec === undefined ? [] : assignedIps(nec),
    );
    const nodesLeft = Math.floor(free / 6);
    t.like(zone, { zone: ZONE, nodes: 2, missing: 0, warm: warm.length - 2, nodesLeft, isEnough: true });
    t.like(zone?.['newNode'], { source: 'nodes', warmIps: 5, addresses: 6 });
    t.is((await capacity('--zone', ZONE, '--nodes', `${nodesLeft}`)).code, 0);
    const { document } = await capacity(...CLOUD);
    t.like(document, { eniQuota: { ofVpc: { limit: 1000 }, isEnough: true } });
    const more = await capacity('--zone', ZONE, '--nodes', `${nodesLeft + 1}`);
    t.is(more.code, 1);
    t.false(more.document['isEnough']);
  },
);

test.serial('tke-eni cluster capacity: names what is not enough, or wrong on the command line', async (t) => {
  const other = ZONE.replace(/\d+$/, '99');
  const short = await runCli(place, 'cluster', 'capacity', '--zone', other);
  t.is(short.code, 1);
  const words = `Network scale error[IP for pods in Zone ${other} is not enough to scale out 1 nodes.]`;
  const line = `DashboardError,Code : -1100000 , Msg : ${words}: the cluster has no subnet in ${other}`;
  t.true(short.stdout.replaceAll('\n', ' ').includes(line), short.stdout);
  const zone = await runCli(place, 'cluster', 'capacity', '--zone', 'eu-nowhere-1');
  t.is(zone.code, 2);
  t.regex(zone.stderr, new RegExp(`no zone eu-nowhere-1 in the region[\\s\\S]*${ZONE}`));
  const type = await runCli(place, 'cluster', 'capacity', '--type', 'BMI5');
  t.is(type.code, 2);
  t.regex(type.stderr, /instance type BMI5 are not known/);
  const usage = await runCli(place, 'cluster', 'subnets', '--zone', 'x', '--nodes', '0');
  t.is(usage.code, 64);
  t.regex(usage.stderr, /--zone: only the view capacity uses it[\s\S]*--nodes: expected a whole number/);
});

test.serial('tke-eni cluster leaks: finds nothing in a healthy cluster', async (t) => {
  const { code, document } = await askCli(place, 'cluster', 'leaks', ...AT_ONCE, ...CLOUD);
  t.deepEqual(listOf(document, 'findings'), []);
  t.deepEqual(listOf(document, 'unseen'), []);
  t.is(code, 0);
});

test.serial('tke-eni cluster leaks: finds what was planted, and grants what is young', async (t) => {
  const [pod] = pods;
  const state = system.cloud.host.model.state;
  const eni = [...state.enis.values()].find((one) => pod !== undefined && one.ips.has(pod.ip));
  const own = { vpc: system.cloud.vpcId, subnet: POD_SUBNET.subnetId };
  const tags = [
    { Key: 'tke-clusterId', Value: eni?.tags['tke-clusterId'] },
    { Key: ENI_TAG.uid, Value: 'of-a-node-that-is-gone' },
  ];
  const made = { VpcId: own.vpc, SubnetId: own.subnet, NetworkInterfaceName: 'by-hand', Tags: tags };
  await system.cloud.host.serve('vpc', 'CreateNetworkInterface', made);
  const assign = { NetworkInterfaceId: eni?.eniId, SecondaryPrivateIpAddressCount: 1 };
  await system.cloud.host.serve('vpc', 'AssignPrivateIpAddresses', assign);
  const { code, document } = await askCli(place, 'cluster', 'leaks', ...AT_ONCE, ...CLOUD);
  t.is(code, 1);
  t.deepEqual([...idsOf(document)].sort(), ['address-unlisted', 'eni-orphaned']);
  const texts = listOf(document, 'findings').map(({ what }) => String(what));
  t.true(texts.some((what) => what.includes('by-hand') && what.includes('attached to nothing')));
  const later = await askCli(place, 'cluster', 'leaks', '--sample', '1', '--grace', '3600', ...CLOUD);
  t.deepEqual(idsOf(later.document), ['address-unlisted']);
  const enis = await askCli(place, 'cluster', 'enis', ...CLOUD);
  t.is(listOf(enis.document, 'enis').filter(({ state: one }) => one === 'unlisted').length, 1);
});

test.serial('tke-eni cluster leaks: names the Pod whose address was given twice', async (t) => {
  // Nobody mends it meanwhile.
  await Promise.all(system.ipamds.map((ipamd) => ipamd.stop()));
  const [first, second] = pods;
  const nec = await system.nec('n2');
  const infos = nec?.status?.eniInfos ?? [];
  const twice = infos.map((info) => ({
    ...info,
    addresses: [...(info.addresses ?? []), { ip: first?.ip, assignmentID: 'a-1', state: 'Assigned' }],
  }));
  await system.patchNec('n2', { status: { eniInfos: twice } });
  await system.cluster.setPodRunning('p2', first?.ip ?? '');
  const { code, document } = await askCli(place, 'cluster', 'leaks', ...AT_ONCE);
  t.is(code, 1);
  const found = idsOf(document);
  t.true(found.includes('address-on-two-enis') && found.includes('address-of-two-pods'), JSON.stringify(document));
  const two = listOf(document, 'findings').find(({ id }) => id === 'address-of-two-pods');
  t.regex(String(two?.['what']), /default\/p1 on n1 and default\/p2 on n2/);
  await system.patchNec('n2', { status: { eniInfos: infos } });
  await system.cluster.setPodRunning('p2', second?.ip ?? '');
});

test.serial('tke-eni cluster: names the right that is missing, and answers what it can', async (t) => {
  const rules = [{ apiGroups: ['networking.tke.cloud.tencent.com'], resources: ['nodeeniconfigs'], verbs: ['list'] }];
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'little' }, rules };
  await grant('little', role);
  const env = { ...place.env, KUBECONFIG: kubeconfigOf('little') };
  const nodes = await runCli({ ...place, env }, 'cluster');
  t.is(nodes.code, 0, nodes.stderr);
  t.regex(nodes.stderr, /may not list pods.*kubectl auth can-i list pods -A/);
  t.regex(nodes.stdout, /\? used/);
  const leaks = await askCli({ ...place, env }, 'cluster', 'leaks', '--sample', '0');
  t.is(leaks.code, 2);
  t.deepEqual(
    listOf(leaks.document, 'unseen').map(({ what }) => what),
    ['Nodes', 'Pods', 'VpcIPs', 'VpcIPClaims', 'VpcENIs', 'EIPClaims'],
  );
  const nobody = await runCli({ ...place, env: { ...place.env, KUBECONFIG: kubeconfigOf('nobody') } }, 'cluster');
  t.is(nobody.code, 2);
  t.regex(nobody.stderr, /may not list nodeeniconfigs\.networking\.tke\.cloud\.tencent\.com/);
  t.is(nobody.stdout, '');
});
