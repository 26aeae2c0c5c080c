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

/** What is known of the settings of TKE's service controller. `unknown`: they may not be read. */
export type TkeSettings = 'present' | 'absent' | 'unknown';

/**
 * Finds what shows that TKE's own service controller is at work, for people: its settings or, where these may not be read,
 * a Service that it compared within a day. Users of a namespace can write such a date, and only administrators the
 * settings: where these can be read, dates do not count.
 * @param nowMs wall clock
 */
export function findTkeTraces(
  services: Iterable<Pick<KubeObject, 'metadata'>>,
  settings: TkeSettings,
  nowMs: number,
): string | undefined {
  if (settings === 'present') return `the ConfigMap ${TKE_CONFIG.namespace}/${TKE_CONFIG.name} is there`;
  if (settings === 'absent') return undefined;
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
