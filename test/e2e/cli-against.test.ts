import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { observeNode } from '../../cli/commands/diff/observe-node.ts';
import { compareNode } from '../../inspection/judge/compare-node.ts';
import { buildExecutables } from '../../tools/build.ts';
import { openDoor } from '../system/door.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';
import type { SystemPod } from '../system/system-node.ts';
import { askCli, type CliPlace, listOf, runCli } from './support/run-cli.ts';

// A whole system: ipamd, an agent, the cloud and the cluster. Then each of these tells another story than the node.

/** Free in the node: the other services of a system have ports of their own. */
const CLOUD_PORT = 6480;

let system: System;
let pod: SystemPod;
let place: CliPlace;
let closeDoor = (): void => undefined;

const CLOUD = ['--cloud', '--region', 'ap-guangzhou', '--endpoint', `http://127.0.0.1:${CLOUD_PORT}`] as const;

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
  system = await createSystem({ nodes: [{ name: 'n1' }], ipamds: 1 });
  await system.awaitNec('n1', 'warm addresses', (nec) => countAssigned(nec) >= 5);
  const node = system.node('n1');
  await node.awaitReady();
  pod = await node.runPod('p1');
  const { netns } = system.cloud.vpc.node('n1');
  const { cloud, cluster } = system;
  closeDoor = openDoor(netns, CLOUD_PORT, (socket) => cloud.server.accept(socket)).close;
  const { path } = cluster.kubeconfig('tke-eni-agent', `${node.scene.dir}`, node.kube.address);
  const { secretId, secretKey } = cloud.key;
  const { stateDir, socketPath } = node.scene.agent;
  const env = { TENCENTCLOUD_SECRET_ID: secretId, TENCENTCLOUD_SECRET_KEY: secretKey, KUBECONFIG: path };
  place = { netns, stateDir, socketPath, env };
});
test.after.always(async () => {
  closeDoor();
  await system?.close();
});

test.serial('tke-eni diff: agrees with the NodeENIConfig and the cloud of a healthy node', async (t) => {
  const { code, document } = await askCli(place, 'diff', '--nec', ...CLOUD);
  t.is(code, 0, JSON.stringify(document));
  t.deepEqual(document['differences'], []);
});

test.serial('tke-eni diff --cloud: names the Pod whose address the cloud took away', async (t) => {
  const eni = [...system.cloud.host.model.state.enis.values()].find((one) => !one.isPrimary);
  const params = { NetworkInterfaceId: eni?.eniId, PrivateIpAddresses: [{ PrivateIpAddress: pod.ip }] };
  await system.cloud.host.serve('vpc', 'UnassignPrivateIpAddresses', params);
  const { code, document } = await askCli(place, 'diff', ...CLOUD);
  t.is(code, 1);
  const found = listOf(document, 'differences').find(({ id }) => id === 'address-not-assigned');
  t.regex(String(found?.['what']), new RegExp(`the cloud does not have ${pod.ip.replaceAll('.', '\\.')}`));
  t.is(found?.['isOurs'], false);
});

test.serial('tke-eni diff --nec: names what the NodeENIConfig does not have', async (t) => {
  // Nobody mends it, and the agent keeps what it has: it lives through an outage of any length.
  await Promise.all(system.ipamds.map((ipamd) => ipamd.stop()));
  await system.node('n1').scene.killAgent();
  await system.patchNec('n1', { status: { eniInfos: [] } });
  const { code, document } = await askCli(place, 'diff', '--nec');
  t.is(code, 1);
  const found = listOf(document, 'differences').map(({ id }) => id);
  t.true(found.includes('eni-not-attached'), JSON.stringify(document));
});

test.serial('observeNode: a route that the agent made before it wrote its record is no difference', async (t) => {
  const path = join(place.stateDir, 'node.json');
  const record = readFileSync(path, 'utf8');
  const { node, ...rest } = JSON.parse(record);
  const { stateDir, socketPath: socket, netns } = place;
  const global = { stateDir, socket, netns: netns.name, hostRoot: '/', agentTimeoutMs: 10_000, kubeconfig: '' };
  const stale = async (pause: () => Promise<void>) => {
    writeFileSync(path, JSON.stringify({ ...rest, node: { ...node, assignedIps: node.assignedIps.slice(1) } }));
    return compareNode(await observeNode({ global }, pause)).differences.filter(({ id }) => id === 'route-stale');
  };
  t.is((await stale(async () => undefined)).length, 1);
  t.deepEqual(await stale(async () => writeFileSync(path, record)), []);
});

test.serial('tke-eni diff: says why nobody could be asked', async (t) => {
  const env = { ...place.env, TENCENTCLOUD_SECRET_KEY: 'wrong' };
  const refused = await runCli({ ...place, env }, 'diff', ...CLOUD);
  t.is(refused.code, 2);
  t.regex(refused.stderr, /the cloud did not answer/);
  const nowhere = await runCli({ ...place, env: { KUBECONFIG: '/nowhere' } }, 'diff', '--nec');
  t.is(nowhere.code, 2);
  t.regex(nowhere.stderr, /nowhere/);
});
