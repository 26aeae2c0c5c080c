import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { run, tryRun } from '../../sim/support/run.ts';
import { listNetnsNames, reservePrefix } from '../../sim/support/run-names.ts';
import { cgroupPids } from '../support/cgroup.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { awaitPods, podManifest, podsOf } from './pods.ts';
import { type RealCluster, startRealCluster } from './real-cluster.ts';
import { CLUSTER_STEM, clusterDir, removeStaleClusters } from './stale-clusters.ts';

/** Settings of the whole machine that a kubelet likes to change. */
const SYSCTLS = ['vm/overcommit_memory', 'kernel/panic', 'kernel/panic_on_oops', 'kernel/keys/root_maxkeys'];

const machineBefore = SYSCTLS.map(readSysctl);
let started: RealCluster | undefined;

function readSysctl(name: string): string {
  return readFileSync(`/proc/sys/${name}`, 'utf8');
}

function running(): RealCluster {
  if (started === undefined) throw new Error('the cluster did not start');
  return started;
}

test.before(async () => {
  // No plugin of ours: what is tried is the cluster itself.
  started = await startRealCluster({ nodes: [{ name: 'node1', cni: 'ptp' }, { name: 'node2' }] });
  await started.awaitReady(['node1']);
  await started.apply(podManifest('steady', { eniIps: 0, spec: { nodeName: 'node1' } }));
  await awaitPods(started, 'app=steady', 1);
});
test.after.always(() => started?.close());

test.serial('startRealCluster: registers nodes as TKE does when they have no network', async (t) => {
  const cluster = running();
  const node = JSON.parse(await cluster.kubectl('get', 'node', 'node2', '-o', 'json'));
  t.is(node.spec.providerID, `qcloud:///100003/${cluster.cloud.instanceOf('node2')}`);
  t.is(node.metadata.labels['cloud.tencent.com/node-instance-id'], cluster.cloud.instanceOf('node2'));
  const keys = node.spec.taints.map(({ key }: { key: string }) => key);
  t.true(keys.includes('tke.cloud.tencent.com/eni-ip-unavailable'), keys.join());
  t.is(node.status.addresses[0].address, cluster.node('node2').ip);
});

test.serial('ClusterNode: has processes, files and a network of its own', async (t) => {
  const node = running().node('node1');
  t.is((await node.exec(['cat', '/proc/1/comm'])).trim(), 'tini');
  t.false((await node.exec(['ps', '-eo', 'comm'])).includes('kube-apiserver'));
  t.deepEqual(
    (await node.exec(['ls', '/sys/class/net'])).split('\n').filter((name) => name.startsWith('veth')).length,
    1,
  );
  t.deepEqual(SYSCTLS.map(readSysctl), machineBefore, 'the kubelet changed nothing of the machine');
});

test.serial('Daemon: the Pod stays when kubelet and containerd are killed and started again', async (t) => {
  const cluster = running();
  const node = cluster.node('node1');
  const [before] = await podsOf(cluster, 'app=steady');
  const pidOfPod = await node.exec(['pgrep', '-f', '-o', 'sleep 2147483']);
  await Promise.all([node.kubelet.kill(), node.containerd.kill()]);
  t.false(node.kubelet.isRunning || node.containerd.isRunning);
  node.containerd.start();
  await node.awaitRuntime();
  node.kubelet.start();
  t.is((await cluster.execInPod('steady', ['cat', '/etc/passwd']).catch(() => retryExec(cluster))).slice(0, 4), 'root');
  t.deepEqual(
    (await podsOf(cluster, 'app=steady')).map(({ uid, ip }) => [uid, ip]),
    [[before?.uid, before?.ip]],
  );
  t.is(await node.exec(['pgrep', '-f', '-o', 'sleep 2147483']), pidOfPod);
});

test.serial('Daemon: objects are there when etcd and the API server were killed and started again', async (t) => {
  const cluster = running();
  await Promise.all([cluster.apiServer.kill(), cluster.etcd.kill()]);
  t.not((await cluster.tryKubectl(['get', 'nodes'])).code, 0);
  cluster.etcd.start();
  cluster.apiServer.start();
  await cluster.awaitApiServer();
  t.is((await podsOf(cluster, 'app=steady')).length, 1);
  t.true(cluster.auditLog().some((record) => record['verb'] === 'list'));
});

