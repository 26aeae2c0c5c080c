/** What each program keeps of the largest objects that the API server takes, by the heap of this process. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { openPodView } from '../../agent/pods/pod-view.ts';
import {
  BACKEND_POD_BOUNDS,
  BACKEND_POD_INDEXES,
  decodeBackendPod,
} from '../../cloud-controller-manager/backends/backend-pod.ts';
import {
  decodeEndpointSlice,
  SLICE_BOUNDS,
  SLICE_INDEXES,
} from '../../cloud-controller-manager/backends/endpoint-slice.ts';
import { OWNER_BOUNDS } from '../../cloud-controller-manager/balancers/owner-bounds.ts';
import { INGRESS_INDEXES } from '../../cloud-controller-manager/ingresses/ingress-indexes.ts';
import { CONFIG_BOUNDS, decodeConfig } from '../../cloud-controller-manager/service-configs/decode-config.ts';
import { BACKEND_READY_GATE, POD_ANNOTATION } from '../../crd/names.ts';
import { readIpamdConfig } from '../../ipamd/config/ipamd-config.ts';
import { openEipClaims } from '../../ipamd/guests/eip/eip-claim-cache.ts';
import { openStaticIpConfigs } from '../../ipamd/guests/static/guest.ts';
import { openInformers, openTermInformers } from '../../ipamd/term/open-informers.ts';
import { type InformerOptions, openInformer } from '../../kube/informer.ts';
import type { KubeClient, KubeObject, ResourceType } from '../../kube/kube-client.ts';
import { withoutManagedFields } from '../../kube/managed-fields.ts';
import {
  DEPLOYMENTS,
  EIP_CLAIMS,
  ENDPOINT_SLICES,
  INGRESSES,
  PODS,
  SERVICES,
  STATIC_IP_CONFIGS,
  TKE_SERVICE_CONFIGS,
  VPC_IP_CLAIMS,
} from '../../kube/resource-types.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { followCluster } from '../../scheduler/follow-cluster.ts';
import { SchedulerIndex } from '../../scheduler/index/scheduler-index.ts';
import { openReviews } from '../../webhook/open-reviews.ts';
import { readWebhookConfig } from '../../webhook/options.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** JSON of all objects of a shape: few large ones, or more of less. */
const TOTAL_CHARS = 4_000_000;
/** Most heap of one object. */
const MOST_BYTES = 65_536;
/** What a program takes without any object, and of the last one that it read. */
const NOISE_BYTES = 2_097_152;

const DEPS = { clock: systemClock, log: silentLogger, random: () => 0.5 };

type Change = { readonly metadata?: object; readonly spec?: object; readonly rest?: object };
type Shape = (at: number) => Change;

