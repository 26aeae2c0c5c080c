import test from 'ava';
import { isObject } from '../../sim/kube-api/object.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { ENI_IP_RESOURCE } from './deploy.ts';
import { awaitPods, deploymentManifest, pingFrom, podManifest, podsOf, type SeenPod } from './pods.ts';
import { type RealCluster, startRealCluster } from './real-cluster.ts';
import { awaitEvent } from './workloads/events.ts';
import { type PodTraces, readPodTraces } from './workloads/pod-traces.ts';

/** Of its 16 addresses the cloud keeps three, and the ENI needs one. */
const SMALL = { subnetId: 'subnet-small00a', cidr: '10.0.2.0/28' };
const ROOM_OF_SMALL = 12;
const LARGE = { subnetId: 'subnet-large00a', cidr: '10.0.3.0/24' };
/** 7 ENIs with 29 addresses each: the product's table for 16 cores. */
const QUOTA = 203;

/** The two cores of a busy machine start about one Pod in a second. */
const SLOW = { timeoutMs: 300_000 };

let before: PodTraces | undefined;

const running = clusterOfFile(
  () =>
    startRealCluster({
      nodes: [{ name: 'node1', cores: 16, maxPods: 130 }],
      subnets: [SMALL, LARGE],
    }),
  async (cluster) => {
    await cluster.deploy({ subnetIds: [SMALL.subnetId] });
    before = await readPodTraces(cluster.node('node1'), cluster.cloud);
  },
);

test.serial('capacity: the node offers what its NodeENIConfig says that the subnets still give', async (t) => {
  t.deepEqual(await capacityOf(running()), {
    capacity: ROOM_OF_SMALL,
    allocatable: ROOM_OF_SMALL,
    nec: ROOM_OF_SMALL,
  });
});

test.serial('capacity: Pods beyond it stay Pending, and are told what there is too little of', async (t) => {
  const cluster = running();
  await cluster.apply(deploymentManifest('steady', ROOM_OF_SMALL - 2, FAST));
  await cluster.apply(deploymentManifest('passing', 2, FAST));
  await awaitPods(cluster, 'app=steady', ROOM_OF_SMALL - 2, SLOW);
  await awaitPods(cluster, 'app=passing', 2, SLOW);
  await cluster.apply(deploymentManifest('late', 2, FAST));
  const told = await awaitUnschedulable(cluster, 'app=late', 2);
  for (const message of told) t.regex(message, new RegExp(`1 Insufficient ${ENI_IP_RESOURCE}`));
  await waitUntil(async () => (await readyOf(cluster)).reason === 'SubnetExhausted', {
    what: 'reason SubnetExhausted of the NodeENIConfig',
    timeoutMs: 30_000,
    everyMs: 300,
  });
  const { status, message } = await readyOf(cluster);
  t.is(status, 'False');
  t.regex(message, new RegExp(SMALL.subnetId));
  t.is((await capacityOf(cluster)).allocatable, ROOM_OF_SMALL);
});

test.serial(
  'capacity: a Pod that asks for none waits in its sandbox, and its event says what supply waits for',
  async (t) => {
    const cluster = running();
    await cluster.apply(podManifest('unasked', { ...FAST, eniIps: 0 }));
    await awaitEvent(
      cluster,
      'unasked',
      /no address left: want IPv4, free 0, .*NodeENIConfig node1: SubnetExhausted: no free addresses in subnet-small00a/s,
    );
    await cluster.kubectl('delete', 'pod', 'unasked', '--timeout=60s');
    t.deepEqual(await podsOf(cluster, 'app=unasked'), []);
  },
);

test.serial('capacity: Pending Pods run when others have gone', async (t) => {
  const cluster = running();
  await cluster.kubectl('delete', 'deployment', 'passing', '--wait=false');
  const late = await awaitPods(cluster, 'app=late', 2, SLOW);
  const steady = await podsOf(cluster, 'app=steady');
  t.is(new Set([...late, ...steady].map(({ ip }) => ip)).size, ROOM_OF_SMALL);
});

