import test from 'ava';
import { POD_CIDRS_CONFIG_MAP } from '../../../../crd/pod-cidr-record.ts';
import { OutdatedTerm, PodCidrStore } from '../../../../ipamd/guests/pod-cidrs/pod-cidr-store.ts';
import { CONFIG_MAPS } from '../../../../kube/resource-types.ts';
import { startInProcessApi } from '../../../../sim/kube-api/in-process.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const SIGNAL = new AbortController().signal;

function recordOf(taken: readonly number[]) {
  return {
    clusterCidrs: ['10.4.0.0/20'],
    serviceCidr: '10.4.12.0/22',
    maskSize: 24,
    next: taken.length,
    taken,
    owners: [],
    held: [],
    blocks: { total: 16, reserved: 4, used: taken.length, held: 0, free: 12 - taken.length },
    waiting: { count: 0, nodes: [] },
    stopped: '',
  };
}

test('PodCidrStore: a term does not write over what a former leader has recorded since it read', async (t) => {
  const clock = new VirtualClock();
  const api = startInProcessApi({ clock, latencyMs: 4, isLight: true, requestTimeoutMs: 5_000 });
  const kube = api.client({ userAgent: 'ipamd' });
  const former = new PodCidrStore(kube, 'kube-system');
  const next = new PodCidrStore(kube, 'kube-system');
  t.is(await clock.run(former.load(SIGNAL)), undefined);
  await clock.run(former.write(recordOf([0]), SIGNAL));
  t.deepEqual((await clock.run(next.load(SIGNAL)))?.taken, [0]);
  await clock.run(former.write(recordOf([0, 1, 2]), SIGNAL));
  await t.throwsAsync(clock.run(next.write(recordOf([0, 1]), SIGNAL)), { instanceOf: OutdatedTerm });
  t.deepEqual((await clock.run(next.load(SIGNAL)))?.taken, [0, 1, 2]);
  await clock.run(next.write(recordOf([0, 1, 2, 3]), SIGNAL));
  await t.throwsAsync(clock.run(former.write(recordOf([0, 1, 2, 4]), SIGNAL)), { instanceOf: OutdatedTerm });
  t.deepEqual((await clock.run(new PodCidrStore(kube, 'kube-system').load(SIGNAL)))?.taken, [0, 1, 2, 3]);
});

test('PodCidrStore: a label that a person sets on the record, or its deletion, ends no term', async (t) => {
  const clock = new VirtualClock();
  const api = startInProcessApi({ clock, latencyMs: 4, isLight: true, requestTimeoutMs: 5_000 });
  const kube = api.client({ userAgent: 'ipamd' });
  const former = new PodCidrStore(kube, 'kube-system');
  await clock.run(former.load(SIGNAL));
  await clock.run(former.write(recordOf([0]), SIGNAL));
  const next = new PodCidrStore(kube, 'kube-system');
  await clock.run(next.load(SIGNAL));
  const ref = { namespace: 'kube-system', name: POD_CIDRS_CONFIG_MAP };
  await clock.run(kube.patch(CONFIG_MAPS, ref, { kind: 'merge', body: { metadata: { labels: { team: 'net' } } } }));
  await clock.run(next.write(recordOf([0, 1]), SIGNAL));
  await clock.run(kube.delete(CONFIG_MAPS, ref));
  await clock.run(next.write(recordOf([0, 1, 2]), SIGNAL));
  t.deepEqual((await clock.run(new PodCidrStore(kube, 'kube-system').load(SIGNAL)))?.taken, [0, 1, 2]);
});