/** Entries of ten characters each: what JSON takes little for, and memory much. */
const many = (count: number, at: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${at}-${n.toString(36).padStart(4, 'a')}`, '']));
const LONG = 'x'.repeat(1_400_000);
const PADDING = ' '.repeat(250_000);
const asked = { [POD_ANNOTATION.networks]: 'tke-route-eni', [POD_ANNOTATION.deletePolicy]: 'Never' };
const gated = {
  spec: { nodeName: 'n1', containers: [{ name: 'a' }], readinessGates: [{ conditionType: BACKEND_READY_GATE }] },
  rest: { status: { phase: 'Pending', podIPs: [{ ip: '10.0.0.1' }] } },
};
const paths = (at: number): object[] =>
  Array.from({ length: 14_000 }, (_, n) => ({
    path: `/${n}`,
    pathType: 'Exact',
    backend: { service: { name: `s${at}-${n}`, port: { number: 1 } } },
  }));

const ON_POD: readonly Shape[] = [
  (at) => ({ ...gated, metadata: { annotations: asked, labels: many(60_000, at) } }),
  () => ({
    ...gated,
    metadata: {
      annotations: { ...asked, [POD_ANNOTATION.nominatedSubnets]: `subnet-aaaaaaaaaa,${PADDING}subnet-bbbbbbbbbb` },
    },
  }),
  () => ({
    ...gated,
    metadata: { annotations: { [POD_ANNOTATION.networks]: `${PADDING}another-network-of-the-cluster` } },
  }),
  (at) => ({ ...gated, metadata: { annotations: { ...asked, [POD_ANNOTATION.eipAttributes]: `${at}${PADDING}` } } }),
  () => ({
    ...gated,
    metadata: {
      annotations: asked,
      ownerReferences: [{ apiVersion: 'v1', kind: 'ReplicaSet', name: LONG, uid: 'u', controller: true }],
    },
  }),
];
const ANY: readonly Shape[] = [
  (at) => ({ metadata: { labels: many(60_000, at) } }),
  (at) => ({ metadata: { finalizers: Object.keys(many(60_000, at)) } }),
];
const SHAPES: ReadonlyMap<ResourceType, readonly Shape[]> = new Map([
  [PODS, ON_POD],
  [
    SERVICES,
    [
      ...ANY,
      (at) => ({ spec: { type: 'ClusterIP', selector: many(60_000, at) } }),
      (at) => ({ spec: { type: 'LoadBalancer', selector: many(60_000, at), ports: [{ port: 80 }] } }),
    ],
  ],
  [
    INGRESSES,
    [
      ...ANY,
      (at) => ({
        metadata: { annotations: { 'ingress.cloud.tencent.com/direct-access': 'true' } },
        spec: { rules: [{ http: { paths: paths(at) } }] },
      }),
    ],
  ],
  [STATIC_IP_CONFIGS, [...ANY, (at) => ({ spec: { podLabels: many(60_000, at), ips: Object.keys(many(9_000, at)) } })]],
  [DEPLOYMENTS, [(at) => ({ spec: { selector: { matchLabels: many(60_000, at) } } })]],
  [VPC_IP_CLAIMS, ANY],
  [EIP_CLAIMS, ANY],
  [TKE_SERVICE_CONFIGS, ANY],
  [
    ENDPOINT_SLICES,
    [
      () => ({
        metadata: { labels: { 'kubernetes.io/service-name': 'web' } },
        rest: {
          addressType: 'IPv4',
          endpoints: [{ addresses: ['10.0.0.1'], targetRef: { kind: 'Pod', name: LONG, uid: LONG } }],
        },
      }),
    ],
  ],
]);

/** Makes the JSON of an object as the API server sends it: what is read of it shares no text with another. */
function jsonOf(type: ResourceType, shape: Shape, at: number): string {
  const { metadata, spec = {}, rest } = shape(at);
  const { group, version, kind } = type;
  const apiVersion = group === '' ? version : `${group}/${version}`;
  const named = { name: `o${at}`, namespace: 'tenant', uid: `u${at}`, resourceVersion: '1', ...metadata };
  return JSON.stringify({ apiVersion, kind, metadata: named, spec, ...rest });
}

/** How many objects a client listed, and the length of their JSON. */
type Listed = { count: number; chars: number };

/** Reads lists of hostile objects of one kind, a page each, and of nothing else; watches are silent. */
function clientOf(wanted: ResourceType, shape: Shape | undefined, listed: Listed): KubeClient {
  const client: Pick<KubeClient, 'listPage' | 'watch'> = {
    listPage: async (type) => {
      if (type !== wanted || shape === undefined || listed.chars >= TOTAL_CHARS)
        return { items: [], resourceVersion: '1' };
      const json = jsonOf(type, shape, listed.count);
      listed.count += 1;
      listed.chars += json.length;
      return { items: [JSON.parse(json) as KubeObject], resourceVersion: '1', continueToken: String(listed.count) };
    },
    async *watch(_type, _query, signal) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      yield* [];
    },
  };
  return client as KubeClient;
}

/** Follows with a client until the signal is aborted; resolves when all was read. */
type Follow = (client: KubeClient, signal: AbortSignal) => Promise<object>;

function informer<T>(options: Pick<InformerOptions<T>, 'type' | 'decode' | 'indexes' | 'bounds'>): Follow {
  return async (client, signal) => {
    const opened = openInformer({ ...DEPS, client, ...options });
    void opened.start(signal);
    await opened.synced(signal);
    return opened;
  };
}

function ran<T>(outcome: { readonly kind: string } & { readonly config?: T }): T {
  if (outcome.config === undefined) throw new Error(outcome.kind);
  return outcome.config;
}

const webhookConfig = ran(readWebhookConfig({ argv: ['--readiness-gates'], env: {}, readFile: () => '' }));
const ipamdConfig = ran(
  readIpamdConfig({ argv: ['--clusterid=cls-3x5v7b9d', '--enable-ownerref'], env: {}, readFile: () => '' }),
);

const webhook: Follow = async (kube, signal) => {
  const reviews = openReviews(webhookConfig, { ...DEPS, kube });
  const followed = [reviews.rules, reviews.services, reviews.ingresses];
  for (const one of followed) void one.run(signal);
  while (followed.some((one) => one.problem() !== undefined)) await systemClock.sleep(5, signal);
  return reviews;
};
const ipamd: Follow = async (client, signal) => {
  const deps = { ...DEPS, client, observer: {} };
  const { pods } = openInformers(deps, ipamdConfig);
  const { claims, deployments } = openTermInformers(deps, ipamdConfig);
  const [configs, eipClaims] = [openStaticIpConfigs(deps), openEipClaims(deps)];
  const all = [pods, claims, configs, deployments, eipClaims].flatMap((one) => one ?? []);
  for (const one of all) void one.start(signal);
  await Promise.all(all.map((one) => one.synced(signal)));
  return all;
};
const scheduler: Follow = async (client, signal) => {
  const index = new SchedulerIndex(60_000);
  const followed = followCluster({ ...DEPS, client, namespace: 'kube-system' }, index, new ChangeSignal(systemClock));
  for (const one of Object.values(followed)) void one.start(signal);
  await Promise.all(Object.values(followed).map((one) => one.synced(signal)));
  return { followed, index };
};
const agent: Follow = async (client, signal) => {
  const view = openPodView({ ...DEPS, client, nodeName: 'n1', background: () => {} });
  signal.addEventListener('abort', () => view.close(), { once: true });
  while (!view.isFresh()) await systemClock.sleep(5, signal);
  return view;
};

const PROGRAMS: readonly (readonly [string, ResourceType, Follow])[] = [
  ['webhook', SERVICES, webhook],
  ['webhook', INGRESSES, webhook],
  ['webhook', STATIC_IP_CONFIGS, webhook],
  ['ipamd', PODS, ipamd],
  ['ipamd', STATIC_IP_CONFIGS, ipamd],
  ['ipamd', DEPLOYMENTS, ipamd],
  ['ipamd', VPC_IP_CLAIMS, ipamd],
  ['ipamd', EIP_CLAIMS, ipamd],
  ['scheduler', PODS, scheduler],
  ['agent', PODS, agent],
  ['ccm', SERVICES, informer({ type: SERVICES, decode: withoutManagedFields, bounds: OWNER_BOUNDS })],
  [
    'ccm',
    INGRESSES,
    informer({ type: INGRESSES, decode: withoutManagedFields, indexes: INGRESS_INDEXES, bounds: OWNER_BOUNDS }),
  ],
  [
    'ccm',
    PODS,
    informer({ type: PODS, decode: decodeBackendPod, indexes: BACKEND_POD_INDEXES, bounds: BACKEND_POD_BOUNDS }),
  ],
  [
    'ccm',
    ENDPOINT_SLICES,
    informer({ type: ENDPOINT_SLICES, decode: decodeEndpointSlice, indexes: SLICE_INDEXES, bounds: SLICE_BOUNDS }),
  ],
  ['ccm', TKE_SERVICE_CONFIGS, informer({ type: TKE_SERVICE_CONFIGS, decode: decodeConfig, bounds: CONFIG_BOUNDS })],
];

function heapBytes(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** Measures what is kept of each object, but for what is kept without them. */
async function keptBytesOf(follow: Follow, type: ResourceType, shape: Shape): Promise<number> {
  const stop = new AbortController();
  const listed: Listed = { count: 0, chars: 0 };
  const before = heapBytes();
  const held = await follow(clientOf(type, shape, listed), stop.signal);
  const kept = heapBytes() - before - NOISE_BYTES;
  stop.abort();
  return held === undefined ? 0 : kept / listed.count;
}

for (const [program, type, follow] of PROGRAMS) {
  test.serial(`${program} keeps little of the largest ${type.plural}`, async (t) => {
    const shapes = SHAPES.get(type) ?? [];
    t.true(shapes.length > 0);
    for (const [at, shape] of shapes.entries()) {
      const bytes = await keptBytesOf(follow, type, shape);
      t.log(`shape ${at}: ${Math.round(bytes / 1_024)} KiB each, but for noise`);
      t.true(bytes < MOST_BYTES, `shape ${at}: ${bytes} bytes of each object`);
    }
  });
}
