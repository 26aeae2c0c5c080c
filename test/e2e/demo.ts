/**
 * `make demo`: the whole system on one machine. A small VPC with its cloud API, a Kubernetes API server, two replicas of
 * ipamd, a cloud controller manager, and two nodes with containerd and agent, all but the servers packaged and in network namespaces.
 * Nodes join, Pods are created in the API server and run, one of them on the bridge of its node, one of them behind two load balancers; then a subnet runs out, the cloud throttles, ipamd's leader is killed, a rule is
 * lost, and a Pod goes to another node with its address. Progress goes to standard error, results to standard output. Exit
 * code 1 when anything is not as it should be.
 */
import { ALLOW_RELEASE_ANNOTATION } from '../../crd/names.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { NODE_ENI_CONFIGS, NODES as NODE_OBJECTS, PODS as POD_OBJECTS } from '../../kube/resource-types.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { POD_NAMESPACE } from '../system/cluster.ts';
import { filesOf } from '../system/system.ts';
import { type Balancing, balancersOf, startDemoBalancing } from './demo/act-access.ts';
import { moveKeptAddress } from './demo/act-kept.ts';
import { killLeader } from './demo/act-leader.ts';
import { compareNetworks } from './demo/act-networks.ts';
import { loseRule } from './demo/act-rule.ts';
import { starveSubnet } from './demo/act-subnet.ts';
import { throttleCloud } from './demo/act-throttle.ts';
import type { DemoPod } from './demo/demo-node.ts';
import { heading } from './demo/format.ts';
import { type Kubectl, openKubectl } from './demo/kubectl.ts';
import { chainedPlugins, egressTable, pingMatrix, podTable, routingOf } from './demo/look.ts';
import { GREETING, HOST_PORT } from './demo/pods.ts';
import {
  awaitPods,
  awaitSpare,
  createPods,
  type DemoSystem,
  enisOf,
  joinNode,
  NODES,
  podsOf,
  removeLeftovers,
  SUBNET_A,
  startDemoSystem,
} from './demo/scene.ts';
import { type Stage, secondsSince } from './demo/stage.ts';
import { Stages } from './demo/stages.ts';

/** The Pods to begin with. web-0 also shows hostPort and bandwidth, which the plugins of the CNI project do. */
const FIRST_PODS = { n1: ['web-0', 'web-1', 'web-2'], n2: ['db-0', 'db-1'] } as const;

const startedMs = performance.now();
const stages = new Stages();
const faults: string[] = [];
let system: DemoSystem | undefined;
let balancing: Balancing | undefined;
let kubectl: Kubectl | undefined;
let refused = 0;
let isEnding = false;

function progress(text: string): void {
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1).padStart(5);
  console.error(`[${seconds} s] ${text}`);
}

function show(title: string, text: string): void {
  console.log(heading(title));
  console.log(text);
}

async function bringUp(): Promise<Stage> {
  const stale = await removeLeftovers();
  if (stale > 0) progress(`removed what an earlier run left behind: ${stale} namespaces`);
  const up = await startDemoSystem(
    (made) => {
      system = made;
      balancing = startDemoBalancing(made);
      progress('VPC and cloud API, Kubernetes API server: up');
    },
    (name) => progress(`${name}: containerd is up, image imported`),
  );
  progress('two replicas of ipamd; the leader installed the definitions');
  await up.configure({ TKE_ENI_IPAMD_SUBNET_ID: SUBNET_A.subnetId });
  await Promise.all(
    NODES.map(async (name) => {
      await joinNode(up, name);
      progress(`${name} joined: ipamd bought its ENI, the agent installed the conflist`);
    }),
  );
  kubectl = await openKubectl(up.cluster.server, filesOf(up.cloud.vpc.prefix));
  return {
    system: up,
    kubectl,
    progress,
    print: (text) => console.log(text),
    fault: (text) => void faults.push(text),
  };
}

