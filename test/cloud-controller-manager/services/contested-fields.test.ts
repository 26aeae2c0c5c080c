/** Another client changes back what this program writes: it is answered rarely, with an event, and nothing else waits. */
import test from 'ava';
import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { TKE_SERVICE_CONFIG_KIND } from '../../../crd/tke-service-config.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  NODES,
  PODS,
  SERVICES,
  TKE_SERVICE_CONFIGS,
} from '../../../kube/resource-types.ts';
import { recordOf, recordsOf } from '../../../runtime/json.ts';
import { IngressWorld } from '../ingresses/ingress-world.ts';
import { NodeWorld, UNINITIALIZED } from '../node-world.ts';
import { RouteWorld } from '../routes/route-world.ts';
import { addLists, patchNec, published } from './published-lists.ts';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';

const DONE_MS = 40_000;
const DIRECT = { 'service.cloud.tencent.com/direct-access': 'true' };
const GATE = 'cloud.tencent.com/load-balancer-backendgroup-ready';
const PREFIX = 'tke.cloud.tencent.com';
const THEIRS = '192.0.2.1';
/** How long they fight, and how fast the other client is. */
const FIGHT_MS = { long: 180_000, each: 500 } as const;
/** Three answers at once, then after 8, 16, 32, 60 and 60 seconds. */
const MOST = 10;

/** Lets another client undo each write; returns how many there were. */
async function fight(advance: (ms: number) => Promise<void>, isOurs: () => boolean, undo: () => Promise<unknown>) {
  let answers = 0;
  for (let at = 0; at < FIGHT_MS.long; at += FIGHT_MS.each) {
    await advance(FIGHT_MS.each);
    if (!isOurs()) continue;
    await undo();
    answers += 1;
  }
  return answers;
}

function patchOf(world: ServiceWorld, name: string, subresource?: 'status') {
  const { clock, admin } = world.world.scene;
  return (body: object) => {
    const patch = { kind: 'merge' as const, body, ...(subresource === undefined ? {} : { subresource }) };
    return clock.run(admin.patch(SERVICES, { namespace: 'default', name }, patch));
  };
}

test('the status of a Service and of an Ingress', async (t) => {
  const world = await IngressWorld.start();
  const { services } = world;
  await world.serve('web');
  await services.create('lb');
  await world.create('site');
  await world.advance(DONE_MS);
  const ours = services.ingress('lb')[0]?.['ip'];
  const put = patchOf(services, 'lb', 'status');
  const answers = await fight(
    (ms) => world.advance(ms),
    () => services.ingress('lb')[0]?.['ip'] === ours,
    () => put({ status: { loadBalancer: { ingress: [{ ip: THEIRS }] } } }),
  );
  t.true(answers >= 3 && answers <= MOST, `${answers} answers`);
  t.is(services.events('FieldContested').length, 1);
  t.regex(services.events('FieldContested').join(), /keeps changing status\.loadBalancer back.*managedFields/);
  await world.advance(61_000);
  t.is(services.ingress('lb')[0]?.['ip'], ours, 'it is written again once the other client ends');
  await world.stop();
});

