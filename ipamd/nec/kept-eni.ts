/** An exclusive ENI that outlives its Pods, as its VpcENI has it. */
export type KeptEni = {
  readonly eniId: string;
  /** Its name in the cloud; '' when nobody knows it. */
  readonly name: string;
  readonly mac: string;
  readonly primaryIp: string;
  readonly subnetId: string;
  /** Gateway and network of its subnet. */
  readonly gateway: string;
  readonly subnetCidr: string;
  /** `namespace/name` of the VpcIPClaim that it is kept for. */
  readonly claim: string;
  /** The zone of its subnet; absent: not known, the cloud tells when it is attached. */
  readonly zone?: string;
  /** On no instance: its VpcENI alone has it, and a node that had it lets go of its entry. */
  readonly isAlone: boolean;
  /** So, and nobody is about to delete it: the next node may attach it. */
  readonly isFree: boolean;
  /** The node whose NodeENIConfig has it; absent while it is free. */
  readonly nodeName?: string;
};
