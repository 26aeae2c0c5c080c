import test from 'ava';
import type { RuleSettings } from '../../../cloud/rules.ts';
import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { TKE_SERVICE_CONFIG_KIND } from '../../../crd/tke-service-config.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, TKE_SERVICE_CONFIGS } from '../../../kube/resource-types.ts';
import { IngressWorld, ruleOf } from '../ingresses/ingress-world.ts';

const NAMED = 'ingress.cloud.tencent.com/tke-service-config';
const AUTO = 'ingress.cloud.tencent.com/tke-service-config-auto';
const DONE_MS = 60_000;
const PERSON = { priority: 'warm', owner: 'person', signal: new AbortController().signal } as const;
const HOST = 'www.example.com';

async function start() {
  const world = await IngressWorld.start();
  const { clock, admin, server } = world.services.world.scene;
  await world.put(CUSTOM_RESOURCE_DEFINITIONS, customResourceDefinition(TKE_SERVICE_CONFIG_KIND));
  await world.serve('web');
  const ruleAt = (url: string, domain = HOST) =>
    [...(world.listener('HTTP', 80)?.layer7?.rules.values() ?? [])].find(
      (rule) => rule.url === url && rule.domain === (domain || world.balancer().vip),
    );
  return {
    ...{ world, ruleAt },
    make: (name: string, loadBalancer: object) =>
      world.put(TKE_SERVICE_CONFIGS, {
        ...{ apiVersion: 'cloud.tencent.com/v1alpha1', kind: 'TkeServiceConfig' },
        metadata: { namespace: 'default', name },
        spec: { loadBalancer },
      }),
    change: (name: string, loadBalancer: object) =>
      clock.run(
        admin.patch(
          TKE_SERVICE_CONFIGS,
          { namespace: 'default', name },
          { kind: 'merge', body: { spec: { loadBalancer } } },
        ),
      ),
    configs: () => server.objects(TKE_SERVICE_CONFIGS.plural, TKE_SERVICE_CONFIGS.group),
    /** Changes a rule as a person does in the console. */
    setRule: async (url: string, changes: RuleSettings) => {
      const { rules, loadBalancers } = world.services.cloud;
      const { loadBalancerId } = world.balancer();
      const listenerId = world.listener('HTTP', 80)?.listenerId ?? '';
      const ruleId = ruleAt(url)?.ruleId ?? '';
      const task = await clock.run(rules.modify(loadBalancerId, listenerId, ruleId, changes, PERSON));
      await clock.run(loadBalancers.settle(task, PERSON));
    },
  };
}

/** A configuration of the rule `/a` of the host. */
function ofPath(rule: object, more: object = {}) {
  return {
    l7Listeners: [
      { protocol: 'HTTP', port: 80, domains: [{ domain: HOST, rules: [{ url: '/a', ...rule }] }], ...more },
    ],
  };
}

test('a TkeServiceConfig changes settings of rules; what it leaves out is left as it is', async (t) => {
  const { world, make, change, ruleAt, setRule } = await start();
  await make('fast', ofPath({ healthCheck: { intervalTime: 6, httpCheckPath: '/up' }, scheduler: 'LEAST_CONN' }));
  await world.create('site', { spec: ruleOf('/a', HOST, 'web', 'Prefix'), annotations: { [NAMED]: 'fast' } });
  await world.advance(DONE_MS);
  for (const url of ['=/a', '/a/']) {
    const made = { IntervalTime: 6, HttpCheckPath: '/up', CheckType: 'HTTP', HttpCode: 31 };
    t.like(ruleAt(url), { scheduler: 'LEAST_CONN', sessionExpireTime: 0, healthCheck: made });
  }
  // Of a person, and not in the object: it stays.
  await setRule('=/a', { sessionSeconds: 77, healthCheck: { isOn: true, http: { codes: 2 } } });
  await change('fast', ofPath({ session: { enable: true, sessionExpireTime: 45 }, healthCheck: { healthNum: 4 } }));
  await world.advance(DONE_MS);
  t.like(ruleAt('=/a'), {
    ...{ scheduler: 'LEAST_CONN', sessionExpireTime: 45 },
    healthCheck: { IntervalTime: 6, HealthNum: 4, HttpCode: 2, HttpCheckPath: '/up' },
  });
  // One url alone.
  const rules = [
    { url: '/a', scheduler: 'IP_HASH' },
    { url: '=/a', scheduler: 'WRR' },
  ];
  await change('fast', { l7Listeners: [{ protocol: 'HTTP', port: 80, domains: [{ domain: HOST, rules }] }] });
  await world.advance(DONE_MS);
  t.deepEqual([ruleAt('=/a')?.scheduler, ruleAt('/a/')?.scheduler], ['WRR', 'IP_HASH']);
  t.deepEqual(world.events('ServiceConfigUnused'), []);
  await world.stop();
});

