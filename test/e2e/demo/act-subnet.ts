import { heading, wrapText } from './format.ts';
import { awaitPods, createPods, podsOf, SUBNET_A, SUBNET_B } from './scene.ts';
import { awaitEvent, conditionText, eventText, metricText, type Stage, secondsSince } from './stage.ts';

const PODS = ['db-2', 'db-3', 'db-4'] as const;

/** The only subnet is full: Pods wait, and say in the cloud's words why, until people name another subnet. */
export async function starveSubnet(stage: Stage): Promise<void> {
  const { system, kubectl, progress, print, fault } = stage;
  const free = SUBNET_A.usable - usedOf(stage, SUBNET_A.subnetId);
  progress(`act 1: ${SUBNET_A.subnetId} has ${free} addresses left; ${PODS.length} Pods more on n2`);
  print(heading('Act 1: the only subnet is full'));
  const room = `${free} of its ${SUBNET_A.usable} addresses left`;
  print(`${wrapText(`${SUBNET_A.subnetId} (${SUBNET_A.cidr}) has ${room}. n2 gets ${PODS.join(', ')}.`, '  ')}\n`);
  const pids = pidsOf(stage);
  await createPods(system, 'n2', PODS);
  const told = await awaitEvent(system, 'SubnetExhausted', ['nec/n2']);
  // On a slow machine one of the first Pods may have had to wait, too.
  const waiters = PODS.map((name) => `pod/${name}`);
  const failed = await awaitEvent(system, 'FailedCreatePodSandBox', waiters);
  print(await kubectl.get('pods', { names: PODS }));
  print(`\n${await kubectl.get('nec')}\n`);
  print(await conditionText(system, 'n2'));
  print(eventText(told));
  print(eventText(failed));
  print(`\n${await metricText(await system.leader(), /^tke_eni_ipamd_problem\{.*n2/)}\n`);
  const waiting = PODS.filter((name) => !podsOf(system).some((pod) => pod.name === name));
  if (waiting.length === 0) fault('act 1: no Pod had to wait for an address');

  progress(`act 1: no address for ${waiting.join(', ')}; ${SUBNET_B.subnetId} is added to the ConfigMap`);
  const startMs = performance.now();
  await system.configure({ TKE_ENI_IPAMD_SUBNET_ID: `${SUBNET_A.subnetId}:${SUBNET_B.subnetId}` });
  const pods = await awaitPods(system, PODS);
  const took = secondsSince(startMs);
  progress(`act 1: all run ${took} later`);
  const isSame = pidsOf(stage) === pids;
  const which = pods.map((pod) => `${pod.name} with ${pod.ip}`).join(', ');
  const change = `${SUBNET_B.subnetId} (${SUBNET_B.cidr}) is added to the ConfigMap tke-eni-ipamd`;
  const restarts = isSame ? 'none' : 'SOME';
  print(wrapText(`Recovery: ${change}. All run ${took} later: ${which}. Processes restarted: ${restarts}.`, '  '));
  if (!isSame) fault(`act 1: processes were ${pids}, are ${pidsOf(stage)}`);
  if (!pods.some((pod) => pod.ip.startsWith('10.0.2.'))) fault('act 1: no Pod has an address of the new subnet');
}

function usedOf({ system }: Stage, subnetId: string): number {
  const enis = [...system.cloud.host.model.state.enis.values()].filter((eni) => eni.subnetId === subnetId);
  return enis.reduce((sum, eni) => sum + eni.ips.size, 0);
}

/** The processes of ipamd and the agents. */
function pidsOf({ system }: Stage): string {
  return [...system.ipamds.map(({ pid }) => pid), ...system.nodes.map((node) => node.agentPid)].join(' ');
}
