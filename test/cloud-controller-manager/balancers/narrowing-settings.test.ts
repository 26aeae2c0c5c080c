/**
 * Each setting that narrows who reaches a load balancer, where, or by what, in each kind of placement: it is served, it is
 * refused, so that nothing is made, or it is reported. Never is something open that was to be closed without a word.
 */
import test from 'ava';
import type { Notice } from '../../../cloud-controller-manager/balancers/notice.ts';
import { planCertificates } from '../../../cloud-controller-manager/ingresses/plan-certificates.ts';
import { planIngress } from '../../../cloud-controller-manager/ingresses/plan-ingress.ts';
import { readAnnotations as readOfIngress } from '../../../cloud-controller-manager/ingresses/read-annotations.ts';
import { readIngressSpec } from '../../../cloud-controller-manager/ingresses/read-ingress.ts';
import { REFUSED_ANNOTATIONS as REFUSED_OF_INGRESSES } from '../../../cloud-controller-manager/ingresses/refused-annotations.ts';
import { SERVED_ANNOTATIONS as OF_INGRESSES } from '../../../cloud-controller-manager/ingresses/served-annotations.ts';
import { planLoadBalancer } from '../../../cloud-controller-manager/services/plan-load-balancer.ts';
import { readAnnotations } from '../../../cloud-controller-manager/services/read-annotations.ts';
import { readServiceSpec } from '../../../cloud-controller-manager/services/read-service.ts';
import { REFUSED_ANNOTATIONS } from '../../../cloud-controller-manager/services/refused-annotations.ts';
import { SERVED_ANNOTATIONS } from '../../../cloud-controller-manager/services/served-annotations.ts';

/**
 * - `served`: the desired load balancer says it.
 * - `refused`: no listener is made or stays for the object, or nothing is changed, and an event says why.
 * - `reported`: it has no effect, and an event says so.
 * - `checked`: it is compared with the load balancer that exists, and refused where that differs (`decideAdoption`).
 */
type Outcome = 'served' | 'refused' | 'reported' | 'checked' | 'nothing';
type Texts = Readonly<Record<string, string>>;
type Row = { readonly setting: string; readonly annotations?: Texts; readonly spec?: object };

const LB = 'lb-a1b2c3d4';
const CLOUD = 'service.cloud.tencent.com';

const SERVICE_PLACES = {
  own: {},
  existing: { [SERVED_ANNOTATIONS.existedLbId.name]: LB },
  pool: { [SERVED_ANNOTATIONS.pool.name]: 'edge' },
};
const OF_SERVICES: readonly (Row & Readonly<Record<keyof typeof SERVICE_PLACES, Outcome>>)[] = [
  {
    setting: 'spec.loadBalancerSourceRanges',
    spec: { loadBalancerSourceRanges: ['10.0.0.0/8'] },
    ...{ own: 'served', existing: 'refused', pool: 'refused' },
  },
  {
    setting: 'source ranges, by annotation',
    annotations: { [SERVED_ANNOTATIONS.sourceRanges.name]: '10.0.0.0/8' },
    ...{ own: 'served', existing: 'refused', pool: 'refused' },
  },
  {
    setting: 'source ranges that cannot be read',
    spec: { loadBalancerSourceRanges: ['10.0.0.0'] },
    ...{ own: 'refused', existing: 'refused', pool: 'refused' },
  },
  {
    setting: 'source ranges under a name that is misspelt',
    annotations: { 'service.beta.kubernetes.io/load-balancer-source-range': '10.0.0.0/8' },
    ...{ own: 'reported', existing: 'reported', pool: 'reported' },
  },
  {
    setting: 'security groups',
    annotations: { [SERVED_ANNOTATIONS.securityGroups.name]: 'sg-a1b2c3d4' },
    ...{ own: 'served', existing: 'refused', pool: 'refused' },
  },
  {
    setting: 'the groups of the nodes decide too',
    annotations: { [SERVED_ANNOTATIONS.passToTarget.name]: 'false' },
    ...{ own: 'served', existing: 'reported', pool: 'reported' },
  },
  {
    setting: 'an internal address',
    annotations: { [SERVED_ANNOTATIONS.subnetId.name]: 'subnet-a1b2c3d4' },
    ...{ own: 'served', existing: 'checked', pool: 'checked' },
  },
  {
    setting: 'TLS',
    annotations: { [`${CLOUD}/specify-protocol`]: '{"80":{"protocol":["TCP_SSL"]}}' },
    ...{ own: 'refused', existing: 'refused', pool: 'refused' },
  },
  {
    setting: 'protection against changes',
    annotations: { [`${CLOUD}/modification-protection`]: 'true' },
    ...{ own: 'reported', existing: 'reported', pool: 'reported' },
  },
  {
    setting: 'protection against deletion',
    annotations: { [SERVED_ANNOTATIONS.deletionProtection.name]: 'true' },
    ...{ own: 'served', existing: 'reported', pool: 'reported' },
  },
  {
    setting: 'bandwidth',
    annotations: { [SERVED_ANNOTATIONS.bandwidthMbps.name]: '5' },
    ...{ own: 'served', existing: 'reported', pool: 'served' },
  },
  ...REFUSED_ANNOTATIONS.filter(({ why }) => why === 'it is an annotation of another controller').map(
    ({ name }): (typeof OF_SERVICES)[number] => ({
      setting: name,
      annotations: { [name]: 'Internal' },
      ...{ own: 'reported', existing: 'reported', pool: 'reported' },
    }),
  ),
];

