import test from 'ava';
import type { KubeObject } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditOnce } from '../system/audit-three-ways.ts';
import type { Cut } from '../system/door.ts';
import { createSystem, type System } from '../system/system.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';

/** So long that a task is seen while it runs. */
const TASK_MS = 3_000;
let system: System;

test.before(async () => {
  system = await createSystem({
    nodes: [{ name: 'n1' }, { name: 'n2' }],
    ipamds: 0,
    joinsAll: false,
    taskMs: [TASK_MS, TASK_MS],
  });
});
test.after.always(() => system?.close());

/** Asks the API server from inside a node; the text says how it went. Who is not to get an answer gives up sooner. */
async function askFrom(node: string, limitMs = 30_000): Promise<string> {
  const script = `
    const answer = await fetch('http://127.0.0.1:6443/healthz', { signal: AbortSignal.timeout(${limitMs}) }).then(
      (response) => response.text(), (error) => error.cause?.code ?? error.name);
    process.stdout.write(answer);`;
  return system.cloud.vpc.node(node).netns.run([process.execPath, '--input-type=module', '-e', script]);
}

test.serial('openDoor: leads from inside a node to the server of this process, unless it is shut', async (t) => {
  t.is(await askFrom('n1'), 'ok');
  const { kube } = system.node('n1');
  const cuts: readonly (readonly [Cut, RegExp])[] = [
    ['silent', /Timeout/],
    ['refused', /ECONNREFUSED|ECONNRESET/],
  ];
  for (const [cut, answer] of cuts) {
    await kube.cut(cut);
    t.regex(await askFrom('n1', cut === 'silent' ? 1_500 : undefined), answer);
    t.is(await askFrom('n2'), 'ok');
    await kube.heal();
    t.is(await askFrom('n1'), 'ok');
  }
});

function serve(action: string, params: object): Promise<unknown> {
  return system.cloud.host.serve('vpc', action, { ...params });
}

async function createEni(): Promise<string> {
  const { vpcId } = system.cloud;
  const params = {
    VpcId: vpcId,
    SubnetId: POD_SUBNET.subnetId,
    NetworkInterfaceName: 'e',
    SecondaryPrivateIpAddressCount: 2,
  };
  await serve('CreateNetworkInterface', params);
  const eni = [...system.cloud.host.model.state.enis.values()].findLast((one) => !one.isPrimary);
  return eni?.eniId ?? '';
}

/** Describes the cloud's ENI as ipamd would in a NodeENIConfig. */
function infoOf(eniId: string) {
  const eni = system.cloud.host.model.state.eni(eniId);
  const ips = [...eni.ips.values()].filter((ip) => !ip.isPrimary);
  const addresses = ips.map(({ ip }, index) => ({ ip, assignmentID: `a${index}`, state: 'Assigned' }));
  return { eniID: eniId, mac: eni.mac, state: 'Attached', addresses };
}

async function putNec(name: string, status: object): Promise<void> {
  const { admin } = system.cluster;
  const old = await admin.get(NODE_ENI_CONFIGS, { name });
  const { apiVersion, kind } = { apiVersion: 'networking.tke.cloud.tencent.com/v1', kind: 'NodeENIConfig' };
  const object: KubeObject =
    old ?? (await admin.create(NODE_ENI_CONFIGS, { apiVersion, kind, metadata: { name }, spec: {} }));
  await admin.update(NODE_ENI_CONFIGS, { ...object, status });
}

/** Waits until the cloud has done all that it was asked for. */
async function tasksDone(): Promise<void> {
  const isRunning = async () => (await auditOnce(system)).some((line) => RUNS.test(line));
  await waitUntil(async () => !(await isRunning()), { what: 'the end of all tasks', everyMs: 100 });
}

const RUNS = /task .* runs/;

test.serial('auditThreeWays: finds what is on one side only, on two nodes, or under way', async (t) => {
  const eniId = await createEni();
  t.true((await auditOnce(system)).some((line) => line.includes(`ENI ${eniId}`) && line.includes('no NodeENIConfig')));
  await tasksDone();
  await serve('AttachNetworkInterface', { NetworkInterfaceId: eniId, InstanceId: system.cloud.instanceOf('n1') });
  await putNec('n1', { supplyEpoch: 1, eniInfos: [infoOf(eniId)] });
  await tasksDone();
  t.deepEqual(await auditOnce(system), []);

  await putNec('n2', { supplyEpoch: 1, eniInfos: [infoOf(eniId)] });
  t.true((await auditOnce(system)).some((line) => line.includes('n1 and n2')));
  await putNec('n2', { supplyEpoch: 1, eniInfos: [] });

  const [first] = infoOf(eniId).addresses;
  const fewer = { ...infoOf(eniId), addresses: first === undefined ? [] : [first] };
  await putNec('n1', { supplyEpoch: 2, eniInfos: [fewer] });
  t.true((await auditOnce(system)).some((line) => line.includes('is not in nec n1')));

  const params = { NetworkInterfaceId: eniId, PrivateIpAddresses: [{ PrivateIpAddress: first?.ip }] };
  await serve('UnassignPrivateIpAddresses', params);
  t.true((await auditOnce(system)).some((line) => RUNS.test(line)));
  await tasksDone();
  t.true((await auditOnce(system)).some((line) => line.includes(`the cloud has no ${first?.ip}`)));

  await putNec('n1', { supplyEpoch: 3, eniInfos: [{ ...infoOf(eniId), state: 'Detaching' }] });
  t.true((await auditOnce(system)).some((line) => line.includes('is Detaching')));
});
