import test, { type ExecutionContext } from 'ava';
import type { BackendNode } from '../../cloud-controller-manager/backends/decide-backend-node.ts';
import { placesOfAddresses } from '../../cloud-controller-manager/balancers/desired-places.ts';
import { diffLoadBalancer } from '../../cloud-controller-manager/balancers/diff-load-balancer.ts';
import type { ObservedLoadBalancer } from '../../cloud-controller-manager/balancers/observed-load-balancer.ts';
import { planGroup } from '../../cloud-controller-manager/ingresses/plan-group.ts';
import { type IngressPlan, planIngress, withConfig } from '../../cloud-controller-manager/ingresses/plan-ingress.ts';
import { planUnit } from '../../cloud-controller-manager/ingresses/plan-unit.ts';
import { readAnnotations } from '../../cloud-controller-manager/ingresses/read-annotations.ts';
import { readIngressHead, readIngressSpec } from '../../cloud-controller-manager/ingresses/read-ingress.ts';
import { planAutoListeners } from '../../cloud-controller-manager/service-configs/plan-auto-listeners.ts';
import { planAutoRules } from '../../cloud-controller-manager/service-configs/plan-auto-rules.ts';
import { planLoadBalancer } from '../../cloud-controller-manager/services/plan-load-balancer.ts';
import { makeCertificate } from '../../runtime/make-certificate.ts';

type IngressFacts = Parameters<typeof planIngress>[0];
type ServiceFacts = Parameters<typeof planLoadBalancer>[0];

/** Some tens of milliseconds are usual; what grows with the square of a length takes minutes. CPU time, so that others do not count. */
const MOST_CPU_MS = 3_000;
const [RULES, TARGETS, ITEMS] = [5_000, 250_000, 50_000];
const DAY_MS = 86_400_000;
const ALONE = { clusterId: 'cls-large', vpcId: 'vpc-large', maxTargets: 100 };
const BACKEND = { service: { name: 'web', port: { number: 80 } } };
const LISTEN = 'ingress.cloud.tencent.com/listen-ports';
const BOTH = 'kubernetes.io/ingress.rule-mix-both';

/** Does work, whose CPU time is bounded far above what it takes. */
function bounded<T>(t: ExecutionContext, what: string, work: () => T): T {
  const before = process.cpuUsage();
  const done = work();
  const { user, system } = process.cpuUsage(before);
  const ms = (user + system) / 1_000;
  t.log(`${what}: ${Math.round(ms)} ms`);
  t.true(ms < MOST_CPU_MS, `${what} took ${ms} ms of CPU time`);
  return done;
}

function numbers(length: number): readonly number[] {
  return Array.from({ length }, (_, at) => at);
}

function nodesOf(count: number): readonly BackendNode[] {
  const common = { zone: 'z', isReady: true, isLeaving: false, labels: {} };
  return numbers(count).map((at) => ({ ...common, name: `n${at}`, ip: `10.0.${at >> 8}.${at & 255}` }));
}

/** Hosts with a thousand paths each. */
function rulesOf(count: number, pathType = 'Exact') {
  return numbers(Math.ceil(count / 1_000)).map((host) => ({
    host: `h${host}.example.com`,
    http: {
      paths: numbers(Math.min(1_000, count - host * 1_000)).map((at) => ({
        ...{ path: `/${host}/${at}`, pathType, backend: BACKEND },
      })),
    },
  }));
}

function portsOf(count: number, isBoth = false): string {
  return JSON.stringify(
    numbers(count).map((at) => (isBoth && at % 2 === 1 ? { HTTPS: 1_000 + at } : { HTTP: 1_000 + at })),
  );
}

