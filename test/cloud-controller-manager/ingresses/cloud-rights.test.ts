import { readFileSync } from 'node:fs';
import test from 'ava';
import { type Action, productOf } from '../../../cloud/tencent/requests.ts';
import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { TKE_SERVICE_CONFIG_KIND } from '../../../crd/tke-service-config.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, SECRETS, TKE_SERVICE_CONFIGS } from '../../../kube/resource-types.ts';
import { makeCertificate } from '../../../runtime/make-certificate.ts';
import { IngressWorld, ruleOf } from './ingress-world.ts';

const PAGE = readFileSync(new URL('../../../docs/cloud-controller-manager.md', import.meta.url), 'utf8');
const HOST = 'a.example.com';
const REDIRECTS = 'ingress.cloud.tencent.com/auto-rewrite';
const CONFIG = 'ingress.cloud.tencent.com/tke-service-config';
const DONE_MS = 90_000;
/** A certificate is fifteen minutes old, and unused in two sweeps. */
const SWEPT_MS = 45 * 60_000;

/** The actions of the policy of a section. */
function policyOf(section: string): readonly string[] {
  const [, json = ''] = new RegExp(`^### ${section}\n[\\s\\S]*?\`\`\`json\n([\\s\\S]*?)\`\`\``, 'm').exec(PAGE) ?? [];
  const policy = JSON.parse(json) as { readonly statement: readonly { readonly action: readonly string[] }[] };
  return policy.statement.flatMap(({ action }) => action);
}

function newPair(nowMs: number): Readonly<Record<string, string>> {
  const spec = { commonName: HOST, use: 'server', names: [HOST] } as const;
  const { cert, key } = makeCertificate({ ...spec, notBeforeMs: nowMs - 1_000, notAfterMs: nowMs + 90 * 86_400_000 });
  return { 'tls.crt': cert, 'tls.key': key };
}

/** A TkeServiceConfig of the rule. */
function configOf(scheduler: string) {
  const domains = [{ domain: HOST, rules: [{ url: '/a', scheduler }] }];
  return {
    ...{ apiVersion: 'cloud.tencent.com/v1alpha1', kind: 'TkeServiceConfig' },
    metadata: { namespace: 'default', name: 'config' },
    spec: { loadBalancer: { l7Listeners: [{ protocol: 'HTTPS', port: 443, domains }] } },
  };
}

test('docs/cloud-controller-manager.md: the CAM policies grant what Ingresses make the controller call, and nothing else', async (t) => {
  const world = await IngressWorld.start();
  const { clock, admin, host } = world.services.world.scene;
  await world.put(CUSTOM_RESOURCE_DEFINITIONS, customResourceDefinition(TKE_SERVICE_CONFIG_KIND));
  await world.put(TKE_SERVICE_CONFIGS, configOf('LEAST_CONN'));
  await world.serve('web');
  await world.makeSecret('tls', newPair(clock.nowMs()), 'kubernetes.io/tls');
  const tls = [{ hosts: [HOST], secretName: 'tls' }];
  await world.create('site', {
    annotations: { [REDIRECTS]: 'true', [CONFIG]: 'config' },
    spec: { ...ruleOf('/a', HOST), tls },
  });
  await world.advance(2 * DONE_MS);
  t.deepEqual(Object.keys(world.rules()).toSorted(), [`HTTP:80 ${HOST}/a`, `HTTPS:443 ${HOST}/a`]);
  const changed = { kind: 'merge', body: { spec: configOf('WRR').spec } } as const;
  await clock.run(admin.patch(TKE_SERVICE_CONFIGS, { namespace: 'default', name: 'config' }, changed));
  const renewed = Object.entries(newPair(clock.nowMs())).map(([name, text]) => [
    name,
    Buffer.from(text).toString('base64'),
  ]);
  const body = { data: Object.fromEntries(renewed) };
  await clock.run(admin.patch(SECRETS, { namespace: 'default', name: 'tls' }, { kind: 'merge', body }));
  await world.advance(2 * DONE_MS);
  await world.patch('site', { annotations: { [REDIRECTS]: 'false' }, spec: { ...ruleOf('/b', HOST), tls } });
  await world.advance(SWEPT_MS);
  t.deepEqual(Object.keys(world.rules()), [`HTTPS:443 ${HOST}/b`]);
  t.is(host.model.state.certificates.all().length, 1, 'the former certificate is gone');
  await world.delete('site');
  await world.advance(SWEPT_MS);
  t.is(world.ingress('site'), undefined);
  t.is(host.model.state.certificates.all().length, 0);
  const called = Object.keys(host.counts()).map((action) => `${productOf(action as Action)}:${action}`);
  const ofServices = policyOf('Rights in the cloud');
  const beside = called.filter((action) => !ofServices.includes(action));
  t.deepEqual(policyOf('Rights in the cloud for Ingresses').toSorted(), beside.toSorted());
  await world.stop();
});
