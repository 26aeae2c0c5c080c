import test from 'ava';
import type { BackendNode } from '../../../cloud-controller-manager/backends/decide-backend-node.ts';
import type { DesiredLoadBalancer } from '../../../cloud-controller-manager/balancers/desired-load-balancer.ts';
import type { NoticeReason } from '../../../cloud-controller-manager/balancers/notice.ts';
import { planLoadBalancer } from '../../../cloud-controller-manager/services/plan-load-balancer.ts';
import { readAnnotations } from '../../../cloud-controller-manager/services/read-annotations.ts';
import { readServiceSpec } from '../../../cloud-controller-manager/services/read-service.ts';

const SERVICE = { namespace: 'shop', name: 'web', uid: 'u-1' };
const HTTP = { port: 80, nodePort: 30_080 };
const DNS = { port: 53, nodePort: 30_053, protocol: 'UDP' };

const node = (name: string, ip: string, changes: Partial<BackendNode> = {}): BackendNode => ({
  name,
  ip,
  instanceId: `ins-${name}`,
  zone: 'z-1',
  isReady: true,
  isLeaving: false,
  labels: {},
  ...changes,
});
const N1 = node('n1', '10.0.0.1');
const N2 = node('n2', '10.0.0.2', { labels: { pool: 'edge' } });

type Facts = {
  readonly spec?: object;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly nodes?: readonly BackendNode[];
  readonly maxTargets?: number;
};

function plan({
  spec = {},
  annotations = {},
  nodes = [N1, N2],
  maxTargets,
}: Facts): ReturnType<typeof planLoadBalancer> {
  const object = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: SERVICE.name, namespace: SERVICE.namespace },
    spec: { ports: [HTTP], ...spec },
  };
  return planLoadBalancer({
    service: SERVICE,
    spec: readServiceSpec(object),
    settings: readAnnotations(annotations, {}).settings,
    nodes,
    clusterId: 'cls-a',
    vpcId: 'vpc-1',
    ...(maxTargets === undefined ? {} : { maxTargets }),
  });
}

function desiredOf(facts: Facts): DesiredLoadBalancer {
  const { desired, notices } = plan(facts);
  if (desired === undefined) throw new Error(notices.map(({ message }) => message).join());
  return desired;
}

