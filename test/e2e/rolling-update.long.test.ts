import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../runtime/clock.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type BalancedSystem, balanceSystem } from '../system/balanced/balanced-system.ts';
import { Deployment, type Ending } from '../system/balanced/deployment.ts';
import { type LoadReport, type LoadTarget, startLoad } from '../system/balanced/load.ts';
import type { AtEnd } from '../system/balanced/web-pod.ts';
import { createSystem, type System } from '../system/system.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';

// Rolling updates of Pods behind load balancers under load: direct, by node ports with the policies Cluster and Local, all at
// once; connections of TCP that are kept and used once, the same of UDP. (UDP with Local is refused.)

/** 20, by what their servers do at SIGTERM. */
const PODS = { finish: 8, ignore: 6, exit: 6 } as const satisfies Readonly<Record<AtEnd, number>>;
const REPLACED = 3;
const REQUESTS = 20_000;
const ENDS = ['finish', 'ignore', 'exit'] as const;
const INTERNAL = { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': POD_SUBNET.subnetId } as const;
const DIRECT = { ...INTERNAL, 'service.cloud.tencent.com/direct-access': 'true' } as const;
const BOTH = ['TCP', 'UDP'].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: 80 }));
const ENDING: Ending = { preStopMs: 5_000, graceMs: 3_000 };
/** Longer than another replica needs to lead and to set weights. */
const LONG_ENDING: Ending = { preStopMs: 20_000, graceMs: 3_000 };

let system: System;
let cluster: BalancedSystem;
let web: Deployment;
let targets: readonly LoadTarget[];

test.before(async (t) => {
  t.timeout(400_000);
  system = await createSystem({
    nodes: [{ name: 'n1' }, { name: 'n2' }, { name: 'client' }],
    joinsAll: false,
    ipamds: 1,
  });
  const nodes = [system.node('n1'), system.node('n2')];
  await Promise.all(nodes.map(({ name }) => system.join(name)));
  cluster = await balanceSystem(system, nodes, { replicas: 2 });
  await Promise.all(nodes.map((node) => node.awaitReady()));
  const balance = (name: string, annotations: Readonly<Record<string, string>>, spec: object) =>
    cluster.balance({ name, app: 'web', annotations, spec });
  const [direct, any, local] = await Promise.all([
    balance('direct', DIRECT, { ports: BOTH }),
    balance('cluster', INTERNAL, { ports: BOTH }),
    balance('local', INTERNAL, { externalTrafficPolicy: 'Local' }),
  ]);
  web = new Deployment(cluster, nodes, 'web');
  const names: string[] = [];
  for (const atEnd of ENDS) names.push(...(await web.start(PODS[atEnd], atEnd)));
  await web.awaitReady(names);
  const { netns } = system.cloud.vpc.node('client');
  for (const vip of [direct, any, local]) await cluster.awaitAnswer(netns, vip);
  const ways = [
    ...[direct, any, local].map((host) => ({ host, port: 80, protocol: 'TCP' as const })),
    ...[direct, any].map((host) => ({ host, port: 80, protocol: 'UDP' as const })),
  ];
  targets = ways.flatMap((way) => [
    { ...way, isKept: true, count: 8 },
    { ...way, isKept: false, count: 5 },
  ]);
});
test.after.always(() => cluster?.close() ?? system?.close());

/** Replaces Pods under load. */
async function update(
  atEnd: AtEnd,
  ending: Ending,
  meanwhile = async (): Promise<void> => undefined,
): Promise<LoadReport> {
  const load = startLoad(system.cloud.vpc.node('client').netns, targets, REQUESTS);
  await systemClock.sleep(1_000);
  await Promise.all([web.replace(REPLACED, atEnd, ending), meanwhile()]);
  await systemClock.sleep(2_000);
  return await load.stop();
}

function assertNoneFailed(t: ExecutionContext, report: LoadReport): void {
  t.log(`figure: ${report.requests} requests by ${report.connections} connections, ${report.failed} failed`);
  t.true(report.requests >= REQUESTS && Object.keys(report.answers).length >= 20);
  t.deepEqual(report.failures, []);
  t.is(report.failed, 0);
}

for (const atEnd of ENDS) {
  test.serial(`Pods that ${atEnd} at SIGTERM are replaced: no request fails`, async (t) => {
    t.timeout(300_000);
    assertNoneFailed(t, await update(atEnd, ENDING));
  });
}

test.serial('the controller is killed while Pods end: no request fails', async (t) => {
  t.timeout(300_000);
  const isDeleted = (): boolean =>
    system.cluster.server.objects('pods').some(({ metadata }) => metadata.deletionTimestamp !== undefined);
  const leaders = cluster.ccms.filter((ccm) => ccm.leads());
  t.is(leaders.length, 1);
  const kill = async (): Promise<void> => {
    await waitUntil(isDeleted, { what: 'a Pod that is deleted', timeoutMs: 120_000, everyMs: 10 });
    for (const ccm of leaders) await ccm.kill();
  };
  assertNoneFailed(t, await update('exit', LONG_ENDING, kill));
  for (const ccm of leaders) ccm.start();
});

test.serial('a planted fault, weights that are never set: requests fail', async (t) => {
  t.timeout(300_000);
  const fault = { kind: 'error', code: 'FailedOperation' } as const;
  const mend = system.cloud.host.faults.add({ fault, actions: ['BatchModifyTargetWeight'] });
  const report = await update('exit', ENDING);
  mend();
  t.log(`figure: ${report.requests} requests, ${report.failed} failed, as ${report.failures[0]}`);
  t.true(report.failed > 0);
});