test('annotations and the finalizer of a Service, and the gate of a Pod', async (t) => {
  const world = await IngressWorld.start();
  const { services, pods } = world;
  await world.serve('web');
  await services.create('lb', { metadata: { annotations: DIRECT } });
  pods.alsoSelects('lb', 'web');
  await pods.sync();
  await world.advance(DONE_MS);
  const put = patchOf(services, 'lb');
  const advance = (ms: number) => world.advance(ms);
  const keys = [
    `${PREFIX}/load-balancer-address`,
    'service.kubernetes.io/loadbalance-id',
    `${PREFIX}/load-balancer-record`,
  ];
  for (const key of keys) {
    const answers = await fight(
      advance,
      () => services.annotation('lb', key) !== undefined,
      () => put({ metadata: { annotations: { [key]: null } } }),
    );
    t.true(answers >= 1 && answers <= MOST, `${key}: ${answers} answers`);
    await world.advance(400_000);
  }
  const answers = await fight(
    advance,
    () => (services.service('lb')?.metadata.finalizers ?? []).length > 0,
    () => put({ metadata: { finalizers: null } }),
  );
  t.true(answers >= 3 && answers <= MOST, `finalizer: ${answers} answers`);
  // Meanwhile the load balancer follows.
  const ip = await pods.run('web', 'web-1', { node: 'n1', gates: [GATE] });
  await world.advance(30_000);
  t.true(services.listeners()['TCP/80']?.includes(`${ip}:8080 10`));
  await world.advance(400_000);
  const { clock, admin } = services.world.scene;
  const condition = { type: GATE, status: 'False', reason: 'Other' };
  const gates = await fight(
    advance,
    () => pods.condition('web-1', GATE)?.startsWith('True') === true,
    () => {
      const patch = {
        kind: 'strategic',
        body: { status: { conditions: [condition] } },
        subresource: 'status',
      } as const;
      return clock.run(admin.patch(PODS, { namespace: 'default', name: 'web-1' }, patch));
    },
  );
  t.true(gates >= 3 && gates <= MOST, `gate: ${gates} answers`);
  t.regex(
    services.events('FieldContested').join(),
    /the condition cloud\.tencent\.com\/load-balancer-backendgroup-ready/,
  );
  await world.stop();
});

test('the TkeServiceConfig that is made, and the published addresses of a node', async (t) => {
  const world = await ServiceWorld.start();
  const pods = new ServicePods(world);
  await world.join('n1');
  await addLists(world, ['n1']);
  const { clock, admin, server } = world.world.scene;
  await clock.run(admin.create(CUSTOM_RESOURCE_DEFINITIONS, customResourceDefinition(TKE_SERVICE_CONFIG_KIND)));
  await world.create('lb', {
    metadata: { annotations: { ...DIRECT, 'service.cloud.tencent.com/tke-service-config-auto': 'true' } },
  });
  const ip = await pods.run('lb', 'a', { node: 'n1' });
  await world.advance(DONE_MS);
  const entries = (): number => {
    const [config] = server.objects('tkeserviceconfigs', TKE_SERVICE_CONFIGS.group);
    const loadBalancer = recordOf(recordOf(config?.['spec'])['loadBalancer']);
    return recordsOf(loadBalancer['l4Listeners']).length;
  };
  const setEntries = (l4Listeners: readonly object[]) => {
    const patch = { kind: 'merge', body: { spec: { loadBalancer: { l4Listeners } } } } as const;
    return clock.run(admin.patch(TKE_SERVICE_CONFIGS, { namespace: 'default', name: 'lb-auto-service-config' }, patch));
  };
  const advance = (ms: number) => world.advance(ms);
  const configs = await fight(
    advance,
    () => entries() > 0,
    () => setEntries([]),
  );
  t.true(configs >= 3 && configs <= MOST, `TkeServiceConfig: ${configs} answers`);
  t.regex(world.events('FieldContested').join(), /the TkeServiceConfig default\/lb-auto-service-config/);
  const lists = await fight(
    advance,
    () => published(world, 'n1')?.includes(ip) === true,
    () => patchNec(world, 'n1', { loadBalancers: { registeredIPs: [] } }),
  );
  t.true(lists >= 3 && lists <= MOST, `registeredIPs: ${lists} answers`);
  t.regex(world.events('FieldContested').join(), /loadBalancers\.registeredIPs of the NodeENIConfig/);
  await world.advance(62_000);
  t.is(entries(), 1, 'both are written again once the other client ends');
  t.deepEqual(published(world, 'n1'), [ip]);
  await world.stop();
});

test('a pool Service whose record is taken away keeps its place', async (t) => {
  const world = await IngressWorld.start();
  const { services } = world;
  const pooled = { [`${PREFIX}/load-balancer-pool`]: 'p', [`${PREFIX}/load-balancer-pool-ports`]: 'allotted' };
  await services.create('lb', { metadata: { annotations: pooled } });
  await world.advance(DONE_MS);
  const before = services.listeners();
  const key = `${PREFIX}/load-balancer-record`;
  const put = patchOf(services, 'lb');
  const answers = await fight(
    (ms) => world.advance(ms),
    () => services.annotation('lb', key) !== undefined,
    () => put({ metadata: { annotations: { [key]: null } } }),
  );
  t.true(answers >= 3 && answers <= 2 * MOST, `${answers} answers`);
  t.deepEqual(Object.keys(services.listeners()), Object.keys(before));
  await world.stop();
});

