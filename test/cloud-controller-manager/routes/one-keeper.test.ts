/** ipamd and the cloud controller manager are both told to keep the routes: one of them does, and the other says so. */
import test from 'ava';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { type RunningCcm, startCcm } from '../../../cloud-controller-manager/ccm.ts';
import { readCcmConfig } from '../../../cloud-controller-manager/config/ccm-config.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { type RoutesScene, routesScene } from '../../ipamd/pod-cidrs/routes-scene.ts';

const MINUTE_MS = 60_000;

async function startRoutesCcm({ shell }: RoutesScene): Promise<RunningCcm> {
  const argv = ['--region=ap-guangzhou', '--metrics-address=', '--routes=global', '--clusterid=cls-shell001'];
  const outcome = readCcmConfig({
    argv: [...argv, '--cluster-cidr=172.16.0.0/16', '--vpc-id=vpc-00000001', '--controllers=node-route-controller'],
    env: {},
    readFile: () => '',
  });
  if (outcome.kind !== 'run') throw new Error(`got ${outcome.kind}`);
  const { clock, host, server } = shell;
  const random = seededRandom(77);
  const cloud = createTencentCloud({ api: createInProcessApi(host), clock, random });
  const kube = server.client({ userAgent: 'ccm' });
  return await startCcm(outcome.config, { clock, log: silentLogger, random, kube, cloud, release: 'test' });
}

test('routes: of ipamd and the cloud controller manager one writes; the other takes over when that one ends', async (t) => {
  const scene = await routesScene();
  const { clock, host } = scene.shell;
  await scene.join('n1', '172.16.1.0/24');
  const ipamd = await scene.start();
  await clock.advance(MINUTE_MS);
  const ccm = await startRoutesCcm(scene);
  await clock.advance(MINUTE_MS);
  const stateOf = async () =>
    /_controller\{controller="node-route-controller",state="(\w+)"\} 1/.exec(await ccm.metrics.registry.metrics())?.[1];
  t.regex(await ccm.metrics.registry.metrics(), /_problem\{kind="RoutesKeptByOther",name="tke-eni-ipamd_/);
  t.is(await stateOf(), 'waiting');
  t.regex(
    scene.events('RoutesKeptByOther').join(),
    /tke-eni-ipamd_\w+ does .*; set --gr-routes=ccm of ipamd, or --routes=none here/,
  );
  host.forget();
  await scene.join('n2', '172.16.2.0/24');
  await clock.advance(MINUTE_MS);
  t.is(host.counts()['CreateGlobalRoutes'], 1);
  t.is(scene.networkOf('n2'), 'False RouteCreated');
  await clock.run(ipamd.close());
  const next = await scene.start('ipamd-2', '--gr-routes=ccm');
  await clock.advance(MINUTE_MS);
  await scene.join('n3', '172.16.3.0/24');
  await clock.advance(MINUTE_MS);
  t.is(scene.networkOf('n3'), 'False RouteCreated');
  t.deepEqual(
    scene
      .routes()
      .map(({ cidr }) => cidr)
      .toSorted(),
    ['172.16.1.0/24', '172.16.2.0/24', '172.16.3.0/24'],
  );
  t.notRegex(await ccm.metrics.registry.metrics(), /RoutesKeptByOther/);
  t.is(await stateOf(), 'running');
  const third = await scene.start('ipamd-3', '--gr-routes=ipamd');
  await clock.run(next.close());
  await clock.advance(2 * MINUTE_MS);
  t.regex(scene.events('RoutesKeptByOther').join(), /ipamd keeps no routes of podCIDRs: tke-cloud-controller-manager_/);
  await clock.run(Promise.all([third.close(), ccm.close()]));
});