const SUBNET = { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': 'subnet-a1b2c3d4' };
const GROUPS = { 'service.cloud.tencent.com/security-groups': 'sg-a1b2c3d4' };

test('a public load balancer whose listener leads to the node port of every Node', (t) => {
  const { desired, notices } = plan({});
  t.deepEqual(notices, []);
  t.like(desired?.source, {
    kind: 'own',
    spec: {
      type: 'OPEN',
      name: 'cls-a_shop_web',
      vpcId: 'vpc-1',
      tags: { 'tke-eni-owner': 'cls-a/service/u-1', 'tke-clusterId': 'cls-a', 'tke-lb-serviceuuid': 'u-1' },
    },
  });
  t.deepEqual(desired?.listeners, [
    {
      protocol: 'TCP',
      port: 80,
      settings: {
        scheduler: 'WRR',
        sessionSeconds: 0,
        healthCheck: { isOn: true, kind: 'TCP', checkPort: 'target' },
      },
      targets: [
        { ip: '10.0.0.1', port: 30_080, instanceId: 'ins-n1', weight: 10 },
        { ip: '10.0.0.2', port: 30_080, instanceId: 'ins-n2', weight: 10 },
      ],
    },
  ]);
  t.false(desired?.allowsAddressChange);
});

test('what annotations and spec ask of a new load balancer', (t) => {
  const open = desiredOf({
    annotations: {
      'service.kubernetes.io/qcloud-loadbalancer-internet-charge-type': 'BANDWIDTH_POSTPAID_BY_HOUR',
      'service.kubernetes.io/qcloud-loadbalancer-internet-max-bandwidth-out': '50',
      'service.kubernetes.io/service.extensiveParameters':
        '{"VipIsp":"CMCC","MasterZoneId":"z-2","SlaType":"clb.c2.medium"}',
      'service.cloud.tencent.com/pass-to-target': 'true',
      ...GROUPS,
    },
  });
  t.like(open.source, {
    spec: {
      type: 'OPEN',
      chargeType: 'BANDWIDTH_POSTPAID_BY_HOUR',
      bandwidthMbps: 50,
      isp: 'CMCC',
      masterZone: 'z-2',
      slaType: 'clb.c2.medium',
      passesToTarget: true,
    },
  });
  t.like(open, { passesToTarget: true, securityGroupIds: ['sg-a1b2c3d4'] });
  const internal = desiredOf({ annotations: SUBNET, spec: { loadBalancerIP: '10.0.8.9' } });
  t.like(internal.source, { spec: { type: 'INTERNAL', subnetId: 'subnet-a1b2c3d4', vip: '10.0.8.9' } });
  const existing = desiredOf({ annotations: { 'service.kubernetes.io/tke-existed-lbid': 'lb-a1b2c3d4' } });
  t.deepEqual(existing.source, { kind: 'existing', namespace: 'shop', loadBalancerId: 'lb-a1b2c3d4' });
});

test('the name of a load balancer is cut to what the cloud takes', (t) => {
  const object = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, spec: { ports: [HTTP] } };
  const { desired } = planLoadBalancer({
    service: { namespace: 'n'.repeat(63), name: 's'.repeat(63), uid: 'u-2' },
    spec: readServiceSpec(object),
    settings: {},
    nodes: [],
    clusterId: 'cls-a',
    vpcId: 'vpc-1',
  });
  t.is(desired?.source.kind === 'own' ? desired.source.spec.name.length : 0, 80);
  t.not(desired?.listenerName, desiredOf({}).listenerName, 'listeners are of one Service');
});

test('TCP and UDP on one port are two listeners', (t) => {
  const { listeners } = desiredOf({
    spec: {
      ports: [
        { name: 't', ...DNS, protocol: 'TCP' },
        { name: 'u', ...DNS },
      ],
    },
  });
  t.deepEqual(
    listeners.map(({ protocol, port, settings }) => [protocol, port, settings.healthCheck?.isOn]),
    [
      ['TCP', 53, true],
      ['UDP', 53, false],
    ],
  );
});

test('with the policy Local the health check asks healthCheckNodePort', (t) => {
  const spec = { externalTrafficPolicy: 'Local', healthCheckNodePort: 31_000 };
  const [listener] = desiredOf({ spec }).listeners;
  t.like(listener?.settings.healthCheck, {
    isOn: true,
    kind: 'HTTP',
    checkPort: 31_000,
    http: { path: '/healthz', method: 'GET', version: 'HTTP/1.1', codes: 2 },
  });
  t.is(listener?.targets?.length, 2, 'every Node is bound: the check says which have Pods');
});

test('affinity is a session, clamped to what a listener takes, and that is reported', (t) => {
  const withSeconds = (seconds?: number): object => ({
    sessionAffinity: 'ClientIP',
    ...(seconds === undefined ? {} : { sessionAffinityConfig: { clientIP: { timeoutSeconds: seconds } } }),
  });
  const cases: readonly (readonly [number | undefined, number, number])[] = [
    [60, 60, 0],
    [30, 30, 0],
    [3_600, 3_600, 0],
    [1, 30, 1],
    [86_400, 3_600, 1],
    [undefined, 3_600, 1],
  ];
  for (const [given, seconds, reported] of cases) {
    const { desired, notices } = plan({ spec: withSeconds(given) });
    t.is(desired?.listeners[0]?.settings.sessionSeconds, seconds);
    t.is(notices.filter(({ reason, blocks }) => reason === 'AffinityClamped' && !blocks).length, reported);
  }
});

