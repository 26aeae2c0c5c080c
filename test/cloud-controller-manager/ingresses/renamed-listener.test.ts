/** A person renames a listener of Ingresses in the console: its rules stay those of the Ingresses. */
import test from 'ava';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { addLists, published, unprotected } from '../services/published-lists.ts';
import { IngressWorld, ruleOf } from './ingress-world.ts';

const GATE = 'cloud.tencent.com/load-balancer-backendgroup-ready';
const EXIST = 'kubernetes.io/ingress.existLbId';
const GROUP = 'ingress.cloud.tencent.com/enable-group';
const DONE_MS = 40_000;

for (const place of ['own', 'existing', 'group'] as const)
  for (const flag of ['repair', 'report'] as const)
    test(`${place}, ${flag}: rules and Pods follow, also after a restart, and gates wait`, async (t) => {
      const world = await IngressWorld.start({ flags: [`--load-balancer-drift=${flag}`] });
      const { services, pods } = world;
      await addLists(services, ['n1']);
      await world.serve('web');
      const shared = place === 'own' ? {} : { [EXIST]: await services.buy({}, false) };
      await world.create('site', { annotations: { ...shared, ...(place === 'group' ? { [GROUP]: 'true' } : {}) } });
      await world.advance(DONE_MS);
      t.deepEqual(Object.keys(world.rules()), ['HTTP:80 /']);
      const { host, clock } = services.world.scene;
      const { loadBalancerId, listeners } = world.balancer();
      const [listener] = listeners.values();
      const name = listener?.name;
      const request = {
        ...{ LoadBalancerId: loadBalancerId, ListenerId: listener?.listenerId ?? '' },
        ListenerName: 'web of the shop',
      };
      await clock.run(createInProcessApi(host).call('ModifyListener', request, new AbortController().signal));
      await services.replace();
      await world.advance(660_000);
      const next = await pods.run('web', 'web-new', { node: 'n1', gates: [GATE] });
      await world.advance(60_000);
      t.is(pods.condition('web-new', GATE), 'True Registered');
      await pods.delete('web-0');
      await world.advance(30_000);
      await pods.end('web-0');
      await world.patch('site', { spec: { rules: [...ruleOf('/').rules, ...ruleOf('/new').rules] } });
      await world.advance(300_000);
      t.deepEqual(world.rules(), { 'HTTP:80 /': [`${next}:8080 10`], 'HTTP:80 /new': [`${next}:8080 10`] });
      t.deepEqual(published(services, 'n1'), [next]);
      t.deepEqual(unprotected(services), []);
      t.deepEqual(world.events('ListenerClash'), []);
      if (flag === 'repair') t.is([...world.balancer().listeners.values()][0]?.name, name);
      await world.delete('site');
      await world.advance(300_000);
      t.is(world.ingress('site'), undefined);
      t.deepEqual(published(services, 'n1'), []);
      t.deepEqual(unprotected(services), []);
      await world.stop();
    });
