import test from 'ava';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../../kube/resource-types.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { shellScene } from './shell-scene.ts';

test('startIpamd: installs the definitions, leads, and makes a NodeENIConfig for each node', async (t) => {
  const scene = await shellScene();
  const ipamd = await scene.start();
  t.regex(ipamd.readiness() ?? '', /definitions/);
  await scene.until(() => ipamd.isLeading && ipamd.readiness() === undefined);
  const definition = await scene.clock.run(
    scene.kube.get(CUSTOM_RESOURCE_DEFINITIONS, { name: 'nodeeniconfigs.networking.tke.cloud.tencent.com' }),
  );
  t.truthy(definition);
  await scene.join('n1');
  await scene.until(() => scene.nec('n1') !== undefined);
  await scene.clock.run(ipamd.close());
});

test('startIpamd: lets a standby take over at once when the leader ends in order', async (t) => {
  const scene = await shellScene();
  const first = await scene.start({ name: 'first' });
  await scene.until(() => first.isLeading);
  const second = await scene.start({ name: 'second' });
  await scene.until(() => second.readiness() === undefined);
  t.false(second.isLeading);
  await scene.clock.run(first.close());
  t.false(first.isLeading);
  const startedMs = scene.clock.monotonicMs();
  await scene.until(() => second.isLeading);
  // The lock was released: nobody waits for the lease of thirty seconds.
  t.true(scene.clock.monotonicMs() - startedMs < 15_000);
  await scene.join('n1');
  await scene.until(() => scene.nec('n1') !== undefined);
  await scene.clock.run(second.close());
});

test('startIpamd: stops leading when it cannot reach the API server, and leads again later', async (t) => {
  const scene = await shellScene();
  const ipamd = await scene.start({ name: 'alone' });
  await scene.until(() => ipamd.isLeading);
  const { heal } = scene.server.partition('alone');
  await scene.until(() => !ipamd.isLeading);
  heal();
  await scene.until(() => ipamd.isLeading);
  await scene.join('n1');
  await scene.until(() => scene.nec('n1') !== undefined);
  t.is(ipamd.readiness(), undefined);
  await scene.clock.run(ipamd.close());
});

test('close: ends a standby, one that does not reach the API server, and one without a lock', async (t) => {
  const scene = await shellScene();
  const leader = await scene.start({ name: 'leader' });
  await scene.until(() => leader.isLeading);
  const standby = await scene.start({ name: 'standby' });
  await scene.until(() => standby.readiness() === undefined);
  scene.server.partition('cut-off');
  const cutOff = await scene.start({ name: 'cut-off' });
  await scene.clock.advance(5_000);
  t.regex(cutOff.readiness() ?? '', /UNAVAILABLE/);
  const noLock = await scene.start({ name: 'no-lock', flags: ['--leader-elect=false'] });
  await scene.until(() => noLock.isLeading);
  await scene.clock.run(Promise.all([leader, standby, cutOff, noLock].map((ipamd) => ipamd.close())));
  await t.notThrowsAsync(Promise.all([leader.ended, standby.ended, cutOff.ended, noLock.ended]));
});

test('startIpamd: a fault in one controller ends ipamd with that fault, and releases the lock', async (t) => {
  const scene = await shellScene();
  const fault = new Error('a fault of ipamd');
  const warn = (text: string): void => {
    if (text === 'audit skipped') throw fault;
  };
  const ipamd = await scene.start({ name: 'first', flags: ['--sync-interval=1m'], log: { ...silentLogger, warn } });
  await scene.until(() => ipamd.isLeading);
  await scene.join('n1');
  await scene.until(() => scene.nec('n1') !== undefined);
  let ended: unknown;
  ipamd.ended.catch((error: unknown) => {
    ended = error;
  });
  scene.host.faults.add({ fault: { kind: 'http', status: 502 }, actions: ['DescribeNetworkInterfaces'] });
  await scene.until(() => ended !== undefined);
  t.is(ended, fault);
  t.false(ipamd.isLeading);
  scene.host.faults.clear();
  const startedMs = scene.clock.monotonicMs();
  const second = await scene.start({ name: 'second' });
  await scene.until(() => second.isLeading);
  t.true(scene.clock.monotonicMs() - startedMs < 15_000);
  await scene.clock.run(second.close());
});

test('startIpamd: counts nodes, leading and what the API server said', async (t) => {
  const scene = await shellScene();
  const ipamd = await scene.start();
  await scene.join('n1');
  await scene.until(() => scene.nec('n1') !== undefined);
  await scene.clock.advance(1_000);
  const text = await ipamd.metrics.registry.metrics();
  t.regex(text, /^tke_eni_ipamd_leader 1$/m);
  t.regex(text, /^tke_eni_ipamd_informer_synced\{resource="necs"\} 1$/m);
  t.regex(text, /^tke_eni_ipamd_node_configs_total\{kind="created"\} 1$/m);
  t.regex(text, /^tke_eni_ipamd_subnet_free_addresses\{subnet="subnet-pods0001",zone="ap-guangzhou-3"\} \d+$/m);
  await scene.clock.run(ipamd.close());
  t.regex(await ipamd.metrics.registry.metrics(), /^tke_eni_ipamd_leader 0$/m);
});

type Status = {
  readonly intents?: readonly object[];
  readonly eniInfos?: readonly { readonly eniID: string; readonly state: string }[];
};

test('close: lets calls under way end and records them, before the lock is released', async (t) => {
  const scene = await shellScene();
  const ipamd = await scene.start();
  await scene.until(() => ipamd.isLeading);
  await scene.join('n1');
  const statusOf = (): Status => (scene.nec('n1')?.['status'] ?? {}) as Status;
  await scene.until(() => (statusOf().intents ?? []).length > 0);
  await scene.clock.run(ipamd.close());
  t.deepEqual(statusOf().intents, []);
  t.deepEqual(
    statusOf().eniInfos?.map(({ state }) => state),
    ['Attached'],
  );
});

test('close: ends within its grace when the cloud hangs, and the next leader finds out what became of the call', async (t) => {
  const scene = await shellScene();
  const first = await scene.start({ name: 'first', flags: ['--shutdown-grace=5s'] });
  await scene.until(() => first.isLeading);
  const mend = scene.host.faults.add({ fault: { kind: 'hang', after: true }, actions: ['CreateNetworkInterface'] });
  await scene.join('n1');
  const statusOf = (): Status => (scene.nec('n1')?.['status'] ?? {}) as Status;
  await scene.until(() => (statusOf().intents ?? []).length > 0);
  await scene.clock.advance(1_000);
  const startedMs = scene.clock.monotonicMs();
  await scene.clock.run(first.close());
  t.true(scene.clock.monotonicMs() - startedMs <= 6_000);
  mend();
  const second = await scene.start({ name: 'second' });
  await scene.until(() => statusOf().eniInfos?.some(({ state }) => state === 'Attached') === true);
  await scene.clock.advance(60_000);
  const made = [...scene.host.model.state.enis.values()].filter((eni) => eni.tags['tke-node'] === 'n1');
  t.deepEqual(
    made.map((eni) => eni.eniId),
    statusOf().eniInfos?.map((eni) => eni.eniID),
  );
  await scene.clock.run(second.close());
});