test('a Node that leaves has weight 0, and one that is not ready too where nothing checks', (t) => {
  const nodes = [N1, node('n3', '10.0.0.3', { isLeaving: true }), node('n4', '10.0.0.4', { isReady: false })];
  const spec = {
    ports: [
      { ...HTTP, name: 'h' },
      { ...DNS, name: 'd' },
    ],
  };
  const weights = (facts: Facts): readonly unknown[] =>
    desiredOf(facts).listeners.map(({ targets = [] }) => targets.map(({ weight }) => weight));
  t.deepEqual(weights({ spec, nodes }), [
    [10, 0, 10],
    [10, 0, 0],
  ]);
  const unready = nodes.map((one) => ({ ...one, isReady: false }));
  t.deepEqual(weights({ spec, nodes: unready })[1], [10, 0, 10], 'when none is ready, readiness says nothing');
});

test('a selector of backends', (t) => {
  const name = 'service.kubernetes.io/qcloud-loadbalancer-backends-label';
  const [listener] = desiredOf({ annotations: { [name]: 'pool=edge' } }).listeners;
  t.deepEqual(
    listener?.targets?.map(({ ip }) => ip),
    ['10.0.0.2'],
  );
  const { desired, notices } = plan({ annotations: { [name]: 'pool=none' } });
  t.is(desired?.listeners[0]?.targets, undefined, 'one that selects none does not empty the load balancer');
  t.like(notices, [{ reason: 'UnAvailableLoadBalancer', blocks: false }]);
});

test('no Node, or only Nodes that leave, is reported', (t) => {
  for (const nodes of [[], [node('n3', '10.0.0.3', { isLeaving: true })]]) {
    const { desired, notices } = plan({ nodes });
    t.like(notices, [{ reason: 'UnAvailableLoadBalancer', blocks: false }]);
    t.is(desired?.listeners[0]?.targets?.length, nodes.length);
  }
});

test('without a known quota all Nodes are bound, within what is planned', (t) => {
  const nodes = Array.from({ length: 300 }, (_, at) => node(`n${at}`, `10.0.${at >> 8}.${at & 255}`));
  t.is(plan({ nodes }).desired?.listeners[0]?.targets?.length, 300);
  const ports = Array.from({ length: 1_000 }, (_, at) => ({
    ...{ name: `p${at}`, protocol: 'TCP' as const, port: 1 + at, nodePort: 30_000 + at },
  }));
  const { desired } = plan({ nodes, spec: { ports } });
  t.deepEqual([...new Set(desired?.listeners.map(({ targets = [] }) => targets.length))], [250]);
});

test('above the quota a subset of all zones is bound, and it is stable', (t) => {
  const nodes = Array.from({ length: 30 }, (_, at) =>
    node(`n${at}`, `10.0.1.${at}`, { zone: at < 20 ? 'z-1' : at < 28 ? 'z-2' : 'z-3' }),
  );
  const boundOf = (all: readonly BackendNode[]): readonly string[] => {
    const { desired, notices } = plan({ nodes: all, maxTargets: 9 });
    t.like(notices, [{ reason: 'TargetsOverQuota', blocks: false }]);
    return desired?.listeners[0]?.targets?.map(({ ip }) => ip) ?? [];
  };
  const bound = boundOf(nodes);
  t.is(bound.length, 9);
  const zonesOf = (ips: readonly string[]): readonly string[] =>
    ips.map((ip) => nodes.find((one) => one.ip === ip)?.zone ?? '').sort();
  t.deepEqual(
    Object.values(Object.groupBy(zonesOf(bound), (zone) => zone)).map((all) => all?.length),
    [4, 3, 2],
  );
  t.deepEqual(boundOf(nodes.toReversed()).toSorted(), bound.toSorted(), 'their order does not count');
  const [gone] = bound;
  const fewer = boundOf(nodes.filter(({ ip }) => ip !== gone));
  t.is(bound.filter((ip) => !fewer.includes(ip)).length, 1, 'only the one that is gone is replaced');
});

