/** What each served annotation of an Ingress makes of the load balancer that the cloud has. */
import test from 'ava';
import { SERVED_ANNOTATIONS } from '../../../cloud-controller-manager/ingresses/served-annotations.ts';
import { IngressWorld, ruleOf } from './ingress-world.ts';

const DONE_MS = 90_000;
const LATER_MS = 300_000;
const HOST = 'www.example.com';
const CLOUD = 'ingress.cloud.tencent.com';
const TKE = 'kubernetes.io/ingress';

/** Where the effect of each is seen: a test of this file, or another file. A new row has to say it too. */
const SEEN: Readonly<Record<keyof typeof SERVED_ANNOTATIONS, string>> = {
  existedLbId: 'ingress-group.test.ts',
  enableGroup: 'ingress-group.test.ts',
  subnetId: 'here',
  chargeType: 'here',
  bandwidthMbps: 'here',
  creation: 'here',
  ruleMix: 'here',
  httpRules: 'here',
  httpsRules: 'here',
  ruleMixBoth: 'here',
  listenPorts: 'here',
  rewriteSupport: 'here',
  autoRewrite: 'ingress-controller.test.ts',
  autoRewriteCode: 'here',
  certificates: 'refused-rules.test.ts',
  weights: 'here',
  directAccess: 'ingress-controller.test.ts',
  drainsLeaving: 'here',
  drainsUnready: 'here',
  securityGroups: 'here',
  passToTarget: 'here',
  mode: 'ingress-controller.test.ts',
  deletionProtection: 'ingress-lives.test.ts',
  retain: 'ingress-lives.test.ts',
  allowAddressChange: 'ingress-lives.test.ts',
  serviceConfig: 'ingress-config.test.ts',
  serviceConfigAuto: 'ingress-config.test.ts',
};

const certified = (annotations: Readonly<Record<string, string>> = {}) => ({
  annotations,
  spec: { tls: [{ hosts: [HOST], secretName: 'site-tls' }], ...ruleOf('/', HOST) },
});

/** A rule of the annotations http-rules and https-rules. */
const mixed = (path: string, rewrite?: { readonly port: number; readonly path: string }) => ({
  ...{ host: HOST, path, backend: { serviceName: 'web', servicePort: 80 } },
  ...(rewrite === undefined ? {} : { rewrite: { host: HOST, ...rewrite } }),
});

async function start() {
  const world = await IngressWorld.start();
  await world.makeTlsSecret('site-tls', HOST);
  const ip = await world.serve('web');
  return { world, ip, target: [`${ip}:8080 10`] };
}

test('each served annotation has a test that sees its effect', (t) => {
  t.deepEqual(Object.keys(SEEN).toSorted(), Object.keys(SERVED_ANNOTATIONS).toSorted());
});

test('subnet, security groups, and what they decide', async (t) => {
  const { world } = await start();
  const annotations = {
    [`${TKE}.subnetId`]: 'subnet-node0001',
    [`${CLOUD}/security-groups`]: '',
    [`${CLOUD}/pass-to-target`]: 'true',
  };
  await world.create('site', { annotations });
  await world.advance(DONE_MS);
  t.like(world.balancer(), { type: 'INTERNAL', subnetId: 'subnet-node0001', passToTarget: true });
  await world.patch('site', { annotations: { [`${CLOUD}/security-groups`]: 'sg-a1b2c3d4' } });
  await world.advance(DONE_MS);
  t.deepEqual(world.balancer().securityGroupIds, ['sg-a1b2c3d4']);
  await world.patch('site', { annotations: { [`${CLOUD}/pass-to-target`]: 'false' } });
  await world.advance(DONE_MS);
  t.is(world.balancer().passToTarget, false);
  await world.stop();
});

