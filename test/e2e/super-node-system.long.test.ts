import test from 'ava';
import { POD_ANNOTATION } from '../../crd/names.ts';
import { NODES, PODS, VPC_IP_CLAIMS } from '../../kube/resource-types.ts';
import { isRecord } from '../../runtime/decode.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { POD_NAMESPACE } from '../system/cluster.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';

const SUPER_NODE = 'eklet-1';
const NAME = 'web-0';
const REF = { namespace: POD_NAMESPACE, name: NAME };
const KEPT = {
  annotations: { [POD_ANNOTATION.networks]: 'tke-route-eni', [POD_ANNOTATION.deletePolicy]: 'Never' },
} as const;

let system: System;

test.before(async (t) => {
  t.timeout(240_000);
  system = await createSystem({ nodes: [{ name: 'n1' }], ipamdFlags: { 'enable-static-ip': 'true' } });
  await system.cluster.admin.create(NODES, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: SUPER_NODE,
      labels: { 'node.kubernetes.io/instance-type': 'eklet', 'topology.kubernetes.io/zone': '100003' },
    },
    spec: { providerID: 'qcloud:///1/eklet-3jk2x9ab' },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  });
  await system.awaitNec('n1', 'warm', (nec) => countAssigned(nec) >= 5);
});
test.after.always(() => system?.close());

function reservedIps(): readonly string[] {
  return [...system.cloud.host.model.state.reservedIps.reservations.values()].map(({ ip }) => ip);
}

/** What the virtual kubelet reads of the Pod: its address, if the annotation is for this Pod. */
async function allocatedIp(): Promise<string | undefined> {
  const pod = await system.cluster.admin.get(PODS, REF);
  const text = pod?.metadata.annotations?.[POD_ANNOTATION.vpcIpAllocation];
  const allocation: unknown = text === undefined ? undefined : JSON.parse(text);
  if (!isRecord(allocation) || allocation['uid'] !== pod?.metadata.uid) return undefined;
  return String(allocation['ip']);
}

async function claimStatus(): Promise<Readonly<Record<string, unknown>> | undefined> {
  const status = (await system.cluster.admin.get(VPC_IP_CLAIMS, REF))?.['status'];
  return isRecord(status) ? status : undefined;
}

async function awaitPhase(phase: string): Promise<void> {
  await waitUntil(async () => (await claimStatus())?.['phase'] === phase, { what: phase, timeoutMs: 60_000, explain });
}

function explain(): string {
  return `${reservedIps().join()}\n${system.logs().slice(-3_000)}`;
}

/** Kills the leader while the answer to a call is on its way: the cloud has done what it was asked. */
async function killAfter(action: string, isDone: () => boolean): Promise<void> {
  const leader = await system.leader();
  const remove = system.cloud.host.faults.add({ fault: { kind: 'hang', after: true }, actions: [action] });
  await waitUntil(isDone, { what: action, timeoutMs: 180_000, explain });
  await leader.kill();
  remove();
  await system.leader({ not: leader });
  leader.start();
}

test.serial(
  'a Pod of a super node: its address is reserved once, annotated and released, though each leader is killed in the middle',
  async (t) => {
    t.timeout(480_000);
    await system.cluster.addPod(NAME, SUPER_NODE, { ...KEPT, resources: [] });
    await killAfter('CreateReserveIpAddresses', () => reservedIps().length > 0);
    const ip = await waitUntil(allocatedIp, { what: 'the annotation', timeoutMs: 60_000, explain });
    t.deepEqual(reservedIps(), [ip]);
    await system.cluster.setPodRunning(NAME, ip);
    await awaitPhase('Bound');
    const { conditions } = (await claimStatus()) ?? {};
    t.true(JSON.stringify(conditions).includes('"Published","status":"True"'), JSON.stringify(conditions));

    // The next of its name is on a node with ENIs, and has the address there.
    await system.cluster.removePod(NAME);
    await awaitPhase('Retained');
    t.deepEqual(reservedIps(), [ip]);
    const pod = await system.node('n1').runPod(NAME, { marks: KEPT });
    t.is(pod.ip, ip);
    t.deepEqual(reservedIps(), [ip]);
    t.deepEqual(await auditThreeWays(system), []);
    await system.node('n1').removePod(NAME);
    await awaitPhase('Retained');

    await system.cluster.admin.delete(VPC_IP_CLAIMS, REF);
    await killAfter('DeleteReserveIpAddresses', () => reservedIps().length === 0);
    await waitUntil(async () => (await system.cluster.admin.get(VPC_IP_CLAIMS, REF)) === undefined, {
      what: 'the end of the claim',
      timeoutMs: 60_000,
      explain,
    });
    t.deepEqual(reservedIps(), []);
    t.deepEqual(await auditThreeWays(system), []);
  },
);