test.serial('capacity: Pending Pods run when a subnet comes into the ConfigMap', async (t) => {
  const cluster = running();
  await cluster.apply(deploymentManifest('later', 3, FAST));
  await awaitUnschedulable(cluster, 'app=later', 3);
  const data = { TKE_ENI_IPAMD_SUBNET_ID: `${SMALL.subnetId}:${LARGE.subnetId}` };
  const patch = JSON.stringify({ data });
  await cluster.kubectl('-n', 'kube-system', 'patch', 'configmap', 'tke-eni-ipamd', '--type=merge', '-p', patch);
  const later = await awaitPods(cluster, 'app=later', 3, SLOW);
  t.true(
    later.every(({ ip }) => ip.startsWith('10.0.3.')),
    JSON.stringify(later),
  );
  await waitUntil(async () => (await capacityOf(cluster)).capacity > ROOM_OF_SMALL, {
    what: 'the larger capacity',
    timeoutMs: 30_000,
    everyMs: 300,
  });
  const { capacity, allocatable, nec } = await capacityOf(cluster);
  // One ENI of the seven is on the small subnet, with 12 addresses.
  t.deepEqual([capacity, allocatable], [nec ?? QUOTA, nec ?? QUOTA]);
  await deletePods(cluster, ['steady', 'late', 'later']);
});

test.serial('a hundred Pods on one node: each has an address of its own and answers', async (t) => {
  const cluster = running();
  await cluster.apply(burstManifests(50).join('\n---\n'));
  await cluster.apply(deploymentManifest('half', 50, FAST));
  const pods = [
    ...(await awaitPods(cluster, 'burst=yes', 50, SLOW)),
    ...(await awaitPods(cluster, 'app=half', 50, SLOW)),
  ];
  t.is(new Set(pods.map(({ ip }) => ip)).size, 100);
  const { vpc } = cluster.cloud;
  t.deepEqual(await silentOf(pods, ({ ip }) => vpc.outside.netns.ping(ip)), [], 'from beyond the VPC');
  // One Pod of each ENI, from one of them and from the node.
  const samples = [...Map.groupBy(pods, ({ ip }) => vpc.eniOf(ip)).values()].flatMap(([first]) => first ?? []);
  t.true(samples.length >= 4, `${samples.length} ENIs`);
  const [from] = samples;
  if (from === undefined) return t.fail('no Pods');
  t.deepEqual(await silentOf(samples, ({ ip }) => pingFrom(cluster, from, ip)), [], 'from a Pod');
  t.deepEqual(await silentOf(samples, ({ ip }) => cluster.node('node1').ns.ping(ip)), [], 'from the node');
});

test.serial(
  'fifty Pods deleted at once without grace: the other fifty answer, nothing of the fifty is left',
  async (t) => {
    const cluster = running();
    await cluster.kubectl('delete', 'pods', '-l', 'burst=yes', '--grace-period=0', '--force', '--wait=false');
    const left = await awaitTraces(cluster, (traces) => traces.links.length === 50 && traces.leases.length === 50);
    t.is(left.namespaces.length, 50);
    const pods = await podsOf(cluster, 'app=half');
    t.deepEqual(await silentOf(pods, ({ ip }) => cluster.cloud.vpc.outside.netns.ping(ip)), []);
  },
);

test.serial('a hundred Pods deleted: nothing is left of them in kernel, journal and files', async (t) => {
  const cluster = running();
  await deletePods(cluster, ['half']);
  const after = await awaitTraces(cluster, (traces) => traces.links.length === 0 && traces.leases.length === 0);
  t.deepEqual(after, before);
});

test.serial('capacity: no Pod was rejected by the kubelet, and all agree at the end', async (t) => {
  const cluster = running();
  const events = await cluster.kubectl('get', 'events', '-A', '--no-headers');
  t.deepEqual(
    events.split('\n').filter((line) => /UnexpectedAdmissionError|OutOf/.test(line)),
    [],
  );
  t.deepEqual(await auditCluster(cluster), []);
});

