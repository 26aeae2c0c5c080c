import { isDeepStrictEqual } from 'node:util';
import { SUBNETS_CONFIG_MAP } from '../../crd/subnet-supply.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import { decidePublished, type PublishedFacts } from './decide-published.ts';

/** Dependencies of publishing. */
type PublishDeps = {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  /** Namespace of the ConfigMap. */
  readonly namespace: string;
  /** Returns the present facts; undefined while nothing is known. */
  readonly facts: () => PublishedFacts | undefined;
};

/** Shortest time between two writes. */
const MIN_INTERVAL_MS = 5_000;
/**
 * The ConfigMap is compared again this long after the last comparison, because another client may have changed or
 * deleted it.
 */
const CHECK_INTERVAL_MS = 60_000;

/**
 * Publishes the free addresses of subnets in a ConfigMap until aborted: written when the data changes, at most every 5
 * s. A failure is logged once, and retried at the same pace. Rejects only with a fault of ipamd.
 */
export async function publishSubnets(deps: PublishDeps, signal: AbortSignal): Promise<void> {
  const { clock, log, facts } = deps;
  let written: Readonly<Record<string, string>> | undefined;
  let checkedMs = Number.NEGATIVE_INFINITY;
  let failed = '';
  while (!signal.aborted) {
    const known = facts();
    const data = known === undefined ? undefined : decidePublished(known);
    const isDue = clock.monotonicMs() - checkedMs >= CHECK_INTERVAL_MS;
    if (data !== undefined && (isDue || !isDeepStrictEqual(data, written))) {
      try {
        await write(deps, data, signal);
        written = data;
        checkedMs = clock.monotonicMs();
        failed = '';
      } catch (error) {
        if (signal.aborted) return;
        if (!isKubeError(error)) throw error;
        if (error.message !== failed)
          log.warn('free addresses of subnets could not be published, will try again', { error });
        failed = error.message;
      }
    }
    await clock.sleep(MIN_INTERVAL_MS, signal).catch(() => {});
  }
}

async function write(
  { kube, namespace }: PublishDeps,
  data: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const ref = { namespace, name: SUBNETS_CONFIG_MAP };
  const change = (current: KubeObject): KubeObject | undefined =>
    isDeepStrictEqual(current['data'] ?? {}, data) ? undefined : { ...current, data };
  if ((await updateGuarded(kube, CONFIG_MAPS, ref, change, { signal })) !== undefined) return;
  await kube.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: ref, data }, signal);
}