/** Plans an Ingress from its object to what is desired of its load balancer. */
function planOf(
  spec: object,
  annotations: Readonly<Record<string, string>>,
  facts: Partial<IngressFacts> = {},
): { readonly plan: IngressPlan; readonly unit: ReturnType<typeof planUnit>; readonly messages: readonly string[] } {
  const metadata = { name: 'large', namespace: 'tenant', uid: 'u1', annotations };
  const object = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata, spec };
  const head = readIngressHead(object);
  const { settings } = readAnnotations(annotations);
  const plan = planIngress({
    ...{ head, settings, ...ALONE, nodes: nodesOf(100), nowMs: Date.now() },
    spec: readIngressSpec(object),
    secretOf: () => ({ kind: 'missing' }),
    portsOf: () => [{ name: 'http', port: 80, protocol: 'TCP', nodePort: 30_080 }],
    podsOf: () => ({ slices: [], podOf: () => undefined, nodeOf: () => undefined, keepsRoutes: false }),
    ...facts,
  });
  const unit = planUnit({ plan, head, settings, ids: new Map(), listenerName: 'ours', maxRules: 50 });
  return { plan, unit, messages: [...plan.notices, ...unit.notices].map(({ message }) => message) };
}

function isRefused(t: ExecutionContext, { plan, unit, messages }: ReturnType<typeof planOf>, ...texts: string[]): void {
  t.is(unit.desired, undefined);
  const notice = [...plan.notices, ...unit.notices].find(({ blocks }) => blocks);
  t.is(notice?.reason, 'IngressRefused', messages.join('\n'));
  for (const text of texts) t.true(notice?.message.includes(text), `${text}: ${notice?.message}`);
}

test('the largest Ingress: paths on ports of both protocols', (t) => {
  for (const [paths, ports] of [
    [2_500, 2],
    [100, 50],
    [500, 10],
  ] as const) {
    const annotations = { [LISTEN]: portsOf(ports, true), [BOTH]: 'true' };
    const { plan, unit } = bounded(t, `${paths} paths on ${ports} ports`, () =>
      planOf({ rules: rulesOf(paths) }, annotations, { nodes: nodesOf(1) }),
    );
    t.is(sumOf(plan.listeners?.map(({ rules }) => rules.length)), (paths * ports) / 2);
    t.true((unit.ruleListeners ?? []).every(({ rules }) => rules.length <= 50));
  }
  const whole = { [LISTEN]: portsOf(50, true), [BOTH]: 'true' };
  const beyond = bounded(t, 'beyond', () => planOf({ rules: rulesOf(4_000, 'Prefix') }, whole));
  isRefused(t, beyond, '8000 rules x 50 ports of listeners are 400000', `at most ${RULES}`);
});

test('an Ingress with more paths or hosts than are planned is not even decoded', (t) => {
  const tls = numbers(20).map((at) => ({ secretName: 's', hosts: numbers(1_000).map((one) => `h${at}-${one}`) }));
  for (const [spec, text] of [
    [{ rules: rulesOf(6_000) }, 'rules[].http.paths'],
    [{ rules: rulesOf(1), tls }, 'tls[].hosts'],
  ] as const) {
    const error = t.throws(() => bounded(t, text, () => planOf(spec, {})));
    t.regex(error?.message ?? '', new RegExp(`tenant/large.*at most ${RULES}`));
    t.true(error?.message.includes(text));
  }
});

test('the largest tables of weights: groups and indexes are read once', (t) => {
  const annotation = 'ingress.cloud.tencent.com/lb-rs-weight';
  const groupsOf = (count: number, indexes: readonly number[]) =>
    JSON.stringify({
      groups: numbers(count).map((at) => ({
        key: at === count - 1 ? {} : { path: `/none${at}` },
        statefulSets: [{ name: 'web', weights: [{ weight: 7, podIndexes: indexes }] }],
      })),
    });
  const annotations = { [annotation]: groupsOf(1, numbers(10_000)), [LISTEN]: portsOf(5) };
  const { plan } = bounded(t, 'indexes', () => planOf({ rules: rulesOf(1_000) }, annotations));
  const targets = new Set(plan.listeners?.flatMap(({ rules }) => rules.map((rule) => rule.targets)));
  t.is(targets.size, 1);
  bounded(t, 'groups', () => planOf({ rules: rulesOf(100) }, { [annotation]: groupsOf(500, [1]) }));
  const beyond = bounded(t, 'beyond', () => planOf({ rules: rulesOf(2_000) }, { [annotation]: groupsOf(500, [1]) }));
  isRefused(t, beyond, '2000 rules x 1 ports of listeners x 500 groups of weights are 1000000', `at most ${ITEMS}`);
});

