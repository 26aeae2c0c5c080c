import test from 'ava';
import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { TKE_SERVICE_CONFIG_KIND } from '../../../crd/tke-service-config.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, TKE_SERVICE_CONFIGS } from '../../../kube/resource-types.ts';
import { ServiceWorld } from '../services/service-world.ts';

const NAMED = 'service.cloud.tencent.com/tke-service-config';
const AUTO = 'service.cloud.tencent.com/tke-service-config-auto';
const DONE_MS = 60_000;

async function start(options: { readonly isDefined?: boolean } = {}) {
  const world = await ServiceWorld.start();
  const { clock, admin, server } = world.world.scene;
  await world.join('n1');
  if (options.isDefined ?? true)
    await clock.run(admin.create(CUSTOM_RESOURCE_DEFINITIONS, customResourceDefinition(TKE_SERVICE_CONFIG_KIND)));
  const configOf = (name: string, loadBalancer: object): KubeObject => ({
    apiVersion: 'cloud.tencent.com/v1alpha1',
    kind: 'TkeServiceConfig',
    metadata: { namespace: 'default', name },
    spec: { loadBalancer },
  });
  return {
    world,
    make: async (name: string, loadBalancer: object) => {
      await clock.run(admin.create(TKE_SERVICE_CONFIGS, configOf(name, loadBalancer)));
    },
    change: async (name: string, loadBalancer: object) => {
      const body = { spec: { loadBalancer } };
      await clock.run(admin.patch(TKE_SERVICE_CONFIGS, { namespace: 'default', name }, { kind: 'merge', body }));
    },
    configs: () => server.objects('tkeserviceconfigs', TKE_SERVICE_CONFIGS.group),
  };
}

const annotated = (annotations: Readonly<Record<string, string | null>>) => ({ metadata: { annotations } });

test('a TkeServiceConfig changes settings; what it leaves out is left as it is', async (t) => {
  const { world, make, change } = await start();
  await make('fast', { l4Listeners: [{ protocol: 'TCP', port: 80, healthCheck: { intervalTime: 6, healthNum: 2 } }] });
  await world.create('web', annotated({ [NAMED]: 'fast' }));
  await world.advance(DONE_MS);
  t.like(world.listener('TCP', 80)?.healthCheck, { IntervalTime: 6, HealthNum: 2 });
  const { loadBalancerId } = world.balancer();
  const listenerId = world.listener('TCP', 80)?.listenerId ?? '';
  // Of a person, and not in the object: it stays.
  await world.setListener(loadBalancerId, listenerId, { scheduler: 'LEAST_CONN' });
  await change('fast', {
    l4Listeners: [{ protocol: 'TCP', port: 80, session: { enable: true, sessionExpireTime: 45 } }],
  });
  await world.advance(DONE_MS);
  t.like(world.listener('TCP', 80), { scheduler: 'LEAST_CONN', sessionExpireTime: 45 });
  t.deepEqual(world.events('ServiceConfigUnused'), []);
  await world.stop();
});

test('a configuration that is missing or wrong is an event, and listeners keep what they have', async (t) => {
  const { world, make } = await start();
  const entry = { protocol: 'TCP', port: 80, scheduler: 'LEAST_CONN' };
  await make('good', { l4Listeners: [entry] });
  await world.create('web', annotated({ [NAMED]: 'good' }));
  await world.advance(DONE_MS);
  t.is(world.listener('TCP', 80)?.scheduler, 'LEAST_CONN');
  await world.patch('web', annotated({ [NAMED]: 'missing' }));
  await world.advance(DONE_MS);
  t.is(world.listener('TCP', 80)?.scheduler, 'LEAST_CONN');
  t.regex(world.events('ServiceConfigUnused').join('\n'), /there is no TkeServiceConfig default\/missing/);
  // It is used when it appears, and targets follow meanwhile.
  await world.join('n2');
  await world.advance(DONE_MS);
  t.is(world.listener('TCP', 80)?.targets.size, 2);
  await make('missing', { l4Listeners: [{ ...entry, scheduler: 'WRR' }] });
  await world.advance(DONE_MS);
  t.is(world.listener('TCP', 80)?.scheduler, 'WRR');
  await world.patch('web', annotated({ [NAMED]: 'web-auto-service-config' }));
  await world.advance(DONE_MS);
  t.regex(world.events('ServiceConfigUnused').join('\n'), /is kept for configurations that are made/);
  await world.stop();
});

test('without the definition or the rights a Service has its load balancer, and an event says what is missing', async (t) => {
  const { world } = await start({ isDefined: false });
  await world.create('web', annotated({ [NAMED]: 'any' }));
  await world.advance(DONE_MS);
  t.is(world.listener('TCP', 80)?.targets.size, 1);
  t.regex(world.events('ServiceConfigUnused').join('\n'), /has no definition of TkeServiceConfig/);
  await world.stop();
});

test('settings without an effect are named', async (t) => {
  const { world, make } = await start();
  await make('odd', { l4Listeners: [{ protocol: 'TCP', port: 80, proxyProtocol: { enable: true } }] });
  await world.create('web', annotated({ [NAMED]: 'odd' }));
  await world.advance(DONE_MS);
  t.regex(world.events('ServiceConfigUnused').join('\n'), /without an effect: proxyProtocol of TCP\/80/);
  await world.stop();
});

test('a configuration is made for a Service, follows its ports, keeps what people change, and changes the bandwidth', async (t) => {
  const { world, change, configs } = await start();
  await world.create('web', annotated({ [AUTO]: 'true' }));
  await world.advance(DONE_MS);
  const [made] = configs();
  t.is(made?.metadata.name, 'web-auto-service-config');
  t.is(made?.metadata.ownerReferences?.[0]?.uid, world.service('web')?.metadata.uid);
  t.is(world.listener('TCP', 80)?.scheduler, 'WRR');
  const entry = { protocol: 'TCP', port: 80, scheduler: 'LEAST_CONN' };
  await change('web-auto-service-config', { l4Listeners: [entry], internetMaxBandwidthOut: 33 });
  await world.advance(DONE_MS);
  t.is(world.listener('TCP', 80)?.scheduler, 'LEAST_CONN');
  t.is(world.balancer().extras.internetMaxBandwidthOut, 33);
  await world.patch('web', {
    spec: {
      ports: [
        { name: 'a', port: 80 },
        { name: 'b', port: 81 },
      ],
    },
  });
  await world.advance(DONE_MS);
  const spec = configs()[0]?.['spec'] as { readonly loadBalancer: { readonly l4Listeners: readonly object[] } };
  t.like(spec.loadBalancer.l4Listeners, [entry, { protocol: 'TCP', port: 81, scheduler: 'WRR' }]);
  await world.patch('web', annotated({ [AUTO]: 'true', [NAMED]: 'other' }));
  await world.advance(DONE_MS);
  t.regex(world.events('ServiceConfigUnused').join('\n'), /both annotations/);
  await world.stop();
});