/** Not 0: the API server would forget a Pod before the kubelet has ended it, and the scheduler give its place away. */
const FAST = { spec: { terminationGracePeriodSeconds: 1 } };

function burstManifests(count: number): readonly string[] {
  const options = { ...FAST, labels: { burst: 'yes' } };
  return Array.from({ length: count }, (_, index) => podManifest(`burst-${index}`, options));
}

/** Deletes Deployments and waits until their Pods are gone from the API. */
async function deletePods(cluster: RealCluster, names: readonly string[]): Promise<void> {
  await cluster.kubectl('delete', 'deployment', ...names, '--wait=false');
  const selector = `app in (${names.join(',')})`;
  await waitUntil(async () => (await podsOf(cluster, selector)).length === 0, {
    what: `the end of the Pods of ${names.join(', ')}`,
    ...SLOW,
    everyMs: 500,
    explain: () => cluster.node('node1').logs(),
  });
}

async function awaitTraces(cluster: RealCluster, isWanted: (traces: PodTraces) => boolean): Promise<PodTraces> {
  let last: PodTraces | undefined;
  return waitUntil(
    async () => {
      last = await readPodTraces(cluster.node('node1'), cluster.cloud);
      return isWanted(last) && last;
    },
    { what: 'the end of what Pods left', ...SLOW, everyMs: 1_000, explain: () => JSON.stringify(last).slice(0, 4_000) },
  );
}

/** Asks Pods ten at a time; the addresses of those that did not answer. */
async function silentOf(
  pods: readonly SeenPod[],
  answers: (pod: SeenPod) => Promise<boolean>,
): Promise<readonly string[]> {
  const silent: string[] = [];
  for (let start = 0; start < pods.length; start += 10) {
    const some = pods.slice(start, start + 10);
    const answered = await Promise.all(some.map(answers));
    silent.push(...some.filter((_, index) => answered[index] !== true).map(({ ip }) => ip));
  }
  return silent;
}

/** Waits until the scheduler has refused every Pod of a selector; answers with what it says. */
async function awaitUnschedulable(cluster: RealCluster, selector: string, count: number): Promise<readonly string[]> {
  return waitUntil(
    async () => {
      const list = await cluster.kubectlJson('get', 'pods', '-l', selector);
      const pods = isObject(list) && Array.isArray(list['items']) ? list['items'].filter(isObject) : [];
      const told = pods.flatMap((pod) => {
        const conditions = at(pod, 'status', 'conditions');
        const scheduled = Array.isArray(conditions) ? conditions.filter(isObject) : [];
        const isPending = at(pod, 'status', 'phase') === 'Pending';
        const refused = scheduled.find((one) => one['type'] === 'PodScheduled' && one['reason'] === 'Unschedulable');
        return isPending && refused !== undefined ? [String(refused['message'])] : [];
      });
      return told.length === count && told;
    },
    { what: `${count} unschedulable Pods with ${selector}`, timeoutMs: 60_000, everyMs: 300 },
  );
}

async function capacityOf(
  cluster: RealCluster,
): Promise<{ readonly capacity: number; readonly allocatable: number; readonly nec: number | undefined }> {
  const { status } = { status: at(await cluster.kubectlJson('get', 'node', 'node1'), 'status') };
  const told = at(await cluster.kubectlJson('get', 'nec', 'node1'), 'status', 'allocatableRouteENIIPs');
  return {
    capacity: Number(at(status, 'capacity', ENI_IP_RESOURCE)),
    allocatable: Number(at(status, 'allocatable', ENI_IP_RESOURCE)),
    nec: told === undefined ? undefined : Number(told),
  };
}

async function readyOf(
  cluster: RealCluster,
): Promise<{ readonly status: string; readonly reason: string; readonly message: string }> {
  const conditions = at(await cluster.kubectlJson('get', 'nec', 'node1'), 'status', 'conditions');
  const ready = (Array.isArray(conditions) ? conditions.filter(isObject) : []).find(({ type }) => type === 'Ready');
  return {
    status: String(ready?.['status']),
    reason: String(ready?.['reason']),
    message: String(ready?.['message']),
  };
}
