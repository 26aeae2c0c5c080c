import { anyPrefix, familyOf, isPrefix, networkPrefix, prefixLength } from '../../dataplane/ip-prefix.ts';
import type { KubeClient, KubeObject, ResourceType } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import { ConfigError, optional, record, text } from '../../runtime/decode.ts';
import { recordOf } from '../../runtime/json.ts';
import { decodeYaml } from '../../runtime/settings/read-yaml.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { NodeState } from '../state/node-state.ts';
import type { AgentParts } from '../state/ports.ts';

/** Dependencies of following the ranges of Services. */
type ServiceCidrsDeps = Pick<AgentParts, 'clock' | 'log' | 'events'> & {
  readonly state: Pick<NodeState, 'serviceCidrs' | 'changed'>;
  /** `--service-cidrs`; when it names a range, nothing is read. */
  readonly configured: readonly string[];
  /** Undefined without a cluster: then nothing is known but what is configured. */
  readonly kube: Pick<KubeClient, 'get' | 'listPage'> | undefined;
  /** Reports whether the node has exclusive ENIs, or Pods with one: those need the ranges. */
  readonly hasExclusive: () => boolean;
  /** Reports whether the node has a podCIDR: it must not overlap the ranges. Other nodes need none. */
  readonly hasPodCidr: () => boolean;
  readonly random: () => number;
  readonly metrics: Pick<Metrics, 'serviceCidrsUnknown'>;
  /** Called after the ranges changed. */
  readonly changed: () => void;
};

/** Interval of reading known ranges again; they change once in years. */
const POLL_MS = 120_000;
/** The same on a node without exclusive ENIs, which compares them with its podCIDR alone: most nodes of a GlobalRoute cluster. */
const SLOW_POLL_MS = 1_800_000;
/** First and longest wait while no range is known, or the API server does not answer. */
const RETRY: BackoffSettings = { firstMs: 5_000, maxMs: 300_000, factor: 2, jitter: 0.3 };
/** Interval of asking whether the node needs them by now, where that is not notified. */
const LOOK_MS = 10_000;

/**
 * Follows the ranges of Services until aborted, on a node with exclusive ENIs or a podCIDR. The last ones known hold while the
 * API server does not answer. That none is known is a Warning event and a gauge where there are exclusive ENIs. Never rejects.
 */
export async function followServiceCidrs(deps: ServiceCidrsDeps, signal: AbortSignal): Promise<void> {
  const { state, clock } = deps;
  let failures = 0;
  let nextMs = clock.monotonicMs();
  let isReported = false;
  let missing: ReadonlySet<string> = new Set();
  let hadExclusive = false;
  while (!signal.aborted) {
    const changed = state.changed.wait(LOOK_MS, signal);
    const hasExclusive = deps.hasExclusive();
    if (hasExclusive && !hadExclusive) nextMs = clock.monotonicMs();
    hadExclusive = hasExclusive;
    if ((hasExclusive || deps.hasPodCidr()) && clock.monotonicMs() >= nextMs) {
      const found = await look(deps, signal);
      if (found.kind === 'read') missing = accept(deps, found, missing);
      const count = knownCidrs(deps).length;
      const isUnknown = hasExclusive && count === 0;
      if (isUnknown && found.kind === 'read' && !isReported) report(deps, found.problems);
      isReported = isUnknown && (isReported || found.kind === 'read');
      failures = isUnknown || found.kind === 'failed' ? failures + 1 : 0;
      nextMs = clock.monotonicMs() + waitMs(failures, hasExclusive ? POLL_MS : SLOW_POLL_MS, deps.random);
    }
    deps.metrics.serviceCidrsUnknown.set(hasExclusive && knownCidrs(deps).length === 0 ? 1 : 0);
    await changed;
  }
}

function knownCidrs({ configured, state }: Pick<ServiceCidrsDeps, 'configured' | 'state'>): readonly string[] {
  return configured.length > 0 ? configured : state.serviceCidrs;
}

type Look = ({ readonly kind: 'read' } & ServiceCidrs) | { readonly kind: 'failed' };

async function look({ configured, kube, log }: ServiceCidrsDeps, signal: AbortSignal): Promise<Look> {
  if (configured.length > 0)
    return { kind: 'read', cidrs: [], source: '--service-cidrs', isComplete: false, problems: [] };
  if (kube === undefined) {
    const problems = ['the agent has no API server'];
    return { kind: 'read', cidrs: [], source: '', isComplete: false, problems };
  }
  try {
    return { kind: 'read', ...(await readServiceCidrs(kube, signal)) };
  } catch (error) {
    if (!signal.aborted) log.warn('the ranges of Services were not read, the last ones hold', { error });
    return { kind: 'failed' };
  }
}

/**
 * Takes over what was read. A range that appears counts at once. One that is missing goes when two reads in a row lack
 * it, of a source that has them all: without it living Pods reach no Service of that range.
 * @param missing Ranges that the last read lacked
 * @returns Ranges that this read lacked
 */
function accept(
  { state, log, changed }: ServiceCidrsDeps,
  { cidrs, source, isComplete, problems }: ServiceCidrs,
  missing: ReadonlySet<string>,
): ReadonlySet<string> {
  const found = new Set(cidrs);
  const lacking = isComplete ? state.serviceCidrs.filter((cidr) => !found.has(cidr)) : [];
  const kept = state.serviceCidrs.filter((cidr) => !(lacking.includes(cidr) && missing.has(cidr)));
  const next = [...new Set([...kept, ...cidrs])].sort();
  if (next.join() !== state.serviceCidrs.join()) {
    log.info('ranges of Services', { cidrs: next, before: state.serviceCidrs, source, problems });
    state.serviceCidrs = next;
    changed();
  }
  return new Set(lacking);
}