async function runFirstPods({ system: up }: Stage): Promise<readonly DemoPod[]> {
  const beganMs = performance.now();
  const names = Object.values(FIRST_PODS).flat();
  const run = async (): Promise<readonly DemoPod[]> => {
    for (const [node, its] of Object.entries(FIRST_PODS)) await createPods(up, node, its);
    const pods = await awaitPods(up, names);
    progress(`${names.length} Pods, created in the API server, run after ${secondsSince(beganMs)}`);
    await awaitSpare(up);
    return pods;
  };
  const [pods] = await Promise.all([run(), balancing?.createServices()]);
  return pods;
}

/** The packets that the VPC refused as spoofed, since the last time it was asked. */
async function countRefused({ cloud: { vpc } }: DemoSystem): Promise<void> {
  for (const drop of await vpc.droppedPackets()) {
    refused += drop.packets;
    faults.push(`the VPC refused ${drop.packets} packets from ${drop.src} at ${drop.via}: ${drop.reason}`);
  }
  await vpc.resetPacketLog();
}

/** Shows what kubectl shows, and what the packets do. */
async function look({ system: up, kubectl: cluster }: Stage, pods: readonly DemoPod[]): Promise<void> {
  const { vpc } = up.cloud;
  await waitForRecords(up, pods);
  const listed = [await cluster.get('nec'), await cluster.get('vip'), await cluster.get('vipc', { isWide: true })];
  show('The cluster: what ipamd keeps there', listed.join('\n\n'));
  show('Pods: VPC addresses of elastic network interfaces', await podTable(vpc, pods));
  await countRefused(up);
  const matrix = await pingMatrix(vpc, pods);
  faults.push(...matrix.unanswered.map((way) => `no answer: ${way}`));
  show('Ping, round trip in ms', matrix.text);
  await countRefused(up);
  const egress = await egressTable(vpc, pods);
  faults.push(...egress.faults);
  show('To the outside: by which ENI did the packets go? (router counters)', egress.text);
  const web = pods.find((pod) => pod.name === 'web-0');
  if (web !== undefined) {
    const { answer, rate } = await chainedPlugins(vpc, web);
    if (answer !== GREETING) faults.push(`host port ${HOST_PORT}: got '${answer}'`);
    if (rate === 'none') faults.push('bandwidth: web-0 has no rate limit');
    show(
      'By plugins of the CNI project: hostPort (portmap) and bandwidth, on web-0',
      `  outside -> ${web.node.name}:${HOST_PORT} answers "${answer}"\n  kernel limits its link to ${rate}`,
    );
  }
  show('Routing on n1', await routingOf(vpc, 'n1'));
}

/** Records for people come a moment after the Pods. */
async function waitForRecords({ cluster }: DemoSystem, pods: readonly DemoPod[]): Promise<void> {
  const group = 'networking.tke.cloud.tencent.com';
  const count = (plural: string) => cluster.server.objects(plural, group).length;
  await waitUntil(() => count('vpcipclaims') === pods.length && count('vpcips') === pods.length, {
    what: 'a VpcIPClaim and a VpcIP for each Pod',
    timeoutMs: 20_000,
    everyMs: 50,
  });
}

/**
 * Confirms that the nodes are gone, as a person does for the last nodes of a cluster: a cluster without any Node is no
 * proof. ipamd takes a confirmation away that it reads before it has seen that the Node is gone.
 */
async function confirmGone(up: DemoSystem): Promise<void> {
  const body = { metadata: { annotations: { [ALLOW_RELEASE_ANNOTATION]: 'true' } } };
  for (const name of NODES) {
    await waitUntil(
      async () => {
        if ((await up.nec(name)) === undefined) return true;
        const patched = up.cluster.admin.patch(NODE_ENI_CONFIGS, { name }, { kind: 'merge', body });
        await patched.catch((error: unknown) => {
          if (!isKubeError(error, 'NOT_FOUND')) throw error;
        });
        return false;
      },
      { what: `no NodeENIConfig ${name}`, timeoutMs: 60_000, everyMs: 500 },
    );
  }
}

