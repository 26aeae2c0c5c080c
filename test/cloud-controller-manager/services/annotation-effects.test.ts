/** What TKE documents of load balancers of Services, against the tables here: each name is in one, and each that is served has an effect. */
import test from 'ava';
import type { BackendPod } from '../../../cloud-controller-manager/backends/backend-pod.ts';
import type { PodBackends } from '../../../cloud-controller-manager/balancers/plan-pod-targets.ts';
import { planAddresses, planLoadBalancer } from '../../../cloud-controller-manager/services/plan-load-balancer.ts';
import { readAnnotations, WRITTEN_ANNOTATIONS } from '../../../cloud-controller-manager/services/read-annotations.ts';
import { readServiceSpec } from '../../../cloud-controller-manager/services/read-service.ts';
import { REFUSED_ANNOTATIONS } from '../../../cloud-controller-manager/services/refused-annotations.ts';
import {
  SERVED_ANNOTATIONS,
  type ServiceSettings,
  type SettingKey,
} from '../../../cloud-controller-manager/services/served-annotations.ts';
import { BACKEND_READY_GATE } from '../../../crd/names.ts';

const OF_TKE = [
  'loadbalance-id',
  'tke-existed-lbid',
  'qcloud-share-existed-lb',
  'qcloud-loadbalancer-internal-subnetid',
  'qcloud-loadbalancer-internet-charge-type',
  'qcloud-loadbalancer-internet-max-bandwidth-out',
  'service.extensiveParameters',
  'extensiveParameters',
  'loadbalance-type',
  'loadbalance-nat-ipv6',
  'qcloud-loadbalancer-backends-label',
  'local-svc-only-bind-node-with-pod',
].map((name) => `service.kubernetes.io/${name}`);
const OF_CLOUD = [
  'direct-access',
  'local-svc-weighted-balance',
  'local-svc-only-bind-node-with-pod',
  'tke-service-config',
  'tke-service-config-auto',
  'specify-protocol',
  'enable-grace-shutdown',
  'enable-grace-shutdown-tkex',
  'enable-grace-deletion',
  'security-groups',
  'pass-to-target',
  'modification-protection',
  'mode',
  'target-groups',
  'cross-region-id',
  'cross-vpc-id',
  'hybrid-type',
  'snat-pro-info',
  'lb-rs-weight',
  'prevent-loopback',
  'deletion-protection',
  'loadbalance-retain',
].map((name) => `service.cloud.tencent.com/${name}`);
const OLDER = ['kubernetes.io/service.internetChargeType', 'kubernetes.io/service.internetMaxBandwidthOut'];
const SWITCHES = [
  'GlobalRouteDirectAccess',
  'EnableNodeGracefulDeletion',
  'EnablePodGracefulDeletion',
  'EnableDefaultModificationProtection',
  'EnableDefaultDirectAccess',
  'EnableIngressController',
  'VERSION',
  'REUSE_LOADBALANCER',
];
/** The others are served: service-configs/l4-settings.test.ts. */
const FIELDS = ['l4Listeners[].proxyProtocol', 'l7Listeners[]'].map((name) => `spec.loadBalancer.${name}`);

test('no annotation that TKE documents is passed over in silence', (t) => {
  const written = WRITTEN_ANNOTATIONS.map(({ name }) => name);
  for (const name of [...OF_TKE, ...OF_CLOUD, ...OLDER]) {
    const { settings, notices } = readAnnotations({ [name]: 'no such thing' }, {});
    t.true(notices.length > 0 || Object.keys(settings).length > 0 || written.includes(name), name);
  }
});

test('each switch and field that TKE documents beside annotations is listed as refused', (t) => {
  const namesAt = (place: string) => REFUSED_ANNOTATIONS.flatMap((row) => (row.place === place ? [row.name] : []));
  t.deepEqual(namesAt('ConfigMap tke-service-controller-config').toSorted(), SWITCHES.toSorted());
  t.deepEqual(namesAt('TkeServiceConfig').toSorted(), FIELDS.toSorted());
  t.is(BACKEND_READY_GATE, 'cloud.tencent.com/load-balancer-backendgroup-ready');
});

