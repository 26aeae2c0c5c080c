import type { StaticIpRule } from '../../../crd/select-static-ip-config.ts';
import type { Informer } from '../../../kube/informer.ts';
import type { WorkQueue } from '../../../kube/work-queue.ts';
import type { StaticObject } from '../../cache/record-facts.ts';
import type { LeaderTerm } from '../../term/leader-term.ts';
import type { AddressConflicts } from './address-conflicts.ts';
import type { ClaimWaits } from './claim-waits.ts';

/** A term with what those share that serve the claims of static addresses. */
export type ClaimsTerm = Omit<LeaderTerm, 'queues'> & {
  readonly configs: Informer<StaticObject<StaticIpRule>>;
  readonly conflicts: AddressConflicts;
  readonly waits: ClaimWaits;
  readonly queues: { readonly claims: WorkQueue };
};