test('how a public load balancer is charged, its bandwidth and its provider', async (t) => {
  const { world } = await start();
  const annotations = {
    [`${TKE}.internetChargeType`]: 'BANDWIDTH_POSTPAID_BY_HOUR',
    [`${TKE}.internetMaxBandwidthOut`]: '7',
    [`${TKE}.extensiveParameters`]: '{"VipIsp":"CMCC"}',
  };
  await world.create('site', { annotations });
  await world.advance(DONE_MS);
  t.like(world.balancer(), {
    type: 'OPEN',
    extras: { internetChargeType: 'BANDWIDTH_POSTPAID_BY_HOUR', internetMaxBandwidthOut: 7, vipIsp: 'CMCC' },
  });
  await world.patch('site', { annotations: { [`${TKE}.internetMaxBandwidthOut`]: '20' } });
  await world.advance(DONE_MS);
  t.is(world.balancer().extras.internetMaxBandwidthOut, 20);
  await world.stop();
});

test('rules on HTTP and on HTTPS, with a redirect between them and its code', async (t) => {
  const { world, target } = await start();
  const annotations = {
    [`${TKE}.rule-mix`]: 'true',
    [`${TKE}.http-rules`]: JSON.stringify([mixed('/plain'), mixed('/old', { port: 443, path: '/new' })]),
    [`${TKE}.https-rules`]: JSON.stringify([mixed('/new')]),
    [`${CLOUD}/rewrite-support`]: 'true',
    [`${CLOUD}/auto-rewrite-code`]: '302',
  };
  await world.create('site', certified(annotations));
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), {
    [`HTTP:80 ${HOST}/plain`]: target,
    [`HTTP:80 ${HOST}/old`]: '-> 302',
    [`HTTPS:443 ${HOST}/new`]: target,
    [`HTTPS:443 ${HOST}/`]: target,
  });
  await world.stop();
});

test('all rules on both protocols, then on other ports', async (t) => {
  const { world, target } = await start();
  await world.create('site', certified({ [`${TKE}.rule-mix-both`]: 'true' }));
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), { [`HTTP:80 ${HOST}/`]: target, [`HTTPS:443 ${HOST}/`]: target });
  await world.patch('site', { annotations: { [`${CLOUD}/listen-ports`]: '[{"HTTP":8080},{"HTTPS":8443}]' } });
  await world.advance(LATER_MS);
  t.deepEqual(world.rules(), { [`HTTP:8080 ${HOST}/`]: target, [`HTTPS:8443 ${HOST}/`]: target });
  await world.stop();
});

test('the weight of a Pod, and of one that ends or is not ready', async (t) => {
  const { world, ip: first } = await start();
  const [second, third] = [
    await world.pods.run('web', 'web-1', { node: 'n1' }),
    await world.pods.run('web', 'web-2', { node: 'n1' }),
  ];
  const statefulSets = [{ name: 'web', weights: [{ weight: 30, podIndexes: [1] }] }];
  const weights = { defaultWeight: 20, groups: [{ key: { proto: 'HTTP', port: 80 }, statefulSets }] };
  const annotations = {
    [`${CLOUD}/lb-rs-weight`]: JSON.stringify(weights),
    [`${CLOUD}/enable-grace-shutdown-tkex`]: 'true',
  };
  await world.create('site', { annotations });
  await world.advance(DONE_MS);
  const wanted = (...all: readonly string[]) => ({ 'HTTP:80 /': all.toSorted() });
  t.deepEqual(world.rules(), wanted(`${first}:8080 20`, `${second}:8080 30`, `${third}:8080 20`));
  await world.pods.setContainersReady('web-0', false);
  await world.pods.sync();
  await world.advance(LATER_MS);
  t.deepEqual(world.rules(), wanted(`${first}:8080 0`, `${second}:8080 30`, `${third}:8080 20`));
  await world.pods.delete('web-2');
  await world.pods.sync();
  await world.advance(LATER_MS);
  t.deepEqual(
    world.rules(),
    wanted(`${first}:8080 0`, `${second}:8080 30`, `${third}:8080 0`),
    'as long as it is there',
  );
  await world.patch('site', { annotations: { [`${CLOUD}/enable-grace-shutdown`]: 'false' } });
  await world.advance(LATER_MS);
  t.deepEqual(world.rules(), wanted(`${first}:8080 0`, `${second}:8080 30`), 'a minute');
  await world.stop();
});
