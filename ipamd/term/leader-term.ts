import type { FreshStore } from '../../kube/fresh-store.ts';
import type { Informer } from '../../kube/informer.ts';
import type { WorkQueue } from '../../kube/work-queue.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { DeploymentFacts } from '../cache/find-workload.ts';
import type { MachineEntry } from '../cache/machine-entry.ts';
import type { ClaimFacts, VipFacts } from '../cache/record-facts.ts';
import type { RegisteredIps } from '../cache/registered-ips.ts';
import type { NodeMemories } from '../calls/node-memory.ts';
import type { Term } from '../calls/term.ts';
import type { StaticEniIndex } from '../exclusive/static-eni-index.ts';
import type { AddressLookup } from '../nodes/address-lookup.ts';
import type { ClaimRequests } from '../nodes/claim-requests.ts';
import type { InstanceCache } from '../nodes/instance-cache.ts';
import type { KnownNodeFacts } from '../nodes/node-facts.ts';
import type { Renewals } from '../nodes/renewals.ts';
import type { Subnets } from '../subnets/open-subnets.ts';
import type { InformerDeps } from './open-informers.ts';

/** A term of leadership with all that its controllers and guests share; each names the members that it uses. */
export type LeaderTerm = Term & {
  readonly informerDeps: InformerDeps;
  /** Undefined if the cluster has no Machines. */
  readonly machines: () => Informer<MachineEntry> | undefined;
  /** Of the leader alone: records of Pods, and static addresses. */
  readonly vips: Informer<VipFacts>;
  /** As {@link LeaderTerm.vips}. */
  readonly claims: Informer<ClaimFacts>;
  /** Only with --enable-ownerref. */
  readonly deployments: Informer<DeploymentFacts> | undefined;
  /** `supply`: nodes, for their ENIs and addresses. `nodes`: the same, for their NodeENIConfig, taint and condition. */
  readonly queues: { readonly supply: WorkQueue; readonly nodes: WorkQueue };
  readonly lookup: AddressLookup;
  readonly instances: InstanceCache;
  /** Returns the instances of all nodes, whether they have a NodeENIConfig or not. */
  readonly instanceIds: () => ReadonlySet<string>;
  readonly subnets: Subnets;
  /** Returns the VPC of the cluster: that of the ConfigMap, else the one of all instances, else the one of the subnets. */
  readonly vpcId: () => string | undefined;
  /** Addresses that load balancers may still have; undefined with --load-balancer-wait=0. */
  readonly registered: RegisteredIps | undefined;
  readonly staticEnis: StaticEniIndex;
  readonly facts: KnownNodeFacts;
  /** Finds another Node that has the instance of a node. */
  readonly rivalOf: (name: string, instanceId: string) => string | undefined;
  readonly memory: NodeMemories;
  /** The NodeENIConfigs with what was written in this term. */
  readonly freshNecs: FreshStore<NecEntry>;
  readonly renewals: Renewals;
  /** What claims ask of nodes: written by a guest, read by the supply. */
  readonly requests: ClaimRequests;
  /** Enqueues a node of which claims ask something else now, wherever it is reconciled. */
  readonly noteRequests: (node: string) => void;
};