function report({ events }: ServiceCidrsDeps, problems: readonly string[]): void {
  events.report(
    'Warning',
    'ServiceCidrsUnknown',
    `no range of Services is known, Pods with an exclusive ENI reach no Service and no cluster DNS; set --service-cidrs (${problems.join('; ')})`,
  );
}

function waitMs(failures: number, pollMs: number, random: () => number): number {
  if (failures > 0) return backoffMs(RETRY, failures, random());
  // Nodes that start together do not ask together.
  return pollMs * (0.75 + random() / 2);
}

/** The ranges of Services of a cluster. */
type ServiceCidrs = {
  /** Canonical, sorted; empty when no source has one. */
  readonly cidrs: readonly string[];
  /** Where they are from, for people; '' when no source has one. */
  readonly source: string;
  /** The source has every range that is in use, so that one it lacks is gone. */
  readonly isComplete: boolean;
  /** Why other sources, or single ranges, gave nothing. */
  readonly problems: readonly string[];
};

/**
 * Reads the ranges of Services. The union of all ServiceCIDR objects counts, a range that is being deleted too: its
 * Services are still there. A server without them is asked for kubeadm's ConfigMap.
 * @throws KubeError when the API server did not answer, so that nothing is known
 */
export async function readServiceCidrs(
  kube: Pick<KubeClient, 'get' | 'listPage'>,
  signal: AbortSignal,
): Promise<ServiceCidrs> {
  const problems: string[] = [];
  for (const { name, isComplete, read } of SOURCES) {
    try {
      const { cidrs, refused } = checkCidrs(await read(kube, signal));
      problems.push(...refused.map((why) => `${name}: ${why}`));
      if (cidrs.length > 0) return { cidrs, source: name, isComplete: isComplete && refused.length === 0, problems };
      problems.push(`${name}: no range`);
    } catch (error) {
      problems.push(`${name}: ${reasonOf(error)}`);
    }
  }
  return { cidrs: [], source: '', isComplete: false, problems };
}

type Source = {
  readonly name: string;
  /** False for the text by which a cluster was made: it does not follow the cluster. */
  readonly isComplete: boolean;
  readonly read: (kube: Pick<KubeClient, 'get' | 'listPage'>, signal: AbortSignal) => Promise<readonly string[]>;
};

const SOURCES: readonly Source[] = [
  ...['v1', 'v1beta1'].map((version) => ({
    name: `ServiceCIDR ${version}`,
    isComplete: true,
    read: async (kube: Pick<KubeClient, 'listPage'>, signal: AbortSignal) => {
      const { items } = await kube.listPage(serviceCidrType(version), { limit: MAX_OBJECTS }, signal);
      return items.flatMap(cidrsOfObject);
    },
  })),
  {
    name: 'ConfigMap kube-system/kubeadm-config',
    isComplete: false,
    read: async (kube, signal) => {
      const object = await kube.get(CONFIG_MAPS, { namespace: 'kube-system', name: 'kubeadm-config' }, signal);
      return object === undefined ? [] : cidrsOfKubeadm(object);
    },
  },
];

/** Most ServiceCIDR objects that are read; clusters have one or two. */
const MAX_OBJECTS = 100;

function serviceCidrType(version: string): ResourceType {
  return { group: 'networking.k8s.io', version, plural: 'servicecidrs', kind: 'ServiceCIDR', isNamespaced: false };
}

function cidrsOfObject({ spec }: KubeObject): readonly string[] {
  const cidrs = recordOf(spec)['cidrs'];
  return Array.isArray(cidrs) ? cidrs.map(String) : [];
}

const decodeClusterConfiguration = record(
  { networking: optional(record({ serviceSubnet: optional(text()) }, 'ignore')) },
  'ignore',
);

function cidrsOfKubeadm({ data }: KubeObject): readonly string[] {
  const configuration = recordOf(data)['ClusterConfiguration'];
  if (typeof configuration !== 'string') return [];
  const { networking } = decodeYaml(configuration, 'ClusterConfiguration', decodeClusterConfiguration);
  return (networking?.serviceSubnet ?? '')
    .split(',')
    .map((cidr) => cidr.trim())
    .filter((cidr) => cidr !== '');
}

/** Shortest prefix of a range: a shorter one would take packets that are for the VPC. */
const MIN_LENGTH = { 4: 8, 6: 32 } as const;

function checkCidrs(found: readonly string[]): {
  readonly cidrs: readonly string[];
  readonly refused: readonly string[];
} {
  const refused: string[] = [];
  const cidrs = new Set<string>();
  for (const cidr of found) {
    if (!isPrefix(cidr)) refused.push(`"${cidr}" is no CIDR`);
    else if (prefixLength(cidr) < MIN_LENGTH[familyOf(cidr)])
      refused.push(
        `${cidr} is refused: a range is /${MIN_LENGTH[familyOf(cidr)]} or longer within ${anyPrefix(familyOf(cidr))}`,
      );
    else cidrs.add(networkPrefix(cidr));
  }
  return { cidrs: [...cidrs].sort(), refused };
}

/** Returns why a source gave nothing. @throws the error when nothing is known. */
function reasonOf(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (isKubeError(error) && (error.code === 'NOT_FOUND' || error.code === 'FORBIDDEN')) {
    return error.code === 'FORBIDDEN' ? 'the role may not read it' : 'the server does not have it';
  }
  throw error;
}
