import type { BackendPort } from '../backends/backend-port.ts';
import type { BackendNode } from '../backends/decide-backend-node.ts';
import type { BalancerSource } from '../balancers/desired-load-balancer.ts';
import type { DesiredRuleListener } from '../balancers/desired-rules.ts';
import { type Notice, remark } from '../balancers/notice.ts';
import { assumeTargets, MAX_RULES_OF_PLAN, MAX_TARGETS_OF_PLAN, refuseProducts } from '../balancers/plan-bound.ts';
import type { PodBackends, UnboundPods } from '../balancers/plan-pod-targets.ts';
import { planSource } from '../balancers/plan-source.ts';
import type { ConfigOfOwner } from '../service-configs/choose-config.ts';
import { configureRules } from '../service-configs/l7-settings.ts';
import { remarkUnusedConfig } from '../service-configs/remark-unused.ts';
import { backendsOf } from './backend-services.ts';
import type { OwnCertificate } from './own-certificate.ts';
import { planBackends } from './plan-backends.ts';
import type { SecretFacts } from './plan-certificates.ts';
import { planRules } from './plan-rules.ts';
import type { IngressHead, IngressSpec } from './read-ingress.ts';
import { LISTEN_PORTS, type ListenPorts } from './rule-annotations.ts';
import type { IngressSettings } from './served-annotations.ts';

/** What one Ingress asks for. */
export type IngressPlan = {
  /** Where its load balancer comes from, and its listeners; absent: nothing may be changed, as a notice says. */
  readonly desired?: { readonly source: BalancerSource; readonly listeners: readonly DesiredRuleListener[] };
  /** What its listeners would be, also without `desired`; absent: that is not known. */
  readonly listeners?: readonly DesiredRuleListener[];
  /** Most outgoing traffic by its TkeServiceConfig, Mbit/s. */
  readonly bandwidthMbps?: number;
  /** Certificates that have to be uploaded, by hash. */
  readonly uploads: ReadonlyMap<string, OwnCertificate>;
  readonly notices: readonly Notice[];
  /** Present where Pods are the backends. */
  readonly unbound?: UnboundPods;
  /** When it is planned again, though nothing changes. */
  readonly afterMs?: number;
};

/** What the plan of an Ingress is made of. */
type IngressFacts = {
  readonly head: Pick<IngressHead, 'kind' | 'namespace' | 'name' | 'uid'>;
  readonly spec: IngressSpec;
  readonly settings: IngressSettings;
  /** By name, in the namespace of the Ingress. */
  readonly secretOf: (name: string) => SecretFacts;
  readonly portsOf: (service: string) => readonly BackendPort[] | 'missing' | 'external';
  /** The Pods of a Service, with direct access. */
  readonly podsOf: (service: string) => PodBackends;
  /** Every Node that may be a backend. */
  readonly nodes: readonly BackendNode[];
  readonly maxTargets?: number;
  readonly clusterId: string;
  readonly vpcId: string;
  /** Milliseconds since the epoch: certificates expire. */
  readonly nowMs: number;
};

/** Plans an Ingress, but for its TkeServiceConfig. It depends on its arguments alone. */
export function planIngress(facts: IngressFacts): IngressPlan {
  const { head, spec, settings, secretOf, portsOf, podsOf, nodes, clusterId, vpcId, nowMs } = facts;
  const refused = boundIngress(spec, settings, settings.directAccess === true ? podsOf : undefined);
  if (refused.length > 0) return { uploads: new Map(), notices: refused };
  const isDirect = settings.directAccess === true;
  const most = facts.maxTargets === undefined ? {} : { maxTargets: facts.maxTargets };
  const backends = planBackends({
    ...{ backends: backendsOf(spec, settings), portsOf, settings },
    maxTargets: facts.maxTargets ?? assumeTargets(countPlaces(spec, settings)),
    ...(isDirect ? { podsOf } : { nodes }),
  });
  const rules = planRules({
    ...{ spec, settings, secretOf, portsOf, targetsOf: backends.targetsOf, nowMs, ...most },
    ...(isDirect ? { podOf: backends.podOf } : {}),
  });
  const source = planSource({ owner: head, settings, clusterId, vpcId });
  const notices = [...rules.notices, ...source.notices, ...backends.notices()];
  const { listeners, uploads } = rules;
  return {
    ...(rules.desired === undefined || source.value === undefined || notices.some(({ blocks }) => blocks)
      ? {}
      : { desired: { source: source.value, listeners: rules.desired } }),
    ...{ listeners, uploads, notices },
    ...(isDirect ? { unbound: backends.unbound() } : {}),
  };
}