function planService({ annotations = {}, spec = {} }: Partial<Row>, place: keyof typeof SERVICE_PLACES) {
  const all = { ...SERVICE_PLACES[place], ...annotations };
  const metadata = { name: 'web', namespace: 'shop' };
  const { settings, notices } = readAnnotations(all, {});
  const plan = planLoadBalancer({
    ...{ service: { ...metadata, uid: 'u-1' }, settings, nodes: [], clusterId: 'cls-a', vpcId: 'vpc-1' },
    spec: readServiceSpec({
      ...{ apiVersion: 'v1', kind: 'Service', metadata },
      spec: { ports: [{ port: 80, nodePort: 30_080 }], ...spec },
    }),
    ...(place === 'pool' ? { placement: { loadBalancerId: LB, ports: new Map() } } : {}),
  });
  const isOpen = plan.desired !== undefined && plan.desired.listeners.length > 0;
  // Of a load balancer that exists nothing is changed but listeners.
  const { passesToTarget: _, isDeleteProtected: __, ...ofExisting } = plan.desired ?? {};
  return { desired: place === 'own' ? plan.desired : ofExisting, isOpen, notices: [...notices, ...plan.notices] };
}

type Planned = { readonly desired: unknown; readonly isOpen: boolean; readonly notices: readonly Notice[] };

function outcomeOf(before: Planned, after: Planned): Outcome {
  const isSaid = after.notices.length > before.notices.length;
  if (!after.isOpen || after.notices.some(({ blocks }) => blocks)) return isSaid ? 'refused' : 'nothing';
  const [text, other] = [JSON.stringify(before.desired), JSON.stringify(after.desired)];
  if (text === other) return isSaid ? 'reported' : 'nothing';
  return other.includes('"kind":"existing"') && other.includes('"subnetId"') ? 'checked' : 'served';
}

// What a new load balancer of a pool is like is read when one is made: pool.test.ts.
for (const row of OF_SERVICES)
  for (const place of Object.keys(SERVICE_PLACES) as readonly (keyof typeof SERVICE_PLACES)[])
    if (row.setting !== 'bandwidth' || place !== 'pool')
      test(`Service, ${place}: ${row.setting} is ${row[place]}`, (t) => {
        t.is(outcomeOf(planService({}, place), planService(row, place)), row[place]);
      });

