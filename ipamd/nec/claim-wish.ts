/**
 * What one node has to do for one VpcIPClaim. Made of the claims, Pods and NodeENIConfigs of one moment; a node has a
 * wish for each claim whose Pod is on it, and for each whose mark is on an address or exclusive ENI of its.
 *
 * ```
 *   here       the Pod `podUid` is on this node: an address on an ENI of the node, with the claim's mark and this uid
 *   keep       no Pod: the address stays where it is, marked and without a uid
 *   elsewhere  the Pod is on another node: the uid goes; once the agent offers the address it is Releasing, and the other
 *              node's turn takes it over, or this node gives it up when the other cannot
 *   free       the claim ends: the uid goes; once the agent offers the address it is taken off
 * ```
 */
export type ClaimWish = {
  /** `namespace/name` of the VpcIPClaim, and of its Pods. */
  readonly key: string;
  readonly mode: 'route-eni' | 'direct-eni';
  readonly want: 'here' | 'keep' | 'elsewhere' | 'free';
  /** The Pod that is on this node; only with `here`. */
  readonly podUid?: string;
  /** The address that it must be: kept, or nominated. Absent: any that the cloud gives. */
  readonly ip?: string;
  /** The only subnets that will do; absent: any of the node's. */
  readonly subnetIds?: readonly string[];
  /** The only addresses that will do, of a StaticIPConfig, those of others taken out; absent: any. */
  readonly ips?: readonly string[];
  /** Where the address is now, when not on this node. */
  readonly source?: ClaimSource;
  /** With `elsewhere`: the other node has an ENI attached that will take it, and its turn moves it. */
  readonly isAwaited?: boolean;
  /**
   * The agent of this node will not answer (its node is not ready for long, and the Pod is gone by the API server's word):
   * its offer is not waited for. The cloud routes an address to one ENI only, so the old Pod is cut off from the network.
   */
  readonly mayTakeOver?: boolean;
  /** Security groups of an exclusive ENI for this Pod, in order; absent: the node's. */
  readonly securityGroupIds?: readonly string[];
};

/** An ENI of another node that has the address. */
export type ClaimSource = {
  readonly nodeName: string;
  readonly eniId: string;
  /** The ENI is attached to an instance: the address may migrate. */
  readonly isAttached: boolean;
  /** The address is Releasing there: its agent has let go of it, and it may be moved. */
  readonly isReleased: boolean;
};
