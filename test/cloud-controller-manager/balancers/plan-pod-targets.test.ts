import test from 'ava';
import type { BackendPod } from '../../../cloud-controller-manager/backends/backend-pod.ts';
import type { BackendPort } from '../../../cloud-controller-manager/backends/backend-port.ts';
import type { Endpoint, EndpointSlice } from '../../../cloud-controller-manager/backends/endpoint-slice.ts';
import type { PodNode } from '../../../cloud-controller-manager/backends/pod-node.ts';
import type { DesiredTarget } from '../../../cloud-controller-manager/balancers/desired-targets.ts';
import { type PodBackends, planPodTargets } from '../../../cloud-controller-manager/balancers/plan-pod-targets.ts';
import type { ServiceSettings } from '../../../cloud-controller-manager/services/served-annotations.ts';

const HTTP: BackendPort = { name: 'http', protocol: 'TCP', port: 80 };
const NODE: PodNode = {
  zone: 'z-1',
  isSilent: false,
  podCidrs: ['192.168.1.0/24'],
  hasNetwork: true,
  instanceId: 'ins-1',
};
const OPEN_GATE = { status: '', reason: '', message: '' };

const pod = (changes: Partial<BackendPod> = {}): BackendPod => ({
  namespace: 'shop',
  name: 'a',
  uid: 'u-a',
  nodeName: 'n1',
  ips: ['10.0.1.1'],
  isLeaving: false,
  network: 'eni',
  areContainersReady: true,
  areOtherGatesTrue: true,
  ...changes,
});
const endpoint = (changes: Partial<Endpoint> = {}): Endpoint => ({
  ip: '10.0.1.1',
  isReady: true,
  isTerminating: false,
  pod: 'shop/a',
  ...changes,
});
const slice = (endpoints: readonly Endpoint[], port = 8_080): EndpointSlice => ({
  service: 'shop/web',
  ports: [{ name: 'http', protocol: 'TCP', port }],
  endpoints,
});

type Case = {
  readonly slices: readonly EndpointSlice[];
  readonly pods?: Readonly<Record<string, BackendPod>>;
  readonly ended?: readonly string[];
  readonly nodes?: Readonly<Record<string, PodNode>>;
  readonly settings?: ServiceSettings;
  readonly keepsRoutes?: boolean;
  readonly ports?: readonly BackendPort[];
  readonly maxTargets?: number;
};

function plan({ slices, pods = { 'shop/a': pod() }, nodes = { n1: NODE }, ...rest }: Case): {
  readonly targets: readonly DesiredTarget[];
  readonly notices: readonly string[];
} {
  const facts: PodBackends = {
    slices,
    podOf: (key) => pods[key],
    hasEnded: (uid) => rest.ended?.includes(uid) ?? false,
    nodeOf: (name) => nodes[name],
    keepsRoutes: rest.keepsRoutes ?? false,
  };
  const { targetsOf, notices } = planPodTargets(facts, rest.settings ?? {}, rest.ports ?? [HTTP], rest.maxTargets);
  return {
    targets: targetsOf(rest.ports?.[0] ?? HTTP) ?? [],
    notices: notices.map(({ reason, message }) => `${reason}: ${message}`),
  };
}

/** The weight of the only endpoint beside one that is bound; `none`: it is no target. */
function weightOf(one: Partial<Endpoint>, its: BackendPod | undefined, more: Partial<Case> = {}): number | string {
  const other = endpoint({ ip: '10.0.1.9', pod: 'shop/other' });
  const pods = {
    'shop/other': pod({ name: 'other', ips: ['10.0.1.9'] }),
    ...(its === undefined ? {} : { 'shop/a': its }),
  };
  const { targets } = plan({ slices: [slice([endpoint(one), other])], pods, ...more });
  return targets.find(({ ip }) => ip === '10.0.1.1')?.weight ?? 'none';
}

test('which endpoint is a target', (t) => {
  const unready = { isReady: false };
  t.is(weightOf({}, pod()), 10, 'ready');
  t.is(weightOf(unready, pod({ gate: OPEN_GATE })), 10, 'only the gate is missing');
  t.is(weightOf(unready, pod({ gate: OPEN_GATE, areContainersReady: false })), 'none', 'not ready itself');
  t.is(weightOf(unready, pod({ gate: OPEN_GATE, areOtherGatesTrue: false })), 'none', 'another gate is missing');
  t.is(weightOf(unready, pod()), 'none', 'not ready, without a gate');
  t.is(weightOf({}, undefined), 'asIs', 'its Pod is not in the cache yet');
});

