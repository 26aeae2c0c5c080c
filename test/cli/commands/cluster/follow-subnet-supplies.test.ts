import test from 'ava';
import { followSubnetSupplies } from '../../../../cli/commands/cluster/read-published.ts';
import { SUBNETS_SOURCE_ANNOTATION } from '../../../../crd/names.ts';
import { renderSubnetSource } from '../../../../crd/subnet-source.ts';
import type { KubeClient, KubeObject } from '../../../../kube/kube-client.ts';
import { KubeError } from '../../../../kube/kube-error.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const CONFIG = { namespace: 'kube-system', name: 'tke-eni-ipamd' } as const;
const OLD = { TKE_ENI_IPAMD_SUBNET_ID: 'subnet-a' };
const NEW = { TKE_ENI_IPAMD_SUBNET_ID: 'subnet-a:subnet-b' };
const SUPPLY = JSON.stringify({
  zone: 'ap-guangzhou-6',
  cidr: '10.0.2.0/24',
  free: 9,
  total: 253,
  held: 0,
  common: true,
});

function configMap(name: string, data: object, annotations: Readonly<Record<string, string>> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: CONFIG.namespace, name, annotations }, data };
}

function published(source: object | undefined, ...ids: readonly string[]): KubeObject {
  const data = Object.fromEntries(ids.map((id) => [id, SUPPLY]));
  const of = source === undefined ? {} : { [SUBNETS_SOURCE_ANNOTATION]: renderSubnetSource(CONFIG, source) };
  return configMap('tke-eni-subnets', data, of);
}

/** Asks a cluster whose ConfigMaps are what `objects` returns at each time. */
async function follow(objects: (ms: number) => readonly KubeObject[], isForbidden = false) {
  const clock = new VirtualClock();
  const startMs = clock.monotonicMs();
  const client: Pick<KubeClient, 'listPage'> = {
    listPage: async (_type, { fieldSelector = '' }) => {
      const name = fieldSelector.slice(fieldSelector.indexOf('=') + 1);
      if (isForbidden && name === CONFIG.name) throw new KubeError({ code: 'FORBIDDEN', request: 'LIST', text: 'no' });
      const items = objects(clock.monotonicMs() - startMs).filter(({ metadata }) => metadata.name === name);
      return { items, resourceVersion: '1' };
    },
  };
  const progress = { show: () => {}, clear: () => {} };
  const signal = new AbortController().signal;
  const { supplies, isCurrent } = await clock.run(followSubnetSupplies(client, { clock, signal, progress }));
  const ids = supplies.kind === 'known' ? [...(supplies.value?.bySubnet.keys() ?? [])] : [];
  return { ids, why: isCurrent.kind === 'unknown' ? isCurrent.why : '', tookMs: clock.monotonicMs() - startMs };
}

test('followSubnetSupplies: answers at once when nothing was changed', async (t) => {
  const found = await follow(() => [configMap(CONFIG.name, OLD), published(OLD, 'subnet-a')]);
  t.deepEqual(found, { ids: ['subnet-a'], why: '', tookMs: 0 });
});

test('followSubnetSupplies: after a change the answer is of the new list, as soon as ipamd has published it', async (t) => {
  const found = await follow((ms) => [
    configMap(CONFIG.name, NEW),
    ms < 700 ? published(OLD, 'subnet-a') : published(NEW, 'subnet-a', 'subnet-b'),
  ]);
  t.deepEqual(found.ids, ['subnet-a', 'subnet-b']);
  t.is(found.why, '');
});

test('followSubnetSupplies: says that the answer is of the list before when ipamd does not follow', async (t) => {
  for (const now of [[configMap(CONFIG.name, NEW)], []]) {
    const found = await follow(() => [...now, published(OLD, 'subnet-a')]);
    t.deepEqual(found.ids, ['subnet-a']);
    t.regex(found.why, /ConfigMap kube-system\/tke-eni-ipamd has changed and ipamd has not published/);
  }
});

test('followSubnetSupplies: says that it cannot compare when it may not read the ConfigMap', async (t) => {
  const found = await follow(() => [configMap(CONFIG.name, NEW), published(OLD, 'subnet-a')], true);
  t.deepEqual(found.ids, ['subnet-a']);
  t.regex(found.why, /whether the list of subnets was changed cannot be read/);
});

test('followSubnetSupplies: waits for nothing where ipamd does not say what it published from', async (t) => {
  const found = await follow(() => [configMap(CONFIG.name, NEW), published(undefined, 'subnet-a')]);
  t.deepEqual(found, { ids: ['subnet-a'], why: '', tookMs: 0 });
});
