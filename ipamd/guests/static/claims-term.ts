import type { StaticIpRule } from '../../../crd/select-static-ip-config.ts';
import type { Informer } from '../../../kube/informer.ts';
import type { WorkQueue } from '../../../kube/work-queue.ts';
import type { DeploymentFacts } from '../../cache/find-workload.ts';
import type { ClaimFacts, StaticObject, VipFacts } from '../../cache/record-facts.ts';
import type { RegisteredIps } from '../../cache/registered-ips.ts';
import type { Term } from '../../calls/term.ts';
import type { ClaimRequests } from '../../nodes/claim-requests.ts';
import type { KnownNodeFacts } from '../../nodes/node-facts.ts';
import type { Subnets } from '../../subnets/open-subnets.ts';
import type { AddressConflicts } from './address-conflicts.ts';
import type { ClaimWaits } from './claim-waits.ts';

/** A term with what those share that serve the claims of static addresses. */
export type ClaimsTerm = Term & {
  readonly vips: Informer<VipFacts>;
  readonly claims: Informer<ClaimFacts>;
  readonly configs: Informer<StaticObject<StaticIpRule>>;
  /** Only with --enable-ownerref. */
  readonly deployments: Informer<DeploymentFacts> | undefined;
  readonly subnets: Subnets;
  readonly facts: Pick<KnownNodeFacts, 'departureOf'>;
  readonly requests: ClaimRequests;
  readonly conflicts: AddressConflicts;
  readonly waits: ClaimWaits;
  /** Addresses that load balancers may still have; undefined with --load-balancer-wait=0. */
  readonly registered: RegisteredIps | undefined;
  readonly queues: { readonly claims: WorkQueue; readonly cilium: WorkQueue };
};
