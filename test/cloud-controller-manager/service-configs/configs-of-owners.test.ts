import test from 'ava';
import { ConfigsOfOwners } from '../../../cloud-controller-manager/service-configs/configs-of-owners.ts';
import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { TKE_SERVICE_CONFIG_KIND, tkeServiceConfig } from '../../../crd/tke-service-config.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, INGRESSES, SERVICES, TKE_SERVICE_CONFIGS } from '../../../kube/resource-types.ts';
import { decodeOrThrow } from '../../../runtime/decode.ts';
import { startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

type User = Parameters<ConfigsOfOwners['find']>[0];

const METADATA = { namespace: 'default', name: 'web' } as const;
const NAMES = { ...METADATA, uid: 'u-other', serviceConfigAuto: true } as const;
const SERVICE: User = { ...NAMES, kind: 'service', listeners: [{ protocol: 'TCP', port: 80 }] };
const INGRESS: User = {
  ...{ ...NAMES, kind: 'ingress' },
  listeners: [
    { protocol: 'HTTP', port: 80, rules: [{ domain: 'a.example', url: '=/a', settings: {} }] },
    { protocol: 'HTTPS', port: 443, rules: [] },
  ],
};
const { signal } = new AbortController();

async function start() {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock });
  const kube = server.client();
  await clock.run(kube.create(CUSTOM_RESOURCE_DEFINITIONS, customResourceDefinition(TKE_SERVICE_CONFIG_KIND)));
  // What has no owner is deleted by the API server.
  const ports = [{ port: 80 }];
  const made = await clock.run(
    kube.create(SERVICES, { apiVersion: 'v1', kind: 'Service', metadata: METADATA, spec: { ports } }),
  );
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const ingress = await clock.run(
    kube.create(INGRESSES, {
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: METADATA },
      spec: { defaultBackend: backend },
    }),
  );
  const service: User = { ...SERVICE, uid: made.metadata.uid ?? '' };
  const owner: User = { ...INGRESS, uid: ingress.metadata.uid ?? '' };
  const all = () => server.objects(TKE_SERVICE_CONFIGS.plural, TKE_SERVICE_CONFIGS.group) as readonly KubeObject[];
  const configs = new ConfigsOfOwners(
    { kube, clock, events: { record: () => undefined } },
    {
      find: (key) => {
        const object = all().find(({ metadata: { namespace, name } }) => `${namespace}/${name}` === key);
        if (object === undefined) return { kind: 'absent' };
        return { kind: 'known', config: decodeOrThrow(tkeServiceConfig, object, 'it') };
      },
    },
  );
  return {
    ...{ service, ingress: owner },
    find: (user: User) => clock.run(configs.find(user, signal)),
    all,
    patch: (name: string, body: object) =>
      clock.run(kube.patch(TKE_SERVICE_CONFIGS, { namespace: 'default', name }, { kind: 'merge', body })),
    create: (name: string, metadata: object, loadBalancer: object) =>
      clock.run(
        kube.create(TKE_SERVICE_CONFIGS, {
          ...{ apiVersion: 'cloud.tencent.com/v1alpha1', kind: 'TkeServiceConfig' },
          metadata: { namespace: 'default', name, ...metadata },
          spec: { loadBalancer },
        }),
      ),
  };
}

test('a Service and an Ingress of one name have a configuration each, and each its own owner', async (t) => {
  const { find, all, patch, service, ingress } = await start();
  for (const user of [service, ingress]) t.deepEqual(await find(user), { kind: 'known', config: undefined });
  t.deepEqual(
    all().map(({ metadata: { name, ownerReferences } }) => [name, ownerReferences]),
    [
      [
        'web-auto-ingress-config',
        [{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'web', uid: ingress.uid }],
      ],
      ['web-auto-service-config', [{ apiVersion: 'v1', kind: 'Service', name: 'web', uid: service.uid }]],
    ],
  );
  const found = await find(ingress);
  t.like(found, { kind: 'known', config: { l7Listeners: [{ protocol: 'HTTP', port: 80 }] } });
  t.like(await find(service), { kind: 'known', config: { l4Listeners: [{ protocol: 'TCP', port: 80 }] } });
  // Both are as they are to be: nothing is written again.
  const versions = () => all().map(({ metadata: { resourceVersion } }) => resourceVersion);
  const before = versions();
  for (const user of [service, ingress]) await find(user);
  t.deepEqual(versions(), before);
  // What else people write into it stays, and entries follow the rules.
  await patch('web-auto-ingress-config', { spec: { loadBalancer: { internetMaxBandwidthOut: 7 } } });
  const more: User = {
    ...{ ...INGRESS, uid: ingress.uid },
    listeners: [{ protocol: 'HTTPS', port: 443, rules: [{ domain: '', url: '/', settings: {} }] }],
  };
  await find(more);
  t.like(await find(more), {
    config: { internetMaxBandwidthOut: 7, l7Listeners: [{ protocol: 'HTTPS', domains: [{ domain: '' }] }] },
  });
});

test('one that is named: found, missing, of a name that is kept, or named twice', async (t) => {
  const { find, create } = await start();
  await create('slow', {}, { internetMaxBandwidthOut: 1 });
  const { serviceConfigAuto: _, ...named } = INGRESS;
  t.deepEqual(await find(named), { kind: 'known', config: undefined });
  t.deepEqual(await find({ ...named, serviceConfig: 'slow' }), {
    kind: 'known',
    config: { internetMaxBandwidthOut: 1 },
  });
  const whyOf = async (user: User) => {
    const found = await find(user);
    return found.kind === 'unknown' ? found.why : found.kind;
  };
  t.regex(await whyOf({ ...named, serviceConfig: 'gone' }), /there is no TkeServiceConfig default\/gone/);
  t.regex(
    await whyOf({ ...named, serviceConfig: 'x-auto-ingress-config' }),
    /is kept for configurations that are made/,
  );
  t.regex(await whyOf({ ...INGRESS, serviceConfig: 'slow' }), /both annotations/);
});

test('one of a former Ingress of the name is not used', async (t) => {
  const { find, create } = await start();
  await create('web-auto-ingress-config', {}, { internetMaxBandwidthOut: 1 });
  const found = await find(INGRESS);
  t.regex(
    found.kind === 'unknown' ? found.why : '',
    /web-auto-ingress-config was not made for this Ingress; rename it/,
  );
});
