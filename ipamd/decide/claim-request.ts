/**
 * What one node has to do for one VpcIPClaim. Derived from the claims, Pods and NodeENIConfigs of one moment. A node
 * has a request for each claim whose Pod is on it, and for each claim whose mark is on one of its addresses or
 * exclusive ENIs.
 *
 * ```
 *   here       the Pod `podUid` is on this node: an address on an ENI of the node, with the claim's mark and this uid
 *   keep       no Pod: the address stays where it is, marked and without a uid
 *   elsewhere  the Pod is on another node: the uid is removed; once the agent offers the address it becomes Releasing.
 *              The reconcile of the other node takes it over, or this node unassigns it when the other cannot take it
 *   free       the claim ends: the uid is removed; once the agent offers the address it is unassigned
 * ```
 */
export type ClaimRequest = {
  /** `namespace/name` of the VpcIPClaim, and of its Pods. */
  readonly key: string;
  readonly mode: 'route-eni' | 'direct-eni';
  readonly goal: 'here' | 'keep' | 'elsewhere' | 'free';
  /** The Pod that is on this node; only with `here`. */
  readonly podUid?: string;
  /** The required address: static, or nominated. Absent: any that the cloud assigns. */
  readonly ip?: string;
  /** The only suitable subnets; absent: any of the node's. */
  readonly subnetIds?: readonly string[];
  /** The only suitable addresses, from a StaticIPConfig, without those of other claims; absent: any. */
  readonly ips?: readonly string[];
  /** Where the address is now, if not on this node. */
  readonly source?: ClaimSource;
  /** With `elsewhere`: the other node has a suitable attached ENI, and its reconcile moves the address. */
  readonly willMigrate?: boolean;
  /**
   * The address is taken without an offer of this node's agent: the node has not been ready for long, and the Pod is
   * deleted according to the API server. The cloud routes an address to one ENI only, so the old Pod loses its network.
   */
  readonly mayTakeOver?: boolean;
  /** Security groups of the Pod's exclusive ENI, in order; absent: the node's. */
  readonly securityGroupIds?: readonly string[];
};

/** An ENI of another node that has the address. */
export type ClaimSource = {
  readonly nodeName: string;
  readonly eniId: string;
  /** The ENI is attached to an instance: the address can be migrated. */
  readonly isAttached: boolean;
  /** The address is Releasing there: its agent has released it, and it may be moved. */
  readonly isReleased: boolean;
};
