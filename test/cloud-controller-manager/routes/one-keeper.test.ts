/** ipamd and the cloud controller manager are both told to keep the routes: one of them does, and the other says so. */
import test from 'ava';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { type RunningCcm, startCcm } from '../../../cloud-controller-manager/ccm.ts';
import { readCcmConfig } from '../../../cloud-controller-manager/config/ccm-config.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { recordOf, recordsOf } from '../../../runtime/json.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { addInstance, nodeOf, type ShellScene, shellScene } from '../../ipamd/shell/shell-scene.ts';

const MINUTE_MS = 60_000;

async function startRoutesCcm({ clock, host, server }: ShellScene): Promise<RunningCcm> {
  const argv = ['--region=ap-guangzhou', '--metrics-address=', '--routes=global', '--clusterid=cls-shell001'];
  const outcome = readCcmConfig({
    argv: [...argv, '--cluster-cidr=172.16.0.0/16', '--vpc-id=vpc-00000001', '--controllers=node-route-controller'],
    env: {},
    readFile: () => '',
  });
  if (outcome.kind !== 'run') throw new Error(`got ${outcome.kind}`);
  const random = seededRandom(77);
  const cloud = createTencentCloud({ api: createInProcessApi(host), clock, random });
  const kube = server.client({ userAgent: 'ccm' });
  return await startCcm(outcome.config, { clock, log: silentLogger, random, kube, cloud, release: 'test' });
}

/** Starts a machine, and registers its Node with a podCIDR. */
async function join({ clock, host, kube }: ShellScene, name: string, podCIDR: string): Promise<void> {
  const instanceId = `ins-shell${name}`;
  addInstance(host, instanceId);
  const [primary] = host.model.state.enisOf(instanceId);
  const [address] = primary?.ips.keys() ?? [];
  const node = nodeOf(name, instanceId);
  await clock.run(kube.create(NODES, { ...node, spec: { ...recordOf(node['spec']), podCIDR, podCIDRs: [podCIDR] } }));
  const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }];
  const body = { status: { addresses: [{ type: 'InternalIP', address }], conditions } };
  await clock.run(kube.patch(NODES, { name }, { kind: 'strategic', body, subresource: 'status' }));
}

/** Status and reason of the condition NetworkUnavailable. */
function networkOf({ server }: ShellScene, name: string): string {
  const node = server.objects('nodes').find(({ metadata }) => metadata['name'] === name);
  const conditions = recordsOf(recordOf(node?.['status'])['conditions']);
  const condition = conditions.find(({ type }) => type === 'NetworkUnavailable');
  return `${condition?.['status']} ${condition?.['reason']}`;
}

test('routes: of ipamd and the cloud controller manager one writes; the other takes over when that one ends', async (t) => {
  const scene = await shellScene();
  const { clock, host, server } = scene;
  const start = (name: string, ...flags: readonly string[]) =>
    scene.start({
      name,
      flags: ['--gr-routes=ipamd', '--cluster-cidr=172.16.0.0/16', '--record-pods=false', ...flags],
    });
  const told = (): string =>
    server
      .objects('events')
      .flatMap(({ reason, message }) => (reason === 'RoutesKeptByOther' ? [String(message)] : []))
      .join();
  await join(scene, 'n1', '172.16.1.0/24');
  const ipamd = await start('ipamd');
  await clock.advance(MINUTE_MS);
  const ccm = await startRoutesCcm(scene);
  await clock.advance(MINUTE_MS);
  const stateOf = async () =>
    /_controller\{controller="node-route-controller",state="(\w+)"\} 1/.exec(await ccm.metrics.registry.metrics())?.[1];
  t.regex(await ccm.metrics.registry.metrics(), /_problem\{kind="RoutesKeptByOther",name="tke-eni-ipamd_/);
  t.is(await stateOf(), 'waiting');
  t.regex(told(), /tke-eni-ipamd_\w+ does .*; set --gr-routes=ccm of ipamd, or --routes=none here/);
  host.forget();
  await join(scene, 'n2', '172.16.2.0/24');
  await clock.advance(MINUTE_MS);
  t.is(host.counts()['CreateGlobalRoutes'], 1);
  t.is(networkOf(scene, 'n2'), 'False RouteCreated');
  await clock.run(ipamd.close());
  const next = await start('ipamd-2', '--gr-routes=ccm');
  await clock.advance(MINUTE_MS);
  await join(scene, 'n3', '172.16.3.0/24');
  await clock.advance(MINUTE_MS);
  t.is(networkOf(scene, 'n3'), 'False RouteCreated');
  t.deepEqual([...host.model.state.globalRoutes.values()].map(({ cidr }) => cidr).toSorted(), [
    '172.16.1.0/24',
    '172.16.2.0/24',
    '172.16.3.0/24',
  ]);
  t.notRegex(await ccm.metrics.registry.metrics(), /RoutesKeptByOther/);
  t.is(await stateOf(), 'running');
  const third = await start('ipamd-3');
  await clock.run(next.close());
  await clock.advance(2 * MINUTE_MS);
  t.regex(told(), /ipamd keeps no routes of podCIDRs: tke-cloud-controller-manager_/);
  await clock.run(Promise.all([third.close(), ccm.close()]));
});