const INGRESS_PLACES = {
  own: {},
  existing: { [OF_INGRESSES.existedLbId.name]: LB },
  group: { [OF_INGRESSES.existedLbId.name]: LB, [OF_INGRESSES.enableGroup.name]: 'true' },
};
const INGRESS_ROWS: readonly (Row & Readonly<Record<keyof typeof INGRESS_PLACES, Outcome>>)[] = [
  {
    setting: 'security groups',
    annotations: { [OF_INGRESSES.securityGroups.name]: 'sg-a1b2c3d4' },
    ...{ own: 'served', existing: 'refused', group: 'refused' },
  },
  {
    setting: 'an internal address',
    annotations: { [OF_INGRESSES.subnetId.name]: 'subnet-a1b2c3d4' },
    ...{ own: 'served', existing: 'checked', group: 'refused' },
  },
  {
    setting: 'the groups of the nodes decide too',
    annotations: { [OF_INGRESSES.passToTarget.name]: 'false' },
    ...{ own: 'served', existing: 'reported', group: 'reported' },
  },
  {
    setting: 'other ports',
    annotations: { [OF_INGRESSES.listenPorts.name]: '[{"HTTP":8080}]' },
    ...{ own: 'served', existing: 'served', group: 'served' },
  },
  {
    setting: 'a host',
    spec: { rules: [{ host: 'a.example.com', http: { paths: [path()] } }] },
    ...{ own: 'served', existing: 'served', group: 'served' },
  },
  {
    setting: 'a certificate',
    annotations: { [OF_INGRESSES.certificates.name]: '[{"qcloud_cert_id":["a1b2c3d4"]}]' },
    ...{ own: 'served', existing: 'served', group: 'served' },
  },
  {
    setting: 'clients with certificates, by an annotation that has no such field',
    annotations: {
      [OF_INGRESSES.certificates.name]: '[{"qcloud_cert_id":["a1b2c3d4"],"qcloud_ca_cert_id":"b1b2c3d4"}]',
    },
    ...{ own: 'refused', existing: 'refused', group: 'refused' },
  },
  {
    setting: 'protection against changes',
    annotations: { 'ingress.cloud.tencent.com/modification-protection': 'true' },
    ...{ own: 'reported', existing: 'reported', group: 'reported' },
  },
  {
    setting: 'protection against deletion',
    annotations: { [OF_INGRESSES.deletionProtection.name]: 'true' },
    ...{ own: 'reported', existing: 'reported', group: 'reported' },
  },
  ...REFUSED_OF_INGRESSES.filter(({ name }) => !name.startsWith('ingress.cloud')).map(
    ({ name }): (typeof INGRESS_ROWS)[number] => ({
      setting: name,
      annotations: { [name]: '10.0.0.0/8' },
      ...{ own: 'reported', existing: 'reported', group: 'reported' },
    }),
  ),
];

function path() {
  return { path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } };
}

function planOne({ annotations = {}, spec = {} }: Partial<Row>, place: keyof typeof INGRESS_PLACES): Planned {
  const { settings, notices } = readOfIngress({ ...INGRESS_PLACES[place], ...annotations });
  const metadata = { name: 'web', namespace: 'shop' };
  const plan = planIngress({
    ...{ head: { kind: 'ingress', ...metadata, uid: 'u-1' }, settings, nodes: [] },
    spec: readIngressSpec({
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata },
      spec: { rules: [{ http: { paths: [path()] } }], ...spec },
    }),
    ...{ clusterId: 'cls-a', vpcId: 'vpc-1', nowMs: 0, secretOf: () => ({ kind: 'missing' }) },
    portsOf: () => [{ name: '', protocol: 'TCP', port: 80, nodePort: 30_080 }],
    podsOf: () => ({ slices: [], podOf: () => undefined, nodeOf: () => undefined, keepsRoutes: false }),
  });
  // What is of a whole load balancer `planUnit` reads of the settings, where it is made for the Ingress.
  const { passToTarget, securityGroups, deletionProtection } = settings;
  const ofUnit = place === 'own' ? [passToTarget, securityGroups, deletionProtection] : [];
  return {
    desired: plan.desired === undefined ? undefined : [plan.desired, ofUnit],
    isOpen: plan.desired !== undefined,
    notices: [...notices, ...plan.notices],
  };
}

for (const row of INGRESS_ROWS)
  for (const place of Object.keys(INGRESS_PLACES) as readonly (keyof typeof INGRESS_PLACES)[]) {
    const expected = place === 'own' && row.setting === 'protection against deletion' ? 'served' : row[place];
    test(`Ingress, ${place}: ${row.setting} is ${expected}`, (t) => {
      t.is(outcomeOf(planOne({}, place), planOne(row, place)), expected);
    });
  }

test('an authority for clients beside a certificate of the Secret itself is refused: the host keeps what it has', (t) => {
  const encode = (text: string): string => Buffer.from(text).toString('base64');
  const data = { 'tls.crt': encode('x'), 'tls.key': encode('x'), qcloud_ca_cert_id: encode('b1b2c3d4') };
  const { certificateOf, notices } = planCertificates({
    tls: [{ hosts: ['a.example.com'], secretName: 'tls' }],
    secretOf: () => ({ kind: 'found', type: 'kubernetes.io/tls', data }),
    nowMs: 0,
  });
  t.deepEqual(certificateOf('a.example.com'), { kind: 'asIs' });
  t.regex(notices.map(({ message }) => message).join(), /qcloud_ca_cert_id asks clients for certificates/);
});
