/**
 * Description of one event reason. It stands beside the code that records the event, so that every event is explained.
 */
type EventReason = {
  readonly type: 'Normal' | 'Warning';
  /** Kinds of objects that the event is recorded on. */
  readonly objects: readonly string[];
  /** When the event is recorded. */
  readonly cause: string;
  /** What an operator does; '' for nothing. */
  readonly cure: string;
};

const NEC = 'NodeENIConfig';

/**
 * All events of ipamd. An event with another reason does not compile; `docs/reference/events.md` is generated from
 * this.
 */
export const IPAMD_EVENTS = {
  SupplyMet: {
    type: 'Normal',
    objects: [NEC],
    cause: 'what was wrong is over: the node has the addresses that it wants',
    cure: '',
  },
  SubnetExhausted: {
    type: 'Warning',
    objects: [NEC],
    cause: "all subnets of the node's zone are full; the message names them and has the cloud's words",
    cure: 'enlarge the subnet, or add one to the ConfigMap: in use within half a minute',
  },
  NoSubnetInZone: {
    type: 'Warning',
    objects: [NEC],
    cause: 'no subnet of the ConfigMap, or of those named for the node, is in its zone and VPC',
    cure: 'add one to the ConfigMap, or mend label and spec',
  },
  ENILimit: {
    type: 'Warning',
    objects: [NEC],
    cause: 'the VPC may hold no more ENIs',
    cure: 'raise the quota; look for orphaned ENIs',
  },
  InstanceENILimit: {
    type: 'Warning',
    objects: [NEC],
    cause: 'the instance takes no more ENIs: others put some there, or some are still going',
    cure: 'wait, or look at the ENIs of the instance in the cloud',
  },
  NodeIPLimit: {
    type: 'Warning',
    objects: [NEC],
    cause: 'Pods want more addresses than ENIs times addresses on each',
    cure: 'fewer Pods on the node (`max-pods`), a larger instance, or raise `spec.max…`',
  },
  DirectENILimit: {
    type: 'Warning',
    objects: [NEC],
    cause: 'Pods want more exclusive ENIs than the node may have; the message has the numbers',
    cure: 'fewer such Pods on the node, a larger instance, or raise `spec.maxDirectENI`; shared ENIs take places too',
  },
  DirectENIElsewhere: {
    type: 'Warning',
    objects: [NEC],
    cause: "the exclusive ENI that a Pod's claim keeps is on another node still, or in another zone",
    cure: 'wait for the other node to let go of it; of another zone: run the Pod in the zone of its ENI, or delete its claim',
  },
  DirectENIStuck: {
    type: 'Warning',
    objects: ['VpcENI'],
    cause: "an exclusive ENI that is nobody's any more cannot be deleted, or is on an instance that is none of ours",
    cure: 'the message says what is in the way; detach it in the cloud, or have its node join',
  },
  InstanceUnknown: {
    type: 'Warning',
    objects: [NEC, 'Node'],
    cause: 'neither `spec.providerID`, label nor Machine names an instance, or the cloud has none of that id',
    cure: 'mend `spec.providerID`; look at `--region` and the account of the key',
  },
  InstanceNotRunning: {
    type: 'Warning',
    objects: [NEC],
    cause: 'the instance is stopped, or starting',
    cure: 'start it',
  },
  InstanceTaken: {
    type: 'Warning',
    objects: ['Node'],
    cause: 'another Node names the same instance, and has it',
    cure: 'delete the Node that is gone, or mend its `spec.providerID`',
  },
  InstanceTypeUnknown: {
    type: 'Warning',
    objects: [NEC],
    cause: 'the cloud does not tell the limits of the instance type: a table by cores is used',
    cure: 'none needed; a wrong guess ends in `InstanceENILimit`',
  },
  CloudRefused: {
    type: 'Warning',
    objects: [NEC],
    cause: 'the cloud said no; the message has its code and text',
    cure: '[cloud-calls.md](../cloud-calls.md) has the codes',
  },
  CloudUnreachable: {
    type: 'Warning',
    objects: ['ConfigMap', NEC],
    cause: 'no subnet was ever described, for the cloud does not answer',
    cure: 'look at `--endpoint`, and at the way to it',
  },
  ConfigInvalid: {
    type: 'Warning',
    objects: ['ConfigMap', NEC],
    cause: 'the ConfigMap with the subnets is not there or malformed, or the cloud knows no such region',
    cure: 'mend what the message names; the ConfigMap is in force within seconds',
  },
  SubnetUnknown: {
    type: 'Warning',
    objects: ['ConfigMap', NEC],
    cause: 'the cloud has no such subnet in the VPC, or one named for a node is in another VPC or zone',
    cure: 'mend the list, the label or the spec',
  },
  AnnotationInvalid: {
    type: 'Warning',
    objects: [NEC, 'Node', 'Pod'],
    cause: 'an annotation is malformed, half given, or below what is in use; it is ignored, the others hold',
    cure: 'mend it; [annotations.md](annotations.md) has the forms',
  },
  ObjectInvalid: {
    type: 'Warning',
    objects: [NEC, 'VpcIP', 'StaticIPConfig'],
    cause:
      'somebody edited the object into nonsense; of a NodeENIConfig a wrong field is ignored and a status is made anew from the cloud, a VpcIP or StaticIPConfig is left alone',
    cure: 'mend the spec; leave the status',
  },
  ObjectMended: {
    type: 'Warning',
    objects: [NEC],
    cause: 'somebody else than ipamd and agent changed the object; it is as it should be again',
    cure: 'the message says what was changed: find who',
  },
  Forbidden: {
    type: 'Warning',
    objects: [NEC, 'Node', 'ConfigMap'],
    cause: 'the cloud or the API server lets ipamd not; the message names the action or right',
    cure: 'grant it to the role of the key ([install.md](../install.md)), or to the ClusterRole',
  },
  CredentialsRefused: {
    type: 'Warning',
    objects: ['ConfigMap'],
    cause: 'the cloud does not accept the key',
    cure: 'look at `--credentials`, the Secret, and the clock of the machine',
  },
  Unauthorized: {
    type: 'Warning',
    objects: ['ConfigMap'],
    cause: 'the API server does not accept the token',
    cure: 'look at the ServiceAccount or the kubeconfig',
  },
  SucceedSetRouteENIWarmTarget: {
    type: 'Normal',
    objects: ['Node'],
    cause: 'a warm target by annotation came into force, or went out of it',
    cure: '',
  },
  OrphanENI: {
    type: 'Warning',
    objects: ['Namespace'],
    cause: 'an ENI with the mark of this cluster is nobody’s and is not deleted; the message says why',
    cure: 'the message says what to do: detach it by hand, or have its node join',
  },
  OrphanENIDeleted: {
    type: 'Normal',
    objects: ['Namespace'],
    cause: 'an ENI that was nobody’s for longer than `--orphan-grace` is deleted',
    cure: '',
  },
  TooManyOrphanENIs: {
    type: 'Warning',
    objects: ['Namespace'],
    cause: 'more than ten ENIs that are more than half of all seem to be nobody’s: none is deleted',
    cure: 'were NodeENIConfigs lost? is `--clusterid` that of another cluster?',
  },
  EIPBound: {
    type: 'Normal',
    objects: ['Pod', 'EIPClaim'],
    cause: 'the Pod has its EIP; the message names address and EIP',
    cure: '',
  },
  FailedAllocateEIP: {
    type: 'Warning',
    objects: ['Pod', 'EIPClaim'],
    cause: 'the cloud allocates no EIP for the Pod; the message has its code and text',
    cure: 'AddressQuotaLimitExceeded: raise the quota of the region or release EIPs; UnauthorizedOperation: grant the action',
  },
  FailedAssociateEIP: {
    type: 'Warning',
    objects: ['Pod', 'EIPClaim'],
    cause: "the cloud does not bind the EIP to the Pod's address; the message has its code and text",
    cure: 'AlreadyBindEip: unbind the other EIP; InstanceAddressQuota: fewer EIPs on the node',
  },
  FailedReleaseEIP: {
    type: 'Warning',
    objects: ['EIPClaim'],
    cause: 'the cloud does not unbind or release the EIP of a Pod that is gone; the message has its code and text',
    cure: 'what the message says; it is tried again for as long as the EIPClaim is there',
  },
  EIPInvalid: {
    type: 'Warning',
    objects: ['Pod'],
    cause: 'the annotations that ask for an EIP are malformed: the Pod gets none',
    cure: 'mend them; [annotations.md](annotations.md) has the forms',
  },
  EIPNotFree: {
    type: 'Warning',
    objects: ['Pod', 'EIPClaim'],
    cause: 'an EIP that the Pod names does not exist, or is somebody else’s; the message says whose',
    cure: 'unbind it there, name another, or mend `eip-id-list`',
  },
  EIPLimitOfNode: {
    type: 'Warning',
    objects: ['Pod', 'EIPClaim'],
    cause: 'the node has as many EIPs as its instance may bind',
    cure: 'request the resource `tke.cloud.tencent.com/eip`, so that the Pod is not scheduled there',
  },
  EIPGone: {
    type: 'Warning',
    objects: ['Pod', 'EIPClaim'],
    cause: 'somebody released the EIP in the cloud; the Pod gets another, a kept claim ends',
    cure: 'find out who releases EIPs with the tag `tke-created-eip`',
  },
  EIPLeft: {
    type: 'Warning',
    objects: ['EIPClaim'],
    cause: 'the claim ends, and its EIP stays as it is: somebody bound it elsewhere, or it was not made for the Pod',
    cure: 'unbind and release it by hand if nobody needs it',
  },
  OrphanEIP: {
    type: 'Warning',
    objects: ['Namespace'],
    cause: 'an EIP with the mark of this cluster is no claim’s, and is not released; the message says why',
    cure: 'the message says what to do: unbind it by hand, or release it',
  },
  OrphanEIPReleased: {
    type: 'Normal',
    objects: ['Namespace'],
    cause: 'an EIP that was no claim’s for longer than `--orphan-grace` is released',
    cure: '',
  },
  StaticIPDisabled: {
    type: 'Warning',
    objects: ['Pod'],
    cause: 'a Pod whose address is to be kept is on a node whose NodeENIConfig does not say `spec.enableStaticIP`',
    cure: '`--enable-static-ip=true`, or label the Node `tke.cloud.tencent.com/static-ip=true`',
  },
  AddressTaken: {
    type: 'Warning',
    objects: ['Pod', 'VpcIPClaim'],
    cause: 'the address that is kept for the Pod, or that it asks for, is of somebody else; the message says of whom',
    cure: 'give it back there, it is tried again; or delete the VpcIPClaim, and the Pod gets another',
  },
  AddressElsewhere: {
    type: 'Warning',
    objects: ['Pod', 'VpcIPClaim'],
    cause: 'the address is of a subnet of another zone than the node, or of none that ipamd knows',
    cure: 'let the Pod run in that zone (the scheduler extender does), or delete the VpcIPClaim',
  },
  AddressPoolExhausted: {
    type: 'Warning',
    objects: ['Pod', 'VpcIPClaim'],
    cause: 'no address of the StaticIPConfig that selects the Pod is free in the zone of its node',
    cure: 'add addresses to `spec.ips`, or delete VpcIPClaims that nobody needs',
  },
  ClaimInUse: {
    type: 'Warning',
    objects: ['VpcIPClaim'],
    cause: 'a VpcIPClaim or VpcIP is deleted while its Pod lives: it goes when the Pod is gone',
    cure: 'delete the Pod',
  },
  ClaimEnded: {
    type: 'Normal',
    objects: ['VpcIPClaim'],
    cause: 'a kept address is given back: it expired, its Pod or workload is gone, or its VpcIP was deleted',
    cure: '',
  },
  NominationIgnored: {
    type: 'Warning',
    objects: ['Pod'],
    cause: 'a Pod asks for an address by annotation, and its claim keeps another one, which stays',
    cure: 'delete the VpcIPClaim, then the Pod; or take the annotation back',
  },
  ClaimDiffers: {
    type: 'Warning',
    objects: ['VpcIPClaim'],
    cause: 'look after look a claim, its VpcIP, its Pod and the nodes do not agree; the message says in what',
    cure: 'look at the claim’s condition Ready, and at the log of ipamd; delete the claim if nobody needs its address',
  },
  ClaimInvalid: {
    type: 'Warning',
    objects: ['VpcIPClaim'],
    cause: 'somebody edited the claim into nonsense; nothing is done to it or to its address',
    cure: 'mend the fields that the message names',
  },
} as const satisfies Readonly<Record<string, EventReason>>;

/** The reason of an event of ipamd. */
export type IpamdEventReason = keyof typeof IPAMD_EVENTS;