test('an endpoint of another Pod than that of its name, or of an address that is not its own, is never a target', (t) => {
  t.is(weightOf({ podUid: 'u-a' }, pod()), 10);
  t.is(weightOf({ podUid: 'u-old' }, pod()), 0, 'a former Pod of the same name');
  t.is(weightOf({ podUid: 'u-old' }, pod({ isLeaving: false, gate: OPEN_GATE })), 0);
  t.is(weightOf({}, pod({ ips: ['10.0.1.7'] })), 0, 'the address of something else');
  t.is(weightOf({}, pod({ ips: ['10.0.1.7'], network: 'bridge' })), 0);
  t.is(weightOf({}, pod({ ips: [] })), 'asIs', 'it has no address yet');
});

test('a Pod that was there and has ended has weight 0, though its slice has it', (t) => {
  const ended = ['u-a'];
  t.is(weightOf({ podUid: 'u-a' }, undefined, { ended }), 0);
  t.is(weightOf({ podUid: 'u-a' }, undefined, { ended, settings: { drainsLeaving: false } }), 'none');
  t.is(weightOf({ podUid: 'u-b' }, undefined, { ended }), 'asIs', 'another one is not known');
});

test('a Pod stays what it is while its Node is not known, where that decides how it is bound', (t) => {
  const none: Partial<Case> = { nodes: {} };
  for (const keepsRoutes of [false, true]) {
    t.is(weightOf({}, pod({ network: 'unnamed' }), { ...none, keepsRoutes }), 'asIs');
    t.is(weightOf({}, pod({ network: 'host' }), { ...none, keepsRoutes }), 'asIs');
    t.is(weightOf({}, pod({ network: 'eni' }), { ...none, keepsRoutes }), 10);
  }
  t.is(weightOf({}, pod({ network: 'bridge' }), { ...none, keepsRoutes: true }), 'asIs');
  t.is(weightOf({}, pod({ network: 'bridge' }), none), 'none');
});

test('a Pod that ends has weight 0 as long as it is there, from the moment that it or its slice says so', (t) => {
  t.is(weightOf({ isReady: false, isTerminating: true }, pod({ isLeaving: true })), 0);
  t.is(weightOf({}, pod({ isLeaving: true })), 0, 'the slice says it later');
  t.is(weightOf({ isTerminating: true }, undefined), 0, 'the Pod is not in the cache');
  t.is(weightOf({ isReady: true, isTerminating: true }, pod()), 0, 'as with publishNotReadyAddresses');
  t.is(weightOf({}, pod({ isLeaving: true, gate: OPEN_GATE })), 0);
  t.is(weightOf({}, pod({ isLeaving: true }), { settings: { drainsLeaving: false } }), 'none');
});

test('by an annotation a Pod that is not ready any more has weight 0 as long as it is there', (t) => {
  const settings = { drainsUnready: true };
  t.is(weightOf({ isReady: false }, pod(), { settings }), 0);
  t.is(weightOf({ isReady: false }, pod(), { settings, nodes: { n1: { ...NODE, isSilent: true } } }), 0);
});

test('Pods of nodes that are not heard of serve when nothing else is left', (t) => {
  const nodes = { n1: { ...NODE, isSilent: true } };
  t.is(weightOf({ isReady: false }, pod(), { nodes }), 'none', 'another one is ready');
  t.is(
    weightOf({ isReady: false }, pod({ gate: OPEN_GATE }), { nodes }),
    'none',
    'what was said of its containers is old',
  );
  const { targets } = plan({ slices: [slice([endpoint({ isReady: false })])], nodes });
  t.deepEqual(targets, [{ ip: '10.0.1.1', port: 8_080, weight: 10 }]);
  const dead = plan({ slices: [slice([endpoint({ isReady: false })])] });
  t.deepEqual(dead.targets, []);
  t.deepEqual(dead.notices, ['UnAvailableLoadBalancer: There are no ready Pods for LoadBalancer']);
});

