import test from 'ava';
import type { Cloud, Instance } from '../../../cloud/cloud.ts';
import { openInstanceCache } from '../../../ipamd/nodes/instance-cache.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const INSTANCE: Instance = {
  instanceId: 'ins-00000001',
  instanceType: 'S5.MEDIUM4',
  cores: 2,
  zone: 'ap-guangzhou-3',
  vpcId: 'vpc-a',
  subnetId: 'subnet-a',
  state: 'RUNNING',
  privateIps: [],
  securityGroupIds: [],
};
const signal = new AbortController().signal;

/** A book of a cloud whose every description tells what `answer` says. */
function openScene(answer: (ids: readonly string[]) => readonly Instance[]) {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const instances: Pick<Cloud['instances'], 'describe' | 'eniLimits'> = {
    describe: async (ids) => {
      asked.push(...ids);
      return answer(ids);
    },
    eniLimits: async () => ({ secondaryEnis: 3, extensionEnis: 0, secondaryIpsPerEni: 9, source: 'api' }),
  };
  const book = openInstanceCache({
    cloud: { instances },
    clock,
    log: silentLogger,
    metrics: createIpamdMetrics(clock, { release: 'test' }),
    config: { stoppedInstanceGraceMs: 600_000 },
  });
  return { clock, book, asked };
}

test('InstanceCache: takes misses within a moment for one', async (t) => {
  const { clock, book } = openScene(() => []);
  for (let look = 0; look < 5; look++) {
    await book.ensureDescribed(INSTANCE.instanceId, signal);
    await clock.advance(500);
  }
  t.is(book.presence(INSTANCE.instanceId), 'unknown');
});

test('InstanceCache: knows an instance that the cloud lists some seconds late', async (t) => {
  let isListed = false;
  const { clock, book } = openScene(() => (isListed ? [INSTANCE] : []));
  // A first miss wakes whoever waits for the instance, who looks again at once.
  const stop = book.subscribe((id) => void book.ensureDescribed(id, signal));
  await book.ensureDescribed(INSTANCE.instanceId, signal);
  await clock.advance(5_000);
  stop();
  isListed = true;
  await book.ensureDescribed(INSTANCE.instanceId, signal);
  t.is(book.presence(INSTANCE.instanceId), 'running');
});

test('InstanceCache: gives up an instance that looks in a row, seconds apart, do not show', async (t) => {
  const { clock, book } = openScene(() => []);
  await book.ensureDescribed(INSTANCE.instanceId, signal);
  await clock.advance(15_000);
  await book.ensureDescribed(INSTANCE.instanceId, signal);
  t.is(book.presence(INSTANCE.instanceId), 'gone');
});

test('InstanceCache: asks again for an instance that it never saw, however often it missed it', async (t) => {
  let isListed = false;
  const { clock, book } = openScene(() => (isListed ? [INSTANCE] : []));
  for (let look = 0; look < 4; look++) {
    await book.ensureDescribed(INSTANCE.instanceId, signal);
    await clock.advance(20_000);
  }
  t.is(book.presence(INSTANCE.instanceId), 'gone');
  isListed = true;
  await book.ensureDescribed(INSTANCE.instanceId, signal);
  t.is(book.presence(INSTANCE.instanceId), 'running');
});

test('InstanceCache: asks for no id that is none: one would have the cloud refuse all that are asked for with it', async (t) => {
  const { clock, book, asked } = openScene((ids) => ids.map((instanceId) => ({ ...INSTANCE, instanceId })));
  await book.ensureDescribed('nonsense', signal);
  const life = new AbortController();
  void book.run(() => ['nonsense', INSTANCE.instanceId], life.signal);
  await clock.advance(600_000);
  life.abort();
  t.is(book.presence('nonsense'), 'unknown');
  t.is(book.presence(INSTANCE.instanceId), 'running');
  t.deepEqual([...new Set(asked)], [INSTANCE.instanceId]);
});

test('InstanceCache: an instance that cannot be described leaves the others known', async (t) => {
  const other = 'ins-1234567890';
  const state = { value: 'RUNNING' };
  const { clock, book } = openScene((ids) => {
    if (ids.includes(other)) throw new Error('malformed');
    return ids.map((instanceId) => ({ ...INSTANCE, instanceId, state: state.value }));
  });
  await book.ensureDescribed(INSTANCE.instanceId, signal);
  const life = new AbortController();
  void book.run(() => [other, INSTANCE.instanceId], life.signal);
  state.value = 'TERMINATING';
  await clock.advance(600_000);
  life.abort();
  t.is(book.presence(INSTANCE.instanceId), 'gone');
  t.is(book.presence(other), 'unknown');
});
