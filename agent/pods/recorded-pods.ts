import type { Background } from '../../runtime/background.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Clock } from '../../runtime/clock.ts';
import { compareTexts } from '../../runtime/compare-texts.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Journal, RecordedPod } from '../journal/journal-content.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { PodIdentity } from '../pool/lease-static.ts';
import type { LookupFailure } from './fetch-pod.ts';
import type { KubePod } from './kube-pod.ts';
import type { PodView } from './pod-view.ts';

/** The Pods of the node as the journal has them: an agent that starts while no API server answers goes by them. */
export type RecordedPods = {
  /**
   * Returns a Pod whose lookup failed; undefined for one that is not recorded, or that the API server does not have. A
   * Pod without a uid is not found: a recorded name may be that of an earlier Pod.
   */
  findUnanswered(pod: PodIdentity, failure: LookupFailure): RecordedPod | undefined;
  close(): void;
};

/** Dependencies of recording. */
type RecordedPodsDeps = {
  readonly background: Background;
  readonly journal: Pick<Journal, 'load' | 'putPods'>;
  readonly view: Pick<PodView, 'pods' | 'isFresh' | 'subscribe'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'journalErrors'>;
};

/** Pause after a change: changes come in bursts, and each write has all Pods. */
const SETTLE_MS = 200;
/** Retry of a write that failed, and of a view that was not complete yet. */
const RETRY_MS = 10_000;
/** More than a node has. */
const MAX_PODS = 1_024;

/** Records the Pods of the node whenever they change, until `close`. Nothing waits for it. */
export function openRecordedPods({ background, journal, view, clock, log, metrics }: RecordedPodsDeps): RecordedPods {
  let recorded = journal.load().pods ?? [];
  const closing = new AbortController();
  const changed = new ChangeSignal(clock);
  const unsubscribe = view.subscribe(() => changed.notify());
  const record = (): void => {
    // An incomplete view would take Pods off the record.
    if (!view.isFresh()) return;
    const pods = [...view.pods()].map(recordedPodOf).sort(byName).slice(0, MAX_PODS);
    if (JSON.stringify(pods) === JSON.stringify(recorded)) return;
    try {
      journal.putPods(pods);
      recorded = pods;
    } catch (error) {
      metrics.journalErrors.inc();
      log.error('the Pods of the node were not written', { error });
    }
  };
  const follow = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await changed.wait(RETRY_MS, closing.signal);
      await clock.sleep(SETTLE_MS, closing.signal).catch(() => {});
      if (!closing.signal.aborted) record();
    }
  };
  background('recording the Pods of the node', follow());
  return {
    findUnanswered: ({ namespace, name, uid }, { isAbsent }) => {
      if (uid === '' || isAbsent === true) return undefined;
      return recorded.find((pod) => pod.uid === uid && pod.namespace === namespace && pod.name === name);
    },
    close: () => {
      closing.abort('closed');
      unsubscribe();
    },
  };
}

function recordedPodOf(pod: KubePod): RecordedPod {
  const { namespace, name, uid, isStatic, direct, network, networkFault, otherNetwork, requestsGroups } = pod;
  return {
    ...{ namespace, name, uid },
    ...(network === undefined ? {} : { network }),
    ...(networkFault === undefined ? {} : { networkFault }),
    ...(otherNetwork === undefined ? {} : { otherNetwork }),
    ...(isStatic === undefined ? {} : { isStatic }),
    ...(direct === undefined ? {} : { direct }),
    ...(requestsGroups === undefined ? {} : { requestsGroups }),
  };
}

function byName(one: RecordedPod, other: RecordedPod): number {
  return compareTexts(`${one.namespace}/${one.name}`, `${other.namespace}/${other.name}`);
}
