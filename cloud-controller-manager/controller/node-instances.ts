import type { Instance } from '../../cloud/cloud.ts';
import type { ProviderId } from '../../cloud/provider-id.ts';

/** The instances behind Nodes, as the cloud described them. */
export type NodeInstances = {
  /** The VPC of the cluster; undefined while it is not known, or --vpc-id contradicts the instances. */
  readonly vpcId: string | undefined;
  /** What is wrong with --vpc-id, for people; undefined: nothing that is known. */
  readonly vpcFault: string | undefined;
  /** Returns the instance that a Node names, as it was described last; undefined: it was not, or the Node names none. */
  of(node: { readonly providerId: ProviderId }): Instance | undefined;
  /** Takes over what another part of this program was answered. */
  note(instances: Iterable<Instance>): void;
  /** Calls `listener` when an instance is described that was not, or in another way. Returns what ends that. */
  subscribe(listener: () => void): () => void;
  /** Resolves when each Node that is there at the start was asked for once, or when `signal` aborts. */
  ready(signal: AbortSignal): Promise<void>;
};