test('the largest certificates: hosts are compared with names of Secrets, each pair once', (t) => {
  const nowMs = Date.now();
  const names = numbers(1_500).map((at) => `h${at}.example.com`);
  const validity = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + 90 * DAY_MS };
  const { cert, key } = makeCertificate({ commonName: 'large', use: 'server', names, ...validity });
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const data = { 'tls.crt': base64(cert), 'tls.key': base64(key) };
  const secret = { kind: 'found', type: 'kubernetes.io/tls', data } as const;
  const tlsOf = (entries: number, hosts: number) =>
    numbers(entries).map((entry) => ({
      secretName: 'large',
      hosts: numbers(hosts).map((host) => `h${entry * hosts + host}.example.com`),
    }));
  const facts = { secretOf: () => secret };
  const { plan } = bounded(t, 'hosts', () => planOf({ rules: rulesOf(10), tls: tlsOf(3, 11) }, {}, facts));
  t.is(plan.uploads.size, 1);
  t.false(plan.notices.some(({ blocks }) => blocks));
  const beyond = bounded(t, 'beyond', () => planOf({ rules: rulesOf(10), tls: tlsOf(5, 1_000) }, {}, facts));
  isRefused(t, beyond, '7500000 names of certificates', `at most ${ITEMS}`);
  // A Secret that is missing is no work, and each entry of it is a text.
  const missing = bounded(t, 'missing', () => planOf({ rules: rulesOf(10), tls: tlsOf(1_000, 5) }, {}));
  const refused = missing.plan.notices.filter(({ reason }) => reason === 'CertificateRefused');
  const [ofHosts, ofSecrets] = [/no rule has such a host/, /there is no such Secret/].map(
    (text) => refused.filter(({ message }) => text.test(message)).length,
  );
  t.deepEqual([ofHosts, ofSecrets, refused.length], [1, 1_000, 1_001]);
});

test('the largest redirects: each finds its rule at once', (t) => {
  const rules = numbers(400).map((at) => ({
    ...{ host: 'a.example.com', path: `/${at}`, backend: { serviceName: 'web', servicePort: 80 } },
    rewrite: { port: 1_001, host: 'h0.example.com', path: `/0/${at % 250}` },
  }));
  const annotations = {
    'kubernetes.io/ingress.rule-mix': 'true',
    'ingress.cloud.tencent.com/rewrite-support': 'true',
    'kubernetes.io/ingress.http-rules': JSON.stringify(rules),
    'ingress.cloud.tencent.com/certificate': JSON.stringify([{ qcloud_cert_id: ['abcd1234'] }]),
    [LISTEN]: portsOf(14, true),
  };
  const { plan } = bounded(t, 'redirects', () => planOf({ rules: rulesOf(250) }, annotations, { nodes: nodesOf(1) }));
  const redirects = plan.listeners?.flatMap((one) => one.rules.filter(({ redirect }) => redirect !== undefined));
  t.is(redirects?.length, 400 * 7);
});

test('the largest TkeServiceConfig: every rule finds its entry at once', (t) => {
  const { plan } = planOf({ rules: rulesOf(4_500) }, { [LISTEN]: portsOf(1) }, { nodes: nodesOf(1) });
  const domains = numbers(200).map((host) => ({
    domain: `H${host % 5}.example.com`,
    rules: numbers(200).map((at) => ({ url: `/${host % 5}/${at}`, scheduler: 'WRR' as const })),
  }));
  const l7Listeners = [{ protocol: 'HTTP' as const, port: 1_000, domains }];
  const configured = bounded(t, 'named', () => withConfig(plan, { kind: 'known', config: { l7Listeners } }));
  const rules = configured.desired?.listeners.flatMap((one) => one.rules) ?? [];
  t.is(rules.filter(({ initialSettings }) => initialSettings !== undefined).length, 5 * 200);
  const made = bounded(t, 'made', () => planAutoRules(plan.listeners ?? [], l7Listeners));
  t.is(sumOf(made?.flatMap((one) => one.domains?.map((domain) => domain.rules?.length ?? 0) ?? [])), 4_500);
  t.is(
    bounded(t, 'made before', () => planAutoRules(plan.listeners ?? [], made)),
    undefined,
  );
  const listeners = numbers(1_000).map((at) => ({ protocol: 'TCP' as const, port: 1 + at }));
  const entries = bounded(t, 'of a Service', () => planAutoListeners(listeners, undefined));
  t.is(
    bounded(t, 'of a Service before', () => planAutoListeners(listeners, entries)),
    undefined,
  );
});