/** Puts what the TkeServiceConfig of an Ingress says over its plan. */
export function withConfig(
  plan: IngressPlan,
  configured: Exclude<ConfigOfOwner, { readonly kind: 'starting' }>,
): IngressPlan {
  const config = configured.kind === 'known' ? configured.config : 'unknown';
  const { listeners, unused } = configureRules(plan.listeners ?? [], config);
  const mbps = config === 'unknown' ? undefined : config?.internetMaxBandwidthOut;
  const why = configured.kind === 'unknown' ? configured.why : undefined;
  const notices = [
    ...plan.notices,
    ...(why === undefined ? [] : [remark('ServiceConfigUnused', `${why}. Rules keep the settings that they have`)]),
    ...remarkUnusedConfig('ingress', unused),
  ];
  return {
    ...{ ...plan, notices },
    ...(plan.listeners === undefined ? {} : { listeners }),
    ...(plan.desired === undefined ? {} : { desired: { ...plan.desired, listeners } }),
    ...(mbps === undefined ? {} : { bandwidthMbps: mbps }),
  };
}

const DIVIDE = 'divide them between several Ingresses';

/**
 * Refuses an Ingress whose rules, weights, hosts or endpoints are too many to be planned. It counts, and builds nothing.
 * @param podsOf the Pods of a Service, with direct access
 */
function boundIngress(
  spec: IngressSpec,
  settings: IngressSettings,
  podsOf?: (service: string) => Pick<PodBackends, 'slices'>,
): readonly Notice[] {
  const { weights } = settings;
  const rules = countRules(spec, settings);
  const ports = portsOfRule(settings);
  const indexes = weights?.groups.flatMap(({ statefulSets }) =>
    statefulSets.flatMap((set) => set.weights.map(({ podIndexes }) => podIndexes.length)),
  );
  const hosts = [...spec.tls, ...(settings.certificates ?? [])].map((one) => one.hosts.length);
  const backends = new Set(backendsOf(spec, settings).map(({ service, port }) => `${port} ${service}`));
  const endpoints = [...backends].flatMap((one) => {
    const slices = podsOf?.(one.slice(one.indexOf(' ') + 1)).slices ?? [];
    return slices.map((slice) => slice.endpoints.length);
  });
  return refuseProducts('IngressRefused', [
    {
      lengths: { rules, 'ports of listeners': ports },
      most: MAX_RULES_OF_PLAN,
      cure: `name fewer ports, or ${DIVIDE}`,
    },
    {
      lengths: { rules, 'ports of listeners': ports, 'groups of weights': weights?.groups.length ?? 0 },
      cure: 'name fewer groups in the annotation ingress.cloud.tencent.com/lb-rs-weight',
    },
    { lengths: { 'indexes of Pods with a weight': sumOf(indexes ?? []) }, cure: DIVIDE },
    { lengths: { 'hosts with certificates': sumOf(hosts) }, cure: DIVIDE },
    {
      lengths: { 'endpoints of Pods': sumOf(endpoints) },
      most: MAX_TARGETS_OF_PLAN,
      cure: `lead to fewer Pods, or ${DIVIDE}`,
    },
  ]);
}

/** Returns how many rules an Ingress has at most, on all its listeners. */
function countPlaces(spec: IngressSpec, settings: IngressSettings): number {
  return countRules(spec, settings) * portsOfRule(settings);
}

function countRules(spec: IngressSpec, { httpRules = [], httpsRules = [] }: IngressSettings): number {
  const all = [...spec.rules, ...httpRules, ...httpsRules];
  // The urls of a prefix are two.
  const prefixes = all.filter(({ pathType }) => pathType === 'Prefix').length;
  const defaults = spec.defaultBackend === undefined ? 0 : 1 + new Set(all.map(({ host }) => host)).size;
  return all.length + prefixes + defaults + spec.bareHosts.length;
}

/** On how many listeners a rule is at most. */
function portsOfRule({ ruleMixBoth, listenPorts }: Pick<IngressSettings, 'ruleMixBoth' | 'listenPorts'>): number {
  const { HTTP, HTTPS }: ListenPorts = listenPorts ?? LISTEN_PORTS;
  return ruleMixBoth === true ? HTTP.length + HTTPS.length : Math.max(HTTP.length, HTTPS.length);
}

function sumOf(lengths: readonly number[]): number {
  return lengths.reduce((one, other) => one + other, 0);
}
