import { isDeepStrictEqual } from 'node:util';
import { SUBNETS_SOURCE_ANNOTATION } from '../../crd/names.ts';
import { SUBNETS_CONFIG_MAP } from '../../crd/subnet-supply.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Term } from '../calls/term.ts';
import { decidePublished, type PublishedFacts } from './decide-published.ts';
import type { Subnets } from './open-subnets.ts';

/** What is published, and with what. */
type PublishTerm = Pick<Term, 'config' | 'kube' | 'clock' | 'log'> & {
  readonly subnets: Pick<Subnets, 'subscribe'>;
  /** Returns the present facts; undefined while nothing is known. */
  readonly facts: () => PublishedFacts | undefined;
};

/** What is written. */
type Published = {
  readonly data: Readonly<Record<string, string>>;
  /** Which configuration it is of. */
  readonly source: string;
};

/** Shortest time between two writes. */
const MIN_INTERVAL_MS = 5_000;
/**
 * The ConfigMap is compared again this long after the last comparison, because another client may have changed or
 * deleted it.
 */
const CHECK_INTERVAL_MS = 60_000;

/**
 * Publishes the free addresses of subnets in a ConfigMap until aborted: written when the data changes, at most every 5 s,
 * and at once when the configuration does. A failure is logged once, and retried at the same pace. Rejects only with a
 * fault of ipamd.
 */
export async function publishSubnets(term: PublishTerm, signal: AbortSignal): Promise<void> {
  const { clock, log, subnets, facts } = term;
  const change = new ChangeSignal(clock);
  let isConfigNew = false;
  const stop = subnets.subscribe(({ isConfigRead }) => {
    if (!isConfigRead) return;
    isConfigNew = true;
    change.notify();
  });
  let written: Published | undefined;
  let checkedMs = Number.NEGATIVE_INFINITY;
  let failed = '';
  signal.addEventListener('abort', stop, { once: true });
  while (!signal.aborted) {
    isConfigNew = false;
    const known = facts();
    const published = known === undefined ? undefined : { data: decidePublished(known), source: known.source };
    const isDue = clock.monotonicMs() - checkedMs >= CHECK_INTERVAL_MS;
    if (published !== undefined && (isDue || !isDeepStrictEqual(published, written))) {
      try {
        await write(term, published, signal);
        written = published;
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
    if (!isConfigNew) await change.wait(MIN_INTERVAL_MS, signal);
  }
}

async function write({ kube, config }: PublishTerm, { data, source }: Published, signal: AbortSignal): Promise<void> {
  const ref = { namespace: config.namespace, name: SUBNETS_CONFIG_MAP };
  const annotation = { [SUBNETS_SOURCE_ANNOTATION]: source };
  const change = (current: KubeObject): KubeObject | undefined => {
    const { annotations } = current.metadata;
    const isSame =
      annotations?.[SUBNETS_SOURCE_ANNOTATION] === source && isDeepStrictEqual(current['data'] ?? {}, data);
    if (isSame) return undefined;
    return { ...current, metadata: { ...current.metadata, annotations: { ...annotations, ...annotation } }, data };
  };
  if ((await updateGuarded(kube, CONFIG_MAPS, ref, change, { signal })) !== undefined) return;
  const metadata = { ...ref, annotations: annotation };
  await kube.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }, signal);
}