test('one that is missing or wrong is an event: rules keep what they have, new ones are served, and it is used when it appears', async (t) => {
  const { world, make, ruleAt } = await start();
  await make('good', ofPath({ scheduler: 'LEAST_CONN' }));
  await world.create('site', { spec: ruleOf('/a', HOST), annotations: { [NAMED]: 'good' } });
  await world.advance(DONE_MS);
  await world.patch('site', { annotations: { [NAMED]: 'missing' } });
  await world.advance(DONE_MS);
  t.is(ruleAt('/a')?.scheduler, 'LEAST_CONN');
  t.regex(
    world.events('ServiceConfigUnused').join('\n'),
    /there is no TkeServiceConfig default\/missing; create it\. Rules keep/,
  );
  const [first] = ruleOf('/a', HOST).rules;
  const [second] = ruleOf('/b', HOST).rules;
  await world.patch('site', { spec: { rules: [first, second] } });
  await world.advance(DONE_MS);
  t.like(ruleAt('/b'), { scheduler: 'WRR', healthCheck: { HttpCode: 31 } });
  await make('missing', ofPath({ scheduler: 'IP_HASH' }, { keepaliveEnable: 1 }));
  await world.advance(DONE_MS);
  t.deepEqual([ruleAt('/a')?.scheduler, ruleAt('/b')?.scheduler], ['IP_HASH', 'WRR']);
  t.regex(
    world.events('ServiceConfigUnused').join('\n'),
    /without an effect: keepaliveEnable of HTTP:80; docs\/reference\/ingress/,
  );
  await world.stop();
});

test('the default domain moves to the one of the configuration, and back to the address', async (t) => {
  const { world, make, change } = await start();
  await make('default', ofPath({}));
  const rules = [...ruleOf('/a', HOST).rules, ...ruleOf('/').rules];
  await world.create('site', { spec: { rules }, annotations: { [NAMED]: 'default' } });
  await world.advance(DONE_MS);
  const defaultDomain = () => world.listener('HTTP', 80)?.layer7?.defaultDomain;
  t.is(defaultDomain(), world.balancer().vip);
  await change('default', ofPath({}, { defaultServer: HOST }));
  await world.advance(DONE_MS);
  t.is(defaultDomain(), HOST);
  await change('default', { l7Listeners: null });
  await world.advance(DONE_MS);
  t.is(defaultDomain(), world.balancer().vip);
  await world.stop();
});

test('a configuration is made for an Ingress, follows its rules, keeps what people change, and goes with it', async (t) => {
  const { world, change, configs, ruleAt } = await start();
  await world.create('site', { spec: ruleOf('/a', HOST, 'web', 'Prefix'), annotations: { [AUTO]: 'true' } });
  await world.advance(DONE_MS);
  const names = () => configs().map(({ metadata }) => metadata.name);
  t.deepEqual(names(), ['site-auto-ingress-config']);
  await change('site-auto-ingress-config', { ...ofPath({ scheduler: 'LEAST_CONN' }), internetMaxBandwidthOut: 33 });
  await world.advance(DONE_MS);
  t.deepEqual([ruleAt('=/a')?.scheduler, ruleAt('/a/')?.scheduler], ['LEAST_CONN', 'LEAST_CONN']);
  t.is(world.balancer().extras.internetMaxBandwidthOut, 33);
  const rules = [...ruleOf('/a', HOST, 'web', 'Prefix').rules, ...ruleOf('/b').rules];
  await world.patch('site', { spec: { rules } });
  await world.advance(DONE_MS);
  t.like(configs()[0]?.['spec'], {
    loadBalancer: {
      internetMaxBandwidthOut: 33,
      l7Listeners: [
        {
          domains: [
            { domain: HOST, rules: [{ url: '/a', scheduler: 'LEAST_CONN' }] },
            { domain: '', rules: [{ url: '/b', scheduler: 'WRR' }] },
          ],
        },
      ],
    },
  });
  await world.delete('site');
  await world.advance(DONE_MS);
  t.deepEqual(names(), []);
  await world.stop();
});
