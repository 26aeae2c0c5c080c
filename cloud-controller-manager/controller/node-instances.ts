import type { Instance } from '../../cloud/cloud.ts';
import type { ProviderId } from '../../cloud/provider-id.ts';
import type { VpcFault } from '../../pod-routes/routes-elsewhere.ts';

/** The instances behind Nodes, as the cloud described them. */
export type NodeInstances = {
  /** The VPC of the cluster; the configured one, else undefined while it is not known. */
  readonly vpcId: string | undefined;
  /**
   * Undefined: nothing shows that --vpc-id is wrong. While something does, it stays in force, but nothing that is there is
   * removed because it is in another VPC.
   */
  readonly vpcFault: VpcFault | undefined;
  /** Returns the instance that a Node names, as it was described last; undefined: it was not, or the Node names none. */
  of(node: { readonly providerId: ProviderId }): Instance | undefined;
  /** Takes over what another part of this program was answered. */
  note(instances: Iterable<Instance>): void;
  /** Calls `listener` when an instance is described that was not, or in another way. Returns what ends that. */
  subscribe(listener: () => void): () => void;
  /** Resolves when each Node that is there at the start was asked for once, or when `signal` aborts. */
  ready(signal: AbortSignal): Promise<void>;
};
