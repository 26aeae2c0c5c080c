import test from 'ava';
import {
  DIRECT_ENI_CONDITION,
  DIRECT_ENI_RESOURCE,
  ENI_IP_CONDITION,
  ENI_IP_RESOURCE,
  STARTUP_TAINT_KEY,
} from '../../crd/names.ts';
import { NODES } from '../../kube/resource-types.ts';
import { isRecord } from '../../runtime/decode.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';

// What people and autoscalers see on the Node object while a node lacks what it is to serve.

const NODE = 'n1';
const FOREIGN_TAINT = { key: 'example.com/of-others', effect: 'NoSchedule' } as const;
const STARTUP_TAINT = { key: STARTUP_TAINT_KEY, effect: 'NoSchedule' } as const;

let system: System;

test.before(async (t) => {
  t.timeout(240_000);
  const ipamdFlags = { 'enable-node-condition': 'true', 'enable-direct-eni': 'true' };
  system = await createSystem({ nodes: [{ name: NODE }], ipamds: 1, vpcEnis: 0, joinsAll: false, ipamdFlags });
});
test.after.always(() => system?.close());

function explain(): string {
  return `${eventsOf('Node').join('\n')}\n${system.logs().slice(-3_000)}`;
}

/** The events of a kind of object, each as `REASON: MESSAGE (TIMES)`: one that is repeated is counted. */
function eventsOf(kind: string): readonly string[] {
  const all = system.cluster.server.objects('events');
  const ofKind = all.filter(({ involvedObject }) => isRecord(involvedObject) && involvedObject['kind'] === kind);
  return ofKind.map(({ reason, message, count }) => `${String(reason)}: ${String(message)} (${String(count)})`);
}

/** Waits for an event of the Node that was not there before, and returns it. */
async function awaitEvent(reason: string, before: readonly string[]): Promise<string> {
  const find = () => eventsOf('Node').find((text) => text.startsWith(`${reason}: `) && !before.includes(text));
  return await waitUntil(find, { what: `event ${reason} of the Node`, timeoutMs: 90_000, explain });
}

/** Tells whether the text has the id of a request that the cloud refused, and its code. */
function isRefusedRequest(text: string): boolean {
  const [, id] = /RequestId=([0-9a-f-]{36})/.exec(text) ?? [];
  return system.cloud.host.seen.some(({ requestId, code }) => requestId === id && text.includes(code));
}

async function fieldOf(part: 'spec' | 'status', field: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const node = await system.cluster.admin.get(NODES, { name: NODE });
  const fields = isRecord(node?.[part]) ? node[part] : {};
  const list = fields[field];
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

async function conditionOf(type: string): Promise<string | undefined> {
  const found = (await fieldOf('status', 'conditions')).find((one) => one['type'] === type);
  return found && `${String(found['status'])} ${String(found['reason'])}`;
}

async function awaitConditions(expected: string): Promise<void> {
  for (const type of [ENI_IP_CONDITION, DIRECT_ENI_CONDITION])
    await waitUntil(async () => (await conditionOf(type)) === expected, {
      what: `${type} ${expected}`,
      timeoutMs: 60_000,
      explain,
    });
}

async function taintKeys(): Promise<readonly unknown[]> {
  return (await fieldOf('spec', 'taints')).map(({ key }) => key);
}

test.serial(
  'ENILimit, the conditions and startup taints of a new node: until it serves, and kubelet offers it',
  async (t) => {
    t.timeout(240_000);
    await system.join(NODE);
    const taints = [STARTUP_TAINT, FOREIGN_TAINT];
    await system.cluster.admin.patch(NODES, { name: NODE }, { kind: 'merge', body: { spec: { taints } } });
    const text = await awaitEvent('ENILimit', []);
    t.regex(text, /LimitExceeded/);
    t.true(isRefusedRequest(text), text);
    await awaitConditions('True NotServing');
    t.deepEqual(await taintKeys(), [STARTUP_TAINT.key, FOREIGN_TAINT.key]);

    const before = eventsOf('Node');
    system.cloud.host.model.state.vpcEniQuota = 100;
    await awaitEvent('SupplyMet', before);
    await system.node(NODE).awaitReady();
    await awaitConditions('False Serving');
    // The agent serves; an autoscaler counts what kubelet offers.
    t.deepEqual(await taintKeys(), [STARTUP_TAINT.key, FOREIGN_TAINT.key]);
    const allocatable = { [ENI_IP_RESOURCE]: '10', [DIRECT_ENI_RESOURCE]: '2' };
    const offer = { kind: 'merge', body: { status: { allocatable } }, subresource: 'status' } as const;
    await system.cluster.admin.patch(NODES, { name: NODE }, offer);
    await waitUntil(async () => !(await taintKeys()).includes(STARTUP_TAINT.key), {
      what: 'no startup taint',
      timeoutMs: 60_000,
      explain,
    });
    t.deepEqual(await taintKeys(), [FOREIGN_TAINT.key]);
  },
);

test.serial('SubnetExhausted: others took the last addresses, and the cloud refuses the call', async (t) => {
  t.timeout(240_000);
  const before = eventsOf('Node');
  const { pool } = system.cloud.host.model.state.subnet(POD_SUBNET.subnetId);
  const taken: string[] = [];
  while (pool.free > 0) taken.push(pool.take());
  const nec = await system.nec(NODE);
  const warm = nec === undefined ? 0 : countAssigned(nec);
  for (let index = 0; index < Math.min(warm, 3); index++) await system.node(NODE).runPod(`full-${index}`);
  const text = await awaitEvent('SubnetExhausted', before);
  t.true(isRefusedRequest(text), text);
  for (const ip of taken) pool.give(ip);
  await awaitEvent('SupplyMet', [...before, text]);
  t.deepEqual(await auditThreeWays(system), []);
});

test.serial('CloudRefused: an address is refused, others keep theirs, and it is over with the next try', async (t) => {
  t.timeout(240_000);
  const before = eventsOf('Node');
  const fault = { kind: 'error', code: 'InvalidParameterValue.Malformed' } as const;
  const mend = system.cloud.host.faults.add({ fault, actions: ['AssignPrivateIpAddresses', 'CreateNetworkInterface'] });
  for (let index = 0; index < 3; index++) await system.node(NODE).runPod(`refused-${index}`);
  const text = await awaitEvent('CloudRefused', before);
  t.regex(text, /InvalidParameterValue\.Malformed/);
  t.true(isRefusedRequest(text), text);
  mend();
  await awaitEvent('SupplyMet', [...before, text]);
  t.deepEqual(await auditThreeWays(system), []);
});