test('a Pod is bound by its own kind', (t) => {
  const bind = (its: BackendPod, ip: string, more: Partial<Case> = {}): ReturnType<typeof plan> =>
    plan({ slices: [slice([endpoint({ ip })])], pods: { 'shop/a': { ...its, ips: [ip] } }, ...more });
  t.deepEqual(bind(pod({ network: 'host' }), '10.0.0.5').targets, [
    { ip: '10.0.0.5', port: 8_080, weight: 10, instanceId: 'ins-1' },
  ]);
  const { instanceId: _, ...stranger } = NODE;
  t.regex(
    bind(pod({ network: 'host' }), '10.0.0.5', { nodes: { n1: stranger } }).notices.join(),
    /DirectAccessImpossible: shop\/a is not bound .* no instance/,
  );
  for (const network of ['bridge', 'unnamed'] as const) {
    const refused = bind(pod({ network }), '192.168.1.7');
    t.deepEqual(refused.targets, []);
    t.regex(refused.notices.join(), /DirectAccessImpossible: shop\/a is not bound .* --routes/);
    const routed = bind(pod({ network }), '192.168.1.7', { keepsRoutes: true });
    t.deepEqual(routed, { targets: [{ ip: '192.168.1.7', port: 8_080, weight: 10 }], notices: [] });
    const unrouted = bind(pod({ network }), '192.168.1.7', {
      keepsRoutes: true,
      nodes: { n1: { ...NODE, hasNetwork: false } },
    });
    t.regex(unrouted.notices.join(), /no route to its node/);
  }
  t.deepEqual(bind(pod({ network: 'unnamed' }), '10.0.1.1').targets.length, 1, 'its address is of no podCIDR');
});

test('each Pod that cannot be bound is told with what to set: its network, a flag, or the annotation of the owner', (t) => {
  const host = pod({ network: 'host' });
  const { instanceId: _, ...stranger } = NODE;
  const rows: readonly (readonly [BackendPod, string, Partial<Case>, readonly RegExp[]])[] = [
    [
      pod({ network: 'bridge' }),
      '192.168.1.7',
      {},
      [/tke\.cloud\.tencent\.com\/networks: tke-route-eni/, /set --routes/],
    ],
    [
      pod({ network: 'bridge' }),
      '192.168.1.7',
      { keepsRoutes: true, nodes: { n1: { ...NODE, hasNetwork: false } } },
      [/event FailedToCreateRoute of the Node/, /networks: tke-route-eni/],
    ],
    [host, '10.0.0.5', { nodes: { n1: stranger } }, [/nodeSelector/]],
    [host, '10.0.0.5', { nodes: { n1: { ...NODE, instanceIps: ['10.0.0.9'] } } }, [/--node-ip/]],
  ];
  for (const [its, ip, more, cures] of rows) {
    const facts = { slices: [slice([endpoint({ ip })])], pods: { 'shop/a': { ...its, ips: [ip] } }, ...more };
    const said = plan(facts).notices.join();
    for (const cure of [...cures, /"false" in the annotation service\.cloud\.tencent\.com\/direct-access/])
      t.regex(said, cure);
  }
});

test('what is behind a Service and no Pod is reported', (t) => {
  const { pod: _, ...external } = endpoint({ ip: '203.0.113.9' });
  const { targets, notices } = plan({ slices: [slice([external, endpoint()])] });
  t.deepEqual(
    targets.map(({ ip }) => ip),
    ['10.0.1.1'],
  );
  t.deepEqual(notices, [
    'DirectAccessImpossible: 203.0.113.9 is not bound to the load balancer: no Pod has the address; name the Pod in targetRef of the endpoint, or let Nodes be the backends by "false" in the annotation service.cloud.tencent.com/direct-access, of an Ingress ingress.cloud.tencent.com/direct-access',
  ]);
});