/** Every Pod that came meanwhile talks to the outside by its own ENI, and everything agrees; then all goes. */
async function conclude(stage: Stage): Promise<void> {
  const { system: up } = stage;
  const { vpc } = up.cloud;
  await countRefused(up);
  const pods = podsOf(up);
  const egress = await egressTable(vpc, pods);
  faults.push(...egress.faults);
  show(`After all that: the ${pods.length} Pods`, egress.text);
  const running = await auditThreeWays(up);
  progress(`audit with ${pods.length} Pods: ${running.length} differences`);
  for (const { name } of pods) {
    await up.cluster.admin.delete(POD_OBJECTS, { namespace: POD_NAMESPACE, name });
  }
  await waitUntil(() => podsOf(up).length === 0 && up.cluster.server.objects('pods').length === 0, {
    what: 'the end of all Pods',
    timeoutMs: 30_000,
    everyMs: 50,
  });
  const without = await auditThreeWays(up);
  progress(`Pods deleted; audit: ${without.length} differences`);
  for (const name of NODES) await up.cluster.admin.delete(NODE_OBJECTS, { name });
  await confirmGone(up);
  const left = enisOf(up);
  progress(`Nodes deleted; ENIs left in the cloud: ${left.length}`);
  await countRefused(up);
  faults.push(...running, ...without, ...[...balancersOf(up), ...left].map((id) => `the cloud still has ${id}`));
  show(
    'Verdict',
    `  packets that the VPC refused as spoofed: ${refused}\n` +
      `  differences between cloud, objects and kernels, ${pods.length} Pods running: ${running.length}\n` +
      `  the same when they were gone: ${without.length}\n` +
      `  load balancers left when their Services were gone: ${balancersOf(up).length}\n` +
      `  ENIs left in the cloud when the Nodes were gone: ${left.length}`,
  );
}

async function main(): Promise<void> {
  const stage = await stages.time('VPC, API server, ipamd, two nodes', bringUp);
  const pods = await stages.time('the first Pods', () => runFirstPods(stage));
  await stages.time('what they are, and who reaches whom', () => look(stage, pods));
  await stages.time('two ways in, two networks', async () => {
    await balancing?.compareAccess(stage, podOf(pods, 'web-0'));
    await compareNetworks(stage, podOf(pods, 'web-1'));
    await balancing?.conclude();
  });
  await stages.time('act 1: the subnet is full', () => starveSubnet(stage));
  await stages.time('act 2: the cloud throttles', () => throttleCloud(stage));
  await stages.time('act 3: the leader is killed', () => killLeader(stage));
  await stages.time('act 4: a rule is lost', () => loseRule(stage, pods));
  const witnesses = pods.filter(({ name }) => ['web-1', 'db-1'].includes(name));
  await stages.time('act 5: a Pod moves', () => moveKeptAddress(stage, witnesses));
  await stages.time('audit, and the end of all', () => conclude(stage));
  if (faults.length > 0) throw new Error(`not as it should be:\n  ${faults.join('\n  ')}`);
}

function podOf(pods: readonly DemoPod[], name: string): DemoPod {
  const pod = pods.find((candidate) => candidate.name === name);
  if (pod === undefined) throw new Error(`the demo has no Pod ${name}`);
  return pod;
}

/** Ends everything that was begun. */
async function cleanUp(): Promise<void> {
  kubectl?.close();
  try {
    await balancing?.close();
    await system?.close();
  } catch (error) {
    console.error(`cleaning up: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}

function report(error: unknown): void {
  console.error(`\ndemo failed: ${error instanceof Error ? error.message : String(error)}`);
  console.error(`\nlast lines of ipamd and the agents:\n${system?.logs().slice(-8_000) ?? ''}`);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    isEnding = true;
    console.error(`\n${signal}: cleaning up`);
    void cleanUp().then(() => process.exit(130));
  });
}

try {
  await main();
} catch (error) {
  if (!isEnding) {
    report(error);
    process.exitCode = 1;
  }
}
if (!isEnding) {
  await stages.time('clean up', cleanUp);
  if (process.exitCode !== 1) show('Seconds', stages.text(process.env['TKE_ENI_STAGES']));
  progress(process.exitCode === 1 ? 'cleaned up' : 'all as it should be; everything is removed');
}
