import { PODS, VPC_IP_CLAIMS } from '../../../kube/resource-types.ts';
import { isObject } from '../../../sim/support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { POD_NAMESPACE } from '../../system/cluster.ts';
import type { DemoPod } from './demo-node.ts';
import { heading, wrapText } from './format.ts';
import { keptPodObject } from './pods.ts';
import { awaitPods, podsOf } from './scene.ts';
import { type Stage, secondsSince } from './stage.ts';

/** What a StatefulSet of one replica calls its Pod, whichever node it is on. */
const NAME = 'mq-0';

/** A Pod of a StatefulSet that keeps its address goes to another node of the zone: the address goes after it. */
export async function moveKeptAddress(stage: Stage, peers: readonly DemoPod[]): Promise<void> {
  const { system, kubectl, progress, print, fault } = stage;
  const { admin } = system.cluster;
  print(heading('Act 5: a Pod goes to another node and keeps its address'));
  const story = `${NAME} of a StatefulSet has the annotation vpc-ip-claim-delete-policy: Never. It starts on n1.`;
  print(`${wrapText(story, '  ')}\n`);
  progress(`act 5: ${NAME} with a kept address on n1`);
  await admin.create(PODS, keptPodObject(NAME, 'n1'));
  const [first] = await awaitPods(system, [NAME]);
  await awaitPhase(stage, 'Bound', 'n1');
  print(await kubectl.get('vipc', { names: [NAME] }));
  const before = placeOf(stage, first?.ip);

  const startMs = performance.now();
  await admin.delete(PODS, { namespace: POD_NAMESPACE, name: NAME });
  await waitUntil(() => podsOf(system).every((pod) => pod.name !== NAME), {
    what: `the end of ${NAME}`,
    timeoutMs: 30_000,
    everyMs: 50,
  });
  await awaitPhase(stage, 'Retained');
  print(`\n${wrapText('Its Pod is deleted, as by a drain of n1. The address waits for the name:', '  ')}\n`);
  print(await kubectl.get('vipc', { names: [NAME] }));
  await admin.create(PODS, keptPodObject(NAME, 'n2'));
  const [second] = await awaitPods(system, [NAME]);
  const took = secondsSince(startMs);
  progress(`act 5: ${NAME} runs on n2, ${took} after it was deleted on n1`);
  await awaitPhase(stage, 'Bound', 'n2');
  const after = placeOf(stage, second?.ip);
  print(`\n${wrapText(`The StatefulSet makes it again; the scheduler puts it on n2. It runs ${took} later:`, '  ')}\n`);
  print(await kubectl.get('vipc', { names: [NAME] }));
  const isSame = first !== undefined && first.ip === second?.ip;
  const heard = await reached(peers, second);
  const asks = peers.map(({ name, node }) => `${name} on ${node.name}`).join(' and ');
  const address = isSame ? 'the same address' : 'ANOTHER address';
  const moved = `${address}, ${second?.ip}, moved in the cloud from ${before} to ${after}`;
  print(`\n${wrapText(`Recovery: ${moved}. ${asks} reach it there: ${heard ? 'yes' : 'NO'}.`, '  ')}`);
  if (!isSame) fault(`act 5: ${NAME} had ${first?.ip}, has ${second?.ip}`);
  if (second?.node.name !== 'n2' || before === after) fault(`act 5: ${NAME} is on ${second?.node.name}, by ${after}`);
  if (!heard) fault(`act 5: not all of ${asks} reach ${NAME}`);
}

async function awaitPhase({ system }: Stage, phase: string, nodeName?: string): Promise<void> {
  const ref = { namespace: POD_NAMESPACE, name: NAME };
  await waitUntil(
    async () => {
      const status = (await system.cluster.admin.get(VPC_IP_CLAIMS, ref))?.['status'];
      if (!isObject(status) || status['phase'] !== phase) return false;
      return nodeName === undefined || status['nodeName'] === nodeName;
    },
    { what: `phase ${phase} of ${NAME}'s claim`, timeoutMs: 30_000, everyMs: 50 },
  );
}

/** `eni-… of n1` */
function placeOf({ system: { cloud } }: Stage, ip = ''): string {
  const { vpc } = cloud;
  const eniId = vpc.eniOf(ip) ?? 'no ENI';
  const node = vpc.nodeNames.find((name) => vpc.enisOf(name).includes(eniId));
  return `${eniId} of ${node ?? 'no node'}`;
}

async function reached(peers: readonly DemoPod[], to: DemoPod | undefined): Promise<boolean> {
  if (to === undefined) return false;
  const pings = peers.map((peer) => peer.node.containerd.execInPod(peer, ['ping', '-c', '1', '-W', '2', to.ip]));
  return (await Promise.all(pings)).every(({ exitCode }) => exitCode === 0);
}
