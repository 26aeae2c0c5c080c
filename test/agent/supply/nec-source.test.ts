import test from 'ava';
import { openNecSource } from '../../../agent/supply/nec-source.ts';
import type { ObservedNec } from '../../../agent/supply/publication.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { installKinds } from '../../../sim/kube-api/install-kinds.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const NAME = 'n1';
const BARE = { apiVersion: 'networking.tke.cloud.tencent.com/v1', kind: 'NodeENIConfig', metadata: { name: NAME } };
const SLOW_MS = 5_000;

/** A source whose reads of one object are answered late, by what was so when they were asked. */
async function openScene() {
  const clock = new VirtualClock();
  const api = startInProcessApi({ clock });
  const admin = api.client();
  await installKinds(admin);
  await admin.create(NODE_ENI_CONFIGS, BARE);
  const direct = api.client({ userAgent: 'agent' });
  const client: KubeClient = {
    ...direct,
    get: async (type, ref, signal) => {
      const answer = await direct.get(type, ref, signal);
      await clock.sleep(SLOW_MS, signal);
      return answer;
    },
    watch: async function* (type, query, signal, onOpen) {
      for await (const event of direct.watch(type, query, signal, onOpen)) {
        await clock.sleep(lag.ms, signal);
        yield event;
      }
    },
  };
  const lag = { ms: 0 };
  const isInUse = () => false;
  const source = openNecSource({
    background: runInBackground,
    client,
    nodeName: NAME,
    clock,
    log: silentLogger,
    random: () => 0.5,
    isInUse,
    inForce: () => undefined,
  });
  const write = async (maxRouteENI: number, maxIPPerENI = 1): Promise<void> => {
    const change = (object: KubeObject) => ({ ...object, spec: { maxRouteENI, maxIPPerENI } });
    await clock.run(updateGuarded(admin, NODE_ENI_CONFIGS, { name: NAME }, change));
    await clock.advance(1);
  };
  return { clock, api, source, write, lag };
}

test('NecSource: misses no change that comes while a restored object is read', async (t) => {
  const { clock, api, source, write } = await openScene();
  t.teardown(() => source.close());
  await clock.advance(1_000);
  const backup = api.api.store.snapshot();
  for (let count = 10; count < 20; count++) await write(count);
  t.is(source.latest()?.warm.limit, 19);
  api.restore(backup);
  await clock.advance(SLOW_MS / 2);
  await write(3);
  await clock.advance(60_000);
  t.is(source.latest()?.warm.limit, 3);
});

test('NecSource: takes nothing of an object that was deleted when it knows the one made again', async (t) => {
  const { clock, api, source, write, lag } = await openScene();
  t.teardown(() => source.close());
  await clock.advance(1_000);
  lag.ms = 60_000;
  await write(9);
  const admin = api.client();
  await clock.run(admin.delete(NODE_ENI_CONFIGS, { name: NAME }));
  await clock.run(admin.create(NODE_ENI_CONFIGS, { ...BARE, spec: { maxRouteENI: 5, maxIPPerENI: 1 } }));
  const own = { desired: 1, releasable: [], observedEpoch: 0, readyResources: [], life: 'life' };
  await clock.run(source.publish(() => own, new AbortController().signal));
  const limits: (number | undefined)[] = [];
  source.subscribe((event) => event.kind === 'supply' && limits.push(event.supply.warm.limit));
  await clock.advance(300_000);
  t.deepEqual([...new Set(limits)], [5]);
});

test('NecSource: believes in a restored object that lacks a write which the watch never brought', async (t) => {
  const { clock, api, source, write } = await openScene();
  t.teardown(() => source.close());
  await clock.advance(1_000);
  await write(4);
  const backup = api.api.store.snapshot();
  api.api.faults.add({ userAgent: 'agent', verbs: ['watch'], action: { kind: 'watch-delay', ms: 60_000 } });
  api.cutWatches();
  await clock.advance(5_000);
  const own = { desired: 1, releasable: [], observedEpoch: 0, readyResources: [], life: 'life' };
  await clock.run(source.publish(() => own, new AbortController().signal));
  await clock.advance(1_000);
  t.is(source.asked(), 1);
  api.restore(backup);
  await clock.advance(120_000);
  t.is(source.asked(), undefined);
});

test('NecSource: an answer that the watch has overtaken changes nothing', async (t) => {
  const { clock, source, write, lag } = await openScene();
  t.teardown(() => source.close());
  await clock.advance(1_000);
  lag.ms = 2_000;
  await write(4);
  const limits: (number | undefined)[] = [];
  source.subscribe((event) => event.kind === 'supply' && limits.push(event.supply.warm.limit));
  const own = { desired: 1, releasable: [], observedEpoch: 0, readyResources: [], life: 'life' };
  const published = source.publish(() => own, new AbortController().signal);
  // The read after the conflict has begun; its answer comes in five seconds, and this in two.
  await clock.advance(100);
  await write(7);
  await clock.run(published);
  await clock.advance(60_000);
  t.deepEqual([...new Set(limits.slice(limits.indexOf(7)))], [7]);
});

test('NecSource: counts the places on ENIs by a lower limit of an annotation, as ipamd does', async (t) => {
  const { clock, api, source } = await openScene();
  t.teardown(() => source.close());
  const admin = api.client();
  const status = {
    supplyEpoch: 1,
    eniInfos: [
      {
        ...{ eniID: 'eni-1', mac: '02:00:00:00:00:01', state: 'Attached', subnetID: 'subnet-1' },
        addresses: [{ ip: '10.0.0.5', assignmentID: 'a', state: 'Assigned' }],
      },
    ],
  };
  const change = (object: KubeObject): KubeObject => ({
    ...object,
    metadata: {
      ...object.metadata,
      annotations: { 'tke.cloud.tencent.com/max-ip-per-route-eni': '3' },
    },
    ...{ spec: { maxRouteENI: 2, maxIPPerENI: 9 }, status },
  });
  await clock.run(updateGuarded(admin, NODE_ENI_CONFIGS, { name: NAME }, change));
  await clock.advance(1_000);
  const seen: (number | undefined)[] = [];
  const plan = ({ eniPlaces }: ObservedNec) => {
    seen.push(eniPlaces);
    return undefined;
  };
  await clock.run(source.publish(plan, AbortSignal.timeout(60_000)));
  t.is(seen.at(-1), 2);
});