/** A value of each that asks for something else than none does. Elsewhere: what other tests see. */
const VALUES: Readonly<Record<SettingKey, string | { readonly elsewhere: string }>> = {
  existedLbId: 'lb-a1b2c3d4',
  subnetId: 'subnet-a1b2c3d4',
  chargeType: 'BANDWIDTH_PACKAGE',
  bandwidthMbps: '7',
  creation: '{"VipIsp":"CMCC"}',
  balancerType: { elsewhere: 'the only kind that is made; others are refused: read-annotations.test.ts' },
  backendSelector: 'pool=edge',
  securityGroups: 'sg-a1b2c3d4',
  passToTarget: 'true',
  mode: { elsewhere: 'refused-changes.test.ts, service-controller.test.ts' },
  preventLoopback: 'false',
  sourceRanges: '10.0.0.0/8',
  directAccess: 'true',
  drainsLeaving: 'false',
  drainsUnready: 'true',
  allowAddressChange: 'true',
  deletionProtection: 'true',
  pool: { elsewhere: 'pool.test.ts' },
  poolPorts: { elsewhere: 'pool.test.ts' },
  retain: { elsewhere: 'kept-balancer.test.ts' },
  serviceConfig: { elsewhere: 'service-configs/service-config.test.ts' },
  serviceConfigAuto: { elsewhere: 'service-configs/service-config.test.ts' },
};

const NODES = ['edge', 'core'].map((pool, at) => ({
  ...{ name: pool, ip: `10.0.0.${at + 1}`, instanceId: `ins-${pool}`, zone: 'z-1', isReady: true, isLeaving: false },
  labels: { pool },
}));
const PODS: readonly BackendPod[] = ['serves', 'ends', 'fails'].map((name, at) => ({
  ...{ namespace: 'shop', name, uid: `u-${name}`, nodeName: 'edge', ips: [`10.0.1.${at + 1}`], network: 'eni' },
  ...{ isLeaving: name === 'ends', areContainersReady: name !== 'fails', areOtherGatesTrue: true },
}));
const FACTS: PodBackends = {
  slices: [
    {
      service: 'shop/web',
      ports: [{ name: '', protocol: 'TCP', port: 8_080 }],
      endpoints: PODS.map(({ name, ips: [ip = ''] }) => ({
        ...{ ip, isReady: name === 'serves', isTerminating: name === 'ends', pod: `shop/${name}` },
      })),
    },
  ],
  podOf: (key) => PODS.find(({ name }) => key === `shop/${name}`),
  nodeOf: () => undefined,
  keepsRoutes: false,
};

/** All that follows from settings: the load balancer with Nodes or Pods, and the address. */
function resultOf(settings: ServiceSettings): string {
  const metadata = { name: 'web', namespace: 'shop' };
  const spec = readServiceSpec({
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { ports: [{ port: 80, nodePort: 30_080 }] },
  });
  const plan = planLoadBalancer({
    ...{ service: { ...metadata, uid: 'u-1' }, spec, settings, nodes: NODES, clusterId: 'cls-a', vpcId: 'vpc-1' },
    ...(settings.directAccess === true ? { pods: FACTS } : {}),
  });
  return JSON.stringify([plan, planAddresses({ vips: ['10.0.0.9'], domain: '' }, settings)]);
}

for (const [key, value] of Object.entries(VALUES)) {
  if (typeof value !== 'string') continue;
  test(`${key}: what is read has an effect`, (t) => {
    const { name } = SERVED_ANNOTATIONS[key as SettingKey];
    const base = key.startsWith('drains') ? { [SERVED_ANNOTATIONS.directAccess.name]: 'true' } : {};
    const before = readAnnotations(base, {});
    const after = readAnnotations({ ...base, [name]: value }, {});
    t.deepEqual([before.notices, after.notices], [[], []]);
    t.not(resultOf(after.settings), resultOf(before.settings));
  });
}
