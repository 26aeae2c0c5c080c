/** ENIs and addresses of this node as a remote source has them: the cluster's NodeENIConfig, or the cloud. */
export type RemoteState = {
  readonly source: 'nec' | 'cloud';
  /** Name of the source in messages: 'NodeENIConfig n1', 'the cloud'. */
  readonly title: string;
  readonly enis: readonly RemoteEni[];
  /** True when the list of ENIs is complete: an ENI that is missing here does not belong to the node. */
  readonly isComplete: boolean;
  /** Supply epoch of the NodeENIConfig; undefined for the cloud. */
  readonly epoch?: number;
};

/** One ENI in the remote state. */
export type RemoteEni = {
  readonly eniId: string;
  /** Lower case. */
  readonly mac: string;
  readonly isAttached: boolean;
  /** State as the source writes it. */
  readonly state: string;
  /** Primary addresses of the ENI. */
  readonly primaries: readonly string[];
  readonly addresses: readonly RemoteAddress[];
};

/** A secondary address, for a Pod. */
type RemoteAddress = {
  readonly ip: string;
  /** Undefined where the source has no such id. */
  readonly assignmentId?: string;
  /** True when the address is assigned to the ENI and is not being added or removed. */
  readonly isAssigned: boolean;
  /** State as the source writes it. */
  readonly state: string;
};