test.serial('ClusterNode.reboot: nothing of before runs, the disk is as it was, the NICs are back', async (t) => {
  const cluster = running();
  const node = cluster.node('node1');
  await cluster.cloud.vpc.attachEni('node1', { eniId: 'eni-reboot', subnetId: 'subnet-pods000a' });
  await node.exec(['sh', '-c', 'echo kept >/var/lib/kept; echo lost >/run/lost; ip rule add pref 99 lookup 99']);
  t.deepEqual(cgroupsOf(node.ns.name), [node.ns.name]);
  await node.powerOff();
  // A kubelet waits for seconds at each cgroup of a container that is no more, and meanwhile runs no Pod.
  t.deepEqual(cgroupsOf(node.ns.name), []);
  await node.powerOn();
  t.is(await node.exec(['cat', '/var/lib/kept']), 'kept\n');
  t.is((await node.tryExec(['cat', '/run/lost'])).code, 1);
  t.false((await node.exec(['ip', 'rule'])).includes('99:'));
  const macs = (await node.ns.ipJson('link')).map((link) => link['address']);
  const { mac } = await cluster.cloud.vpc.eni('eni-reboot');
  t.true(macs.includes(mac) && macs.includes(cluster.cloud.vpc.node('node1').primary.mac), macs.join());
  // The same Pod in a new sandbox.
  await waitUntil(async () => (await cluster.tryKubectl(['exec', 'steady', '--', 'ls', '/'])).code === 0, {
    what: 'the Pod after the reboot',
    timeoutMs: 60_000,
    everyMs: 300,
    explain: () => node.logs(),
  });
  await cluster.awaitReady(['node1']);
  t.pass();
});

test.serial('RealCluster.close: leaves nothing on the machine', async (t) => {
  const cluster = running();
  const prefix = cluster.cloud.vpc.prefix;
  await cluster.close();
  started = undefined;
  t.deepEqual(
    (await listNetnsNames()).filter((name) => name.startsWith(prefix)),
    [],
  );
  t.false(existsSync(cluster.dir));
  t.deepEqual(cgroupPids(`${prefix}node1`), []);
  t.deepEqual(cgroupsOf(prefix), []);
  t.false(readFileSync('/proc/self/mounts', 'utf8').includes(cluster.dir));
  t.false((await run(['ps', '-eo', 'args'])).includes(cluster.dir));
  t.deepEqual(SYSCTLS.map(readSysctl), machineBefore);
});

test.serial('startRealCluster: says why, and leaves nothing, when a part does not start', async (t) => {
  const error = await t.throwsAsync(startRealCluster({ apiServerFlags: { 'no-such-flag': 'x' } }));
  t.regex(error?.message ?? '', /kube-apiserver ended: .*unknown flag: --no-such-flag/s);
  const [name] = /tke-cluster-[0-9a-f]{6}/.exec(error?.message ?? '') ?? [];
  t.deepEqual(await leftoversOf(name ?? 'no name in the message'), []);
});

test.serial('removeStaleClusters: removes what a killed run left and nothing of a living one', async (t) => {
  const script = `import { startRealCluster } from '${join(import.meta.dirname, 'real-cluster.ts')}';
    const cluster = await startRealCluster({ nodes: [{ name: 'node1', cni: 'ptp' }] });
    process.stdout.write(cluster.cloud.vpc.prefix, () => process.kill(process.pid, 'SIGKILL'));`;
  const living = reservePrefix(CLUSTER_STEM);
  t.teardown(() => living.release());
  const { stdout: prefix, stderr } = await tryRun([process.execPath, '--input-type=module', '-e', script], {
    timeoutMs: 90_000,
  });
  t.regex(prefix, /^tke-cluster-[0-9a-f]{6}-$/, stderr);
  const removed = await removeStaleClusters();
  t.true(removed.includes(`${prefix}node1`), removed.join());
  t.deepEqual(await leftoversOf(prefix.slice(0, -1)), []);
  t.false((await run(['ps', '-eo', 'args'])).includes(clusterDir(prefix)));
});

test.serial('startRealCluster: names every executable that is missing', async (t) => {
  const empty = createTempDir('assets');
  t.teardown(() => empty.close());
  const error = await t.throwsAsync(startRealCluster({ assets: empty.path }));
  t.regex(error?.message ?? '', /lacks kube-apiserver, .*kubelet, kube-proxy, kubectl\. .*KUBE_ASSETS/);
});

/** Roots of cgroups whose name begins so: a node has its own. */
function cgroupsOf(stem: string): readonly string[] {
  return readdirSync('/sys/fs/cgroup/pids').filter((name) => name.startsWith(stem));
}

/** What a cluster has on the machine: network namespaces, files, cgroups. Others may run at the same time. */
async function leftoversOf(name: string): Promise<readonly string[]> {
  const folders = [tmpdir(), '/sys/fs/cgroup/pids'].flatMap((folder) => readdirSync(folder));
  return [...(await listNetnsNames()), ...folders].filter((one) => one.startsWith(name)).sort();
}

/** The kubelet answers some seconds after its start. */
function retryExec(cluster: RealCluster): Promise<string> {
  return cluster.awaitKubectl(['exec', 'steady', '--', 'cat', '/etc/passwd'], 'exec in the Pod');
}