type Refusal = readonly [title: string, facts: Facts, reason: NoticeReason, words: RegExp];

const REFUSED: readonly Refusal[] = [
  ['no port', { spec: { ports: [] } }, 'ServiceInvalid', /spec.ports is empty/],
  ['SCTP', { spec: { ports: [{ ...HTTP, protocol: 'SCTP' }] } }, 'ServiceRefused', /port 80 of SCTP.*remove the port/],
  ['IPv6 alone', { spec: { ipFamilies: ['IPv6'] } }, 'ServiceRefused', /ipFamilies has no IPv4.*add IPv4/],
  [
    'no node ports',
    { spec: { ports: [{ port: 80 }], allocateLoadBalancerNodePorts: false } },
    'ServiceRefused',
    /no node port.*set allocateLoadBalancerNodePorts to true/,
  ],
  [
    'UDP with Local',
    { spec: { ports: [DNS], externalTrafficPolicy: 'Local', healthCheckNodePort: 31_000 } },
    'ServiceRefused',
    /port 53 of UDP.*set it to Cluster/,
  ],
  [
    'ranges of clients, and groups of a load balancer that exists',
    {
      spec: { loadBalancerSourceRanges: ['10.0.0.0/8'] },
      annotations: { ...GROUPS, 'service.kubernetes.io/tke-existed-lbid': 'lb-a1b2c3d4' },
    },
    'ServiceRefused',
    /lb-a1b2c3d4 is not made for this Service.*write the ranges as rules of its security group/,
  ],
  ['a public address', { spec: { loadBalancerIP: '1.2.3.4' } }, 'ServiceRefused', /public address cannot be chosen/],
  ['no address', { spec: { loadBalancerIP: 'web.example' }, annotations: SUBNET }, 'ServiceInvalid', /web.example/],
  [
    'two addresses',
    {
      spec: { loadBalancerIP: '10.0.8.9' },
      annotations: { ...SUBNET, 'service.kubernetes.io/service.extensiveParameters': '{"Vip":"10.0.8.8"}' },
    },
    'ServiceInvalid',
    /the same as Vip/,
  ],
];

for (const [title, facts, reason, words] of REFUSED) {
  test(`is refused, and nothing is planned: ${title}`, (t) => {
    const { desired, notices } = plan(facts);
    t.is(desired, undefined);
    const blocking = notices.filter(({ blocks }) => blocks);
    t.like(blocking, [{ reason }]);
    t.regex(blocking[0]?.message ?? '', words);
  });
}

test('what is left out is reported, and the rest is done', (t) => {
  const remarks = (facts: Facts): readonly string[] => {
    const { desired, notices } = plan(facts);
    t.true(desired !== undefined);
    return notices.map(({ message }) => message);
  };
  t.regex(remarks({ spec: { ipFamilies: ['IPv4', 'IPv6'] } }).join(), /IPv4 is served alone/);
  const ranges = remarks({ spec: { loadBalancerSourceRanges: ['10.0.0.0/8'] }, annotations: GROUPS });
  t.regex(ranges.join(), /the security groups of the annotation .*security-groups decide/);
  t.deepEqual(remarks({ spec: { loadBalancerSourceRanges: ['0.0.0.0/0'] } }), []);
  const bandwidth = { 'service.kubernetes.io/qcloud-loadbalancer-internet-max-bandwidth-out': '5' };
  t.regex(remarks({ annotations: { ...SUBNET, ...bandwidth } }).join(), /bandwidthMbps.*no public address/);
  const existed = { 'service.kubernetes.io/tke-existed-lbid': 'lb-a1b2c3d4', ...bandwidth };
  t.regex(remarks({ annotations: existed }).join(), /bandwidthMbps.*lb-a1b2c3d4 is not made or changed/);
});