test('target ports with names are those of each slice, and other ports are not bound', (t) => {
  const second = endpoint({ ip: '10.0.1.2', pod: 'shop/b' });
  const other = { ...slice([endpoint()]), ports: [{ name: 'metrics', protocol: 'TCP', port: 9_000 }] };
  const udp = { ...slice([endpoint()]), ports: [{ name: 'http', protocol: 'UDP', port: 9_001 }] };
  const { targets } = plan({
    slices: [slice([endpoint()]), slice([second], 8_081), other, udp],
    pods: { 'shop/a': pod(), 'shop/b': pod({ name: 'b', ips: ['10.0.1.2'] }) },
  });
  t.deepEqual(
    targets.map(({ ip, port }) => `${ip}:${port}`),
    ['10.0.1.1:8080', '10.0.1.2:8081'],
  );
});

test('one address and port in two slices is one target, and what serves counts', (t) => {
  const old = endpoint({ pod: 'shop/old', isTerminating: true, isReady: false });
  for (const endpoints of [
    [old, endpoint()],
    [endpoint(), old],
  ]) {
    const { targets } = plan({ slices: endpoints.map((one) => slice([one])) });
    t.deepEqual(targets, [{ ip: '10.0.1.1', port: 8_080, weight: 10 }]);
  }
});

test('above the quota a subset of all zones is bound, and it is stable', (t) => {
  const names = Array.from({ length: 30 }, (_, at) => `p${at}`);
  const pods = Object.fromEntries(
    names.map((name, at) => [`shop/${name}`, pod({ name, ips: [`10.0.2.${at}`], nodeName: at < 20 ? 'n1' : 'n2' })]),
  );
  const nodes = { n1: NODE, n2: { ...NODE, zone: 'z-2' } };
  const boundOf = (all: readonly string[]): readonly string[] => {
    const endpoints = all.map((name) => endpoint({ ip: `10.0.2.${name.slice(1)}`, pod: `shop/${name}` }));
    const { targets, notices } = plan({ slices: [slice(endpoints)], pods, nodes, maxTargets: 10 });
    t.regex(notices.join(), /^TargetsOverQuota: \d+ Pods are backends.* 10 targets; 10 of them/);
    return targets.map(({ ip }) => ip);
  };
  const bound = boundOf(names);
  t.is(bound.length, 10);
  t.is(bound.filter((ip) => Number(ip.split('.')[3]) < 20).length, 5, 'half of each zone');
  t.deepEqual(boundOf(names.toReversed()).toSorted(), bound.toSorted());
  const fewer = boundOf(names.filter((name) => `10.0.2.${name.slice(1)}` !== bound[0]));
  t.is(bound.filter((ip) => !fewer.includes(ip)).length, 1);
});

const METRICS: BackendPort = { name: 'metrics', protocol: 'TCP', port: 9_090 };

test('the Pods of each port are its own: those of another port neither take its quota nor stand in for it', (t) => {
  const names = Array.from({ length: 8 }, (_, at) => `p${at}`);
  const pods = Object.fromEntries(names.map((name, at) => [`shop/${name}`, pod({ name, ips: [`10.0.2.${at}`] })]));
  const endpoints = names.map((name, at) => endpoint({ ip: `10.0.2.${at}`, pod: `shop/${name}` }));
  const metrics = { ...slice(endpoints.slice(4)), ports: [{ name: 'metrics', protocol: 'TCP', port: 9_000 }] };
  const ports = [HTTP, METRICS];
  const full = plan({ slices: [slice(endpoints.slice(0, 4)), metrics], pods, ports, maxTargets: 4 });
  t.is(full.targets.length, 4);
  t.deepEqual(full.notices, []);
  const silent = { n1: NODE, n2: { ...NODE, isSilent: true } };
  const lost = { ...pods, 'shop/p0': pod({ name: 'p0', ips: ['10.0.2.0'], nodeName: 'n2' }) };
  const slices = [slice([endpoint({ ip: '10.0.2.0', pod: 'shop/p0', isReady: false })]), metrics];
  t.deepEqual(plan({ slices, pods: lost, nodes: silent, ports }).targets, [
    { ip: '10.0.2.0', port: 8_080, weight: 10 },
  ]);
});

test('a port that no slice has is reported', (t) => {
  const { targets, notices } = plan({ slices: [slice([endpoint()])], ports: [METRICS, HTTP] });
  t.deepEqual(targets, []);
  t.deepEqual(notices, [
    'UnAvailableLoadBalancer: port 9090 of TCP: no ready Pod has its target port; look at targetPort',
  ]);
});
