import type { KubeObject } from '../../kube/kube-client.ts';

/** The settings and the version of TKE's service controller; every TKE cluster has it. */
export const TKE_CONFIG = { namespace: 'kube-system', name: 'tke-service-controller-config' } as const;

/** It writes these into each Service of type LoadBalancer, at each comparison: several times an hour. */
const SYNC_TIMES = ['service.cloud.tencent.com/sync-begin-time', 'service.cloud.tencent.com/sync-end-time'];
const FRESH_MS = 86_400_000;
/** The clock of another machine may be ahead. */
const AHEAD_MS = 3_600_000;
/** An RFC 3339 time with fractions. */
const MAX_CHARS = 40;

/**
 * Finds what shows that TKE's own service controller is at work, for people: a Service that it compared within a day, or
 * its settings. Old traces in Services are those of one that is gone.
 * @param config the ConfigMap `TKE_CONFIG`; undefined: there is none, or it may not be read
 * @param nowMs wall clock
 */
export function findTkeTraces(
  services: Iterable<Pick<KubeObject, 'metadata'>>,
  config: KubeObject | undefined,
  nowMs: number,
): string | undefined {
  if (config !== undefined) return `the ConfigMap ${TKE_CONFIG.namespace}/${TKE_CONFIG.name} is there`;
  for (const { metadata } of services) {
    const { name, namespace = '', annotations = {} } = metadata;
    for (const key of SYNC_TIMES) {
      const text = annotations[key];
      if (text !== undefined && isFresh(text, nowMs)) return `the Service ${namespace}/${name} has ${key}=${text}`;
    }
  }
  return undefined;
}

function isFresh(text: string, nowMs: number): boolean {
  if (text.length > MAX_CHARS) return false;
  const ageMs = nowMs - Date.parse(text);
  return ageMs <= FRESH_MS && ageMs >= -AHEAD_MS;
}
