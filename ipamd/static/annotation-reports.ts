import { IPAMD_EVENTS } from '../events/event-reasons.ts';
import type { NodeEvents } from '../supply/node-deps.ts';
import type { ClaimViewBuilder } from './build-claim-view.ts';
import { refOf } from './write-claim.ts';

/** Reports wrong annotations of Pods that have no claim: those of the others are notices of their claims. */
export class AnnotationReports {
  readonly #views: Pick<ClaimViewBuilder, 'unclaimedFaultsOf'>;
  readonly #events: NodeEvents;
  /** What was reported last, by the key of the Pod. */
  readonly #reported = new Map<string, string>();

  constructor(views: Pick<ClaimViewBuilder, 'unclaimedFaultsOf'>, events: NodeEvents) {
    this.#views = views;
    this.#events = events;
  }

  /** Records an event on the Pod of that name for each wrong annotation, once for each Pod. */
  report(key: string): void {
    const unclaimed = this.#views.unclaimedFaultsOf(key);
    if (unclaimed === undefined) {
      this.#reported.delete(key);
      return;
    }
    const reported = JSON.stringify(unclaimed);
    if (this.#reported.get(key) === reported) return;
    this.#reported.set(key, reported);
    const { uid, faults } = unclaimed;
    const involved = { apiVersion: 'v1', kind: 'Pod', ...refOf(key), uid };
    const reason = 'AnnotationInvalid';
    for (const message of faults) {
      this.#events.record({ involved, type: IPAMD_EVENTS[reason].type, reason, message });
    }
  }
}
