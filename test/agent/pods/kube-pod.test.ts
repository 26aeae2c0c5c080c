import test from 'ava';
import { kubePodOf } from '../../../agent/pods/kube-pod.ts';
import { DIRECT_ENI_RESOURCE, POD_ANNOTATION } from '../../../crd/names.ts';
import type { KubeObject, ObjectMeta } from '../../../kube/kube-client.ts';

function podOf(parts: { metadata?: Partial<ObjectMeta>; spec?: object; status?: object } = {}): KubeObject {
  const metadata = { name: 'p', namespace: 'default', uid: 'u', ...parts.metadata };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: 'n1', ...parts.spec }, status: parts.status };
}

const networks = (value: string) => ({ metadata: { annotations: { 'tke.cloud.tencent.com/networks': value } } });

test('kubePodOf: keeps what demand and collection need', (t) => {
  const status = { phase: 'Running', podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] };
  t.deepEqual(kubePodOf(podOf({ status })), {
    namespace: 'default',
    name: 'p',
    uid: 'u',
    isAlive: true,
    isRunning: true,
    ips: ['10.0.0.1', 'fd00::1'],
  });
});

test('kubePodOf: takes the uid of a static Pod from its mirror', (t) => {
  const metadata = { annotations: { 'kubernetes.io/config.mirror': 'static' } };
  t.is(kubePodOf(podOf({ metadata }))?.uid, 'static');
});

test('kubePodOf: says when a Pod is going', (t) => {
  t.false(kubePodOf(podOf({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }))?.isAlive);
});

for (const [what, parts] of Object.entries({
  'is in the host’s network': { spec: { hostNetwork: true } },
  succeeded: { status: { phase: 'Succeeded' } },
  failed: { status: { phase: 'Failed' } },
})) {
  test(`kubePodOf: keeps nothing of a Pod that ${what}`, (t) => t.is(kubePodOf(podOf(parts)), undefined));
}

for (const value of ['tke-route-eni', 'kube-system/tke-route-eni@eth0', '[{"name":"tke-route-eni"}]']) {
  test(`kubePodOf: records a Pod that asks for a shared ENI as '${value}'`, (t) => {
    t.like(kubePodOf(podOf(networks(value))), { network: 'route-eni', networkFault: undefined });
  });
}

test('kubePodOf: without a word the default of the node decides', (t) => {
  t.like(kubePodOf(podOf(networks(' '))), { network: undefined, networkFault: undefined, direct: undefined });
});

test('kubePodOf: records a Pod on the bridge', (t) => {
  t.like(kubePodOf(podOf(networks('tke-bridge'))), { network: 'bridge', direct: undefined });
});

for (const [value, fault] of [
  ['[{"name":7}]', /networks: expected a JSON list .*, got "\[\{\\"name\\":7\}\]"$/],
  ['tke-route-eni-2', /networks: expected one of tke-bridge, tke-route-eni, tke-direct-eni, got "tke-route-eni-2"$/],
  ['tke-bridge,tke-route-eni', /a list of several networks is not served/],
  ['tke-bridge@net1', /no interface, or eth0/],
] as const) {
  test(`kubePodOf: says why no network can be chosen by '${value}'`, (t) => {
    const record = kubePodOf(podOf(networks(value)));
    t.regex(record?.networkFault ?? '', fault);
    t.like(record, { network: undefined, direct: undefined });
  });
}

test('kubePodOf: records the name of a network of others beside the fault, and no other text', (t) => {
  const record = kubePodOf(podOf(networks('storage/backup@eth0')));
  t.like(record, { otherNetwork: 'backup', network: undefined, direct: undefined });
  t.regex(record?.networkFault ?? '', /got "backup"$/);
  t.is(kubePodOf(podOf(networks('a,b')))?.otherNetwork, undefined);
});

test('kubePodOf: tells a Pod that has an ENI as a whole, and whether it has to be one of its own', (t) => {
  const directOf = (annotations: Record<string, string>) =>
    kubePodOf(podOf({ metadata: { annotations: { [POD_ANNOTATION.networks]: 'tke-direct-eni', ...annotations } } }))
      ?.direct;
  t.is(directOf({}), 'pool');
  t.is(directOf({ [POD_ANNOTATION.networks]: '[{"name":"tke-direct-eni"}]' }), 'pool');
  t.is(directOf({ [POD_ANNOTATION.deletePolicy]: 'Never' }), 'own');
  t.is(directOf({ [POD_ANNOTATION.securityGroups]: 'sg-12345678' }), 'own');
  t.is(kubePodOf(podOf({}))?.direct, undefined);
});

test('kubePodOf: without the annotation the resource says that a Pod has an ENI as a whole', (t) => {
  const directOf = (annotations: Record<string, string>) => {
    const containers = [{ name: 'c' }, { name: 'd', resources: { limits: { [DIRECT_ENI_RESOURCE]: '1' } } }];
    return kubePodOf(podOf({ metadata: { annotations }, spec: { containers } }))?.direct;
  };
  t.is(directOf({}), 'pool');
  t.is(directOf({ [POD_ANNOTATION.securityGroups]: 'sg-12345678' }), 'own');
  t.is(directOf({ [POD_ANNOTATION.networks]: 'tke-route-eni' }), undefined, 'the annotation goes before');
});

test('kubePodOf: bears a Pod without spec and status', (t) => {
  const bare = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } } as KubeObject;
  t.deepEqual(kubePodOf(bare)?.ips, []);
});

test('kubePodOf: says when a Pod keeps its address', (t) => {
  const policy = (value: string) => ({
    metadata: { annotations: { 'tke.cloud.tencent.com/vpc-ip-claim-delete-policy': value } },
  });
  t.true(kubePodOf(podOf(policy('Never')))?.isStatic);
  t.is(kubePodOf(podOf(policy('Immediate')))?.isStatic, undefined);
  t.true(kubePodOf(podOf(policy('never')))?.isStatic, 'what is neither word must not lose an address');
});

test('kubePodOf: tells that security groups are asked for, whatever network is', (t) => {
  const annotations = { [POD_ANNOTATION.securityGroups]: 'sg-1' };
  const metadata = { name: 'web', namespace: 'default', uid: 'u', annotations };
  t.true(kubePodOf(podOf({ metadata }))?.requestsGroups);
  t.is(kubePodOf(podOf({ metadata: { ...metadata, annotations: {} } }))?.requestsGroups, undefined);
});
