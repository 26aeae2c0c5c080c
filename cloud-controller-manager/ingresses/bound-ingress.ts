import type { Notice } from '../balancers/notice.ts';
import { MAX_RULES_OF_PLAN, MAX_TARGETS_OF_PLAN, refuseProducts } from '../balancers/plan-bound.ts';
import type { TargetPod } from '../balancers/plan-pod-targets.ts';
import { backendsOf } from './backend-services.ts';
import type { IngressSpec } from './read-ingress.ts';
import { LISTEN_PORTS, type ListenPorts } from './rule-annotations.ts';
import type { IngressSettings } from './served-annotations.ts';

const DIVIDE = 'divide them between several Ingresses';

/**
 * Refuses an Ingress whose rules, weights, hosts or endpoints are too many to be planned. It counts, and builds nothing.
 * @param podsOf the Pods of a Service, with direct access
 */
export function boundIngress(
  spec: IngressSpec,
  settings: IngressSettings,
  podsOf?: (service: string) => Pick<TargetPod, 'slices'>,
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
export function countPlaces(spec: IngressSpec, settings: IngressSettings): number {
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
