import test from 'ava';
import { decideMasqConfig } from '../../../../ipamd/guests/eip/decide-masq-config.ts';
import { decodeEipClaim } from '../../../../ipamd/guests/eip/eip-claim-cache.ts';
import { MASQ_CONFIG_MAP, syncMasqConfig } from '../../../../ipamd/guests/eip/sync-masq-config.ts';
import { openInformer } from '../../../../kube/informer.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import { CONFIG_MAPS, EIP_CLAIMS } from '../../../../kube/resource-types.ts';
import { silentLogger } from '../../../../runtime/log.ts';
import { startInProcessApi } from '../../../../sim/kube-api/in-process.ts';
import { installKinds } from '../../../../sim/kube-api/install-kinds.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const CONFIG = '{"NonMasqueradeCIDRs":["10.0.0.0/8"],"NonMasqueradeSrcCIDRs":["172.16.0.2/32"],"MasqLinkLocal":true}';
const listOf = (text: string): unknown => JSON.parse(text).NonMasqueradeSrcCIDRs;

test('decideMasqConfig: adds what is missing at the end, and keeps every other field', (t) => {
  const step = decideMasqConfig(CONFIG, [], ['10.1.0.5/32', '10.1.0.6/32']);
  if (step.kind !== 'write') return t.fail(step.kind);
  t.deepEqual(listOf(step.text), ['172.16.0.2/32', '10.1.0.5/32', '10.1.0.6/32']);
  t.deepEqual(
    { ...JSON.parse(step.text), NonMasqueradeSrcCIDRs: undefined },
    {
      NonMasqueradeCIDRs: ['10.0.0.0/8'],
      NonMasqueradeSrcCIDRs: undefined,
      MasqLinkLocal: true,
    },
  );
  t.deepEqual(step.ours, ['10.1.0.5/32', '10.1.0.6/32']);
  t.deepEqual(decideMasqConfig(step.text, step.ours, step.ours), { kind: 'same' });
});

test('decideMasqConfig: takes off what is its own, and never what people wrote', (t) => {
  const first = decideMasqConfig(CONFIG, [], ['10.1.0.5/32', '172.16.0.2/32']);
  if (first.kind !== 'write') return t.fail(first.kind);
  t.deepEqual(first.ours, ['10.1.0.5/32'], 'what stood there is not ours');
  const last = decideMasqConfig(first.text, first.ours, []);
  if (last.kind !== 'write') return t.fail(last.kind);
  t.is(last.text, CONFIG);
  t.deepEqual(last.ours, []);
});

for (const [title, text] of [
  ['no JSON', 'NonMasqueradeCIDRs:\n- 10.0.0.0/8'],
  ['a list', '[]'],
  ['another form of the list', '{"NonMasqueradeSrcCIDRs":"10.0.0.0/8"}'],
  ['nothing', ''],
] as const) {
  test(`decideMasqConfig: leaves ${title} alone`, (t) => {
    t.is(decideMasqConfig(text, [], ['10.1.0.5/32']).kind, 'unreadable');
  });
}

test('syncMasqConfig: follows the claims, makes no ConfigMap, and leaves what it found', async (t) => {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock });
  const kube = server.client();
  await clock.run(installKinds(kube));
  const end = new AbortController();
  const deps = { client: kube, clock, log: silentLogger, random: () => 0.5 };
  const claims = openInformer({ ...deps, type: EIP_CLAIMS, decode: decodeEipClaim });
  const query = { namespace: MASQ_CONFIG_MAP.namespace, fieldSelector: `metadata.name=${MASQ_CONFIG_MAP.name}` };
  const configMaps = openInformer<KubeObject>({ ...deps, type: CONFIG_MAPS, decode: (object) => object, query });
  for (const informer of [claims, configMaps]) void informer.start(end.signal);
  const told: string[] = [];
  const events = { record: ({ message }: { readonly message: string }) => void told.push(message) };
  syncMasqConfig(
    { kube, masqConfigs: configMaps, eipClaims: claims, clock, log: silentLogger, events },
    end.signal,
  ).catch(() => undefined);
  const found = (): KubeObject | undefined =>
    server.objects('configmaps').find(({ metadata }) => metadata['name'] === MASQ_CONFIG_MAP.name) as
      | KubeObject
      | undefined;
  const textOf = (): string => (found()?.['data'] as { config?: string } | undefined)?.config ?? '';
  const claim = (name: string, status: object): KubeObject => ({
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'EIPClaim',
    metadata: { name, namespace: 'default' },
    status,
  });
  await clock.run(kube.create(EIP_CLAIMS, claim('web-0', { phase: 'Bound', privateIP: '10.1.0.5' })));
  await clock.run(kube.create(EIP_CLAIMS, claim('web-1', { phase: 'Retained' })));
  await clock.advance(60_000);
  t.is(found(), undefined, 'none is made');
  const object = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: MASQ_CONFIG_MAP,
    data: { config: CONFIG, other: 'x' },
  };
  await clock.run(kube.create(CONFIG_MAPS, object));
  await clock.advance(60_000);
  t.deepEqual(listOf(textOf()), ['172.16.0.2/32', '10.1.0.5/32']);
  await clock.run(kube.delete(EIP_CLAIMS, { namespace: 'default', name: 'web-0' }));
  await clock.advance(60_000);
  t.deepEqual(found()?.['data'], { config: CONFIG, other: 'x' });
  t.deepEqual(found()?.metadata.annotations ?? {}, {});
  t.deepEqual(told, []);
  end.abort();
});