test('the condition NetworkUnavailable of a Node', async (t) => {
  const routes = await RouteWorld.start();
  await routes.join('n1', '172.16.1.0/24');
  await routes.advance(20_000);
  const { clock, admin } = routes.world.scene;
  const condition = { type: 'NetworkUnavailable', status: 'True', reason: 'Other' };
  const answers = await fight(
    (ms) => routes.advance(ms),
    () => routes.networkOf('n1') === 'False RouteCreated',
    () => {
      const patch = {
        kind: 'strategic',
        body: { status: { conditions: [condition] } },
        subresource: 'status',
      } as const;
      return clock.run(admin.patch(NODES, { name: 'n1' }, patch));
    },
  );
  t.true(answers >= 3 && answers <= MOST, `${answers} answers`);
  t.regex(routes.world.scene.events('FieldContested').join(), /the condition NetworkUnavailable/);
  await routes.stop();
});

test('the taint of a Node that waits for its cloud provider', async (t) => {
  const world = await NodeWorld.start();
  world.addInstance('ins-serv0001');
  await world.join('n1', { providerID: 'qcloud:///100003/ins-serv0001' });
  await world.advance(20_000);
  const { clock, admin, server } = world.scene;
  const taintsOf = (): readonly object[] => {
    const spec = server.objects('nodes')[0]?.['spec'] as { readonly taints?: readonly object[] } | undefined;
    return spec?.taints ?? [];
  };
  const answers = await fight(
    (ms) => world.advance(ms),
    () => taintsOf().length === 0,
    () => clock.run(admin.patch(NODES, { name: 'n1' }, { kind: 'merge', body: { spec: { taints: [UNINITIALIZED] } } })),
  );
  t.true(answers >= 3 && answers <= MOST, `${answers} answers`);
  t.regex(world.scene.events('FieldContested').join(), /the taint node\.cloudprovider/);
  await world.stop();
});

test('an API server without ipMode, before Kubernetes 1.29, gets the status once', async (t) => {
  const world = await IngressWorld.start();
  const { services, pods } = world;
  const { lives } = services.world;
  const begin = lives.begin.bind(lives);
  let writes = 0;
  lives.begin = () => {
    const wrappers = begin();
    return {
      ...wrappers,
      kube: (client) => ({
        ...client,
        listPage: async (type, query, signal) => {
          const page = await client.listPage(type, query, signal);
          return { ...page, items: page.items.map(withoutIpMode) };
        },
        watch: async function* (type, query, signal, onOpen) {
          for await (const event of client.watch(type, query, signal, onOpen))
            yield 'object' in event && event.object !== undefined
              ? { ...event, object: withoutIpMode(event.object) }
              : event;
        },
        patch: async (type, ref, patch, signal) => {
          if (type.plural === 'services' && patch.subresource === 'status') writes += 1;
          return withoutIpMode(await client.patch(type, ref, patch, signal));
        },
      }),
    };
  };
  await services.replace();
  await world.serve('web');
  await services.create('lb', { metadata: { annotations: DIRECT } });
  pods.alsoSelects('lb', 'web');
  await pods.sync();
  await world.advance(DONE_MS);
  t.is(writes, 1);
  for (let index = 0; index < 4; index += 1) {
    await pods.run('web', `more-${index}`, { node: 'n1' });
    await world.advance(10_000);
  }
  await world.advance(1_260_000);
  t.is(writes, 1);
  await services.create('other');
  await world.advance(DONE_MS);
  t.is(writes, 2, 'another Service gets its status');
  await world.stop();
});

/** What an API server before 1.29 keeps. */
function withoutIpMode<T extends KubeObject>(object: T): T {
  const status = object['status'] as { readonly loadBalancer?: { readonly ingress?: readonly object[] } } | undefined;
  const ingress = status?.loadBalancer?.ingress;
  if (ingress === undefined) return object;
  const kept = ingress.map((one) => Object.fromEntries(Object.entries(one).filter(([name]) => name !== 'ipMode')));
  return { ...object, status: { ...status, loadBalancer: { ingress: kept } } };
}