test('the largest group: the rules of all members together, those of the older ones first', (t) => {
  const { plan } = planOf({ rules: rulesOf(4_500) }, { [LISTEN]: portsOf(1) }, { nodes: nodesOf(1) });
  const claims = numbers(200).map((at) => ({
    ingress: { key: `tenant/i${at}`, uid: `u${at}`, createdAt: `2026-01-01T00:${String(at).padStart(3, '0')}` },
    isGrouped: true,
    listeners: (plan.listeners ?? []).map((one) => ({ ...one, port: one.port + at })),
  }));
  const { listeners, noticesOf } = bounded(t, 'members', () => planGroup(claims, 50));
  t.deepEqual(
    listeners.map(({ port, rules }) => [port, rules.filter(({ isPassive }) => isPassive !== true).length]),
    [
      [1_000, 50],
      [1_001, 50],
      [1_002, 0],
      [1_003, 0],
    ],
  );
  const third = noticesOf.get('u2') ?? [];
  t.like(third[0], { reason: 'IngressRefused', blocks: true });
  t.regex(third[0]?.message ?? '', /13500 rules/);
});

test('the largest targets: what differs on all of them is found at once, and more are refused', (t) => {
  const large = bounded(t, 'targets', () => planOf({ rules: rulesOf(50) }, { [LISTEN]: portsOf(50) }));
  t.is(
    sumOf(large.unit.ruleListeners?.flatMap(({ rules }) => rules.map(({ targets = [] }) => targets.length))),
    TARGETS,
  );
  const { desired } = large.unit;
  if (desired === undefined) return t.fail('it is not planned');
  const observed = observedOf(desired);
  const diff = bounded(t, 'targets that differ', () => diffLoadBalancer(desired, observed, () => true));
  t.true(diff.steps.length > 0);
  const asked = nodesOf(100).flatMap(({ ip }) => Array.from({ length: 50 }, () => ip));
  const places = bounded(t, 'Pods that ask for their targets', () =>
    asked.map((ip) => placesOfAddresses(desired, [ip]).length),
  );
  t.deepEqual([...new Set(places)], [2_500]);
  const beyond = planOf({ rules: rulesOf(50) }, { [LISTEN]: portsOf(50) }, { nodes: nodesOf(101), maxTargets: 101 });
  isRefused(t, beyond, '252500 targets', `at most ${TARGETS}`);
});

