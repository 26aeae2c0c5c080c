import test from 'ava';
import { autoConfigName, isAutoConfigName } from '../../../cloud-controller-manager/service-configs/choose-config.ts';
import { planAutoListeners } from '../../../cloud-controller-manager/service-configs/plan-auto-listeners.ts';
import { tkeServiceConfig } from '../../../crd/tke-service-config.ts';
import { decodeOrThrow } from '../../../runtime/decode.ts';

const HTTP = { protocol: 'TCP', port: 80 } as const;
const DNS = { protocol: 'UDP', port: 53 } as const;

test('planAutoListeners: an entry for each listener, which the decoder takes', (t) => {
  const l4Listeners = planAutoListeners([HTTP, DNS], undefined);
  t.deepEqual(
    l4Listeners?.map(({ protocol, port }) => ({ protocol, port })),
    [HTTP, DNS],
  );
  const object = {
    apiVersion: 'cloud.tencent.com/v1alpha1',
    kind: 'TkeServiceConfig',
    metadata: { name: autoConfigName('service', 'web') },
    spec: { loadBalancer: { l4Listeners } },
  };
  t.deepEqual(decodeOrThrow(tkeServiceConfig, object, 'it').spec?.loadBalancer?.l4Listeners, l4Listeners);
});

test('planAutoListeners: keeps what people changed, adds and removes with the listeners', (t) => {
  const changed = { ...HTTP, scheduler: 'LEAST_CONN' as const };
  t.is(planAutoListeners([HTTP], [changed]), undefined);
  const more = planAutoListeners([HTTP, DNS], [changed]);
  t.is(more?.[0], changed);
  t.is(more?.length, 2);
  t.deepEqual(
    planAutoListeners([HTTP], more)?.map(({ port }) => port),
    [80],
  );
  t.is(planAutoListeners([HTTP], planAutoListeners([HTTP], more)), undefined);
});

test('isAutoConfigName: names that people may not choose', (t) => {
  t.is(autoConfigName('service', 'web'), 'web-auto-service-config');
  t.is(autoConfigName('ingress', 'web'), 'web-auto-ingress-config');
  for (const kind of ['service', 'ingress'] as const) t.true(isAutoConfigName(autoConfigName(kind, 'web')));
  t.false(isAutoConfigName('web'));
});