test('the largest Service: ports with Nodes, with endpoints of Pods, with source ranges', (t) => {
  const service = (ports: number, spec: object, more: Partial<ServiceFacts>) =>
    planLoadBalancer({
      ...{ service: { namespace: 'tenant', name: 'large', uid: 'u1' }, settings: {}, nodes: nodesOf(100), ...ALONE },
      spec: {
        ports: numbers(ports).map((at) => ({
          name: `p${at}`,
          protocol: 'TCP',
          port: 1 + at * 2,
          nodePort: 30_000 + at,
        })),
        ...{ externalTrafficPolicy: 'Cluster', allocatesNodePorts: true, ipFamilies: ['IPv4'], sourceRanges: [] },
        ...spec,
      },
      ...more,
    });
  const most = bounded(t, 'Nodes', () => service(2_500, {}, {}));
  t.is(sumOf(most.listeners?.map(({ targets = [] }) => targets.length)), TARGETS);
  const pods = podsOf(10);
  const direct = bounded(t, 'Pods', () => service(25, {}, { pods }));
  t.is(sumOf(direct.listeners?.map(({ targets = [] }) => targets.length)), 2_500);
  const many = bounded(t, 'slices of many ports', () => service(1_000, {}, { pods: podsOf(100, 1, 1_000) }));
  t.is(sumOf(many.listeners?.map(({ targets = [] }) => targets.length)), 100_000);
  const sourceRanges = numbers(100).map((at) => `10.${at}.0.0/16`);
  const ranges = bounded(t, 'ranges', () => service(500, { sourceRanges }, {}));
  t.is(ranges.desired?.sourceGroup?.rules?.length, 100);
  for (const [plan, text] of [
    [bounded(t, 'beyond', () => service(3_000, {}, {})), '3000 ports x 100 Nodes are 300000'],
    [bounded(t, 'beyond', () => service(26, {}, { pods })), '26 ports x 10000 endpoints of Pods are 260000'],
    [
      bounded(t, 'beyond', () => service(1, {}, { pods: podsOf(13, 1, 20_000) })),
      '260000 ports of EndpointSlices are too many',
    ],
    [
      bounded(t, 'beyond', () =>
        service(400, { sourceRanges: numbers(1_000).map((at) => `10.${at >> 8}.${at & 255}.0/24`) }, {}),
      ),
      '400 ports x 1000 source ranges are 400000',
    ],
  ] as const) {
    t.is(plan.listeners, undefined);
    t.like(plan.notices, [{ reason: 'ServiceRefused', blocks: true }]);
    t.true(plan.notices[0]?.message.includes(text), plan.notices[0]?.message);
  }
});

/** Slices of so many endpoints and ports each. */
function podsOf(slices: number, endpoints = 1_000, ports = 100): NonNullable<ServiceFacts['pods']> {
  const pod = { namespace: 'tenant', name: 'p', uid: 'u', nodeName: 'n', isLeaving: false, network: 'eni' } as const;
  const ready = { areContainersReady: true, areOtherGatesTrue: true };
  const ipOf = (key: string): string => key.slice(key.indexOf('/') + 1);
  return {
    slices: numbers(slices).map((slice) => ({
      service: 'tenant/large',
      ports: numbers(ports).map((at) => ({ name: `p${at}`, protocol: 'TCP', port: 8_000 + at })),
      endpoints: numbers(endpoints).map((at) => {
        const ip = `10.${slice}.${at >> 8}.${at & 255}`;
        return { ip, isReady: true, isTerminating: false, pod: `tenant/${ip}` };
      }),
    })),
    podOf: (key) => ({ ...pod, ...ready, ips: [ipOf(key)] }),
    nodeOf: () => undefined,
    keepsRoutes: false,
  };
}

/** A load balancer as desired, but for the port of each target. */
function observedOf({
  listenerName,
  ruleListeners = [],
}: NonNullable<ReturnType<typeof planUnit>['desired']>): ObservedLoadBalancer {
  const balancer = {
    type: 'OPEN',
    ...{ loadBalancerId: 'lb-large', name: 'large', isNormal: true, vips: ['1.2.3.4'], domain: '' },
    ...{ vpcId: ALONE.vpcId, subnetId: '', tags: {}, securityGroupIds: [], passesToTarget: true, isSnatPro: false },
    ...{ isDeleteProtected: false, isPrepaid: false, createdAtMs: 0 },
  } as const;
  const listeners = ruleListeners.map(({ protocol, port, rules }) => ({
    ...{ listenerId: `lbl-${port}`, name: listenerName, protocol, port, createdAtMs: 0 },
    rules: rules.map(({ domain, url, settings }, at) => ({
      ...settings,
      ...{ ruleId: `loc-${port}-${at}`, domain, url, isDefault: false, createdAtMs: 0 },
    })),
  }));
  const targets = ruleListeners.flatMap(({ port, rules }) =>
    rules.flatMap(({ targets: its = [] }, at) =>
      its.map(({ ip }) => ({
        ...{ listenerId: `lbl-${port}`, ruleId: `loc-${port}-${at}`, ip, port: 31_000, weight: 10 },
        ...{ kind: 'CVM', tag: '', registeredAtMs: 0 },
      })),
    ),
  );
  return { balancer, isOwn: true, listeners, targets };
}

function sumOf(lengths: readonly number[] = []): number {
  return lengths.reduce((sum, length) => sum + length, 0);
}
