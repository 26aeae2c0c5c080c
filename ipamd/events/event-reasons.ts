import type { EventReason } from '../../kube/events/event-reason.ts';

const NEC = 'NodeENIConfig';

/**
 * All events of ipamd. An event with another reason does not compile; `docs/reference/events.md` is generated from
 * this.
 */
export const IPAMD_EVENTS = {
  SupplyMet: {
    type: 'Normal',
    objects: [NEC, 'Node'],
    cause: 'the problem is over: the node has the addresses that it requests',
    cure: '',
  },
  SubnetExhausted: {
    type: 'Warning',
    objects: [NEC, 'Node'],
    cause:
      "all subnets of the node's zone are full; the message names them and, where the cloud refused a call, has its text and RequestId",
    cure: 'enlarge the subnet, or add one to the ConfigMap: in use within half a minute',
  },
  NoSubnetInZone: {
    type: 'Warning',
    objects: [NEC, 'Node'],
    cause: 'no subnet of the ConfigMap, or of those named for the node, is in its zone and VPC',
    cure: 'add one to the ConfigMap, or correct the label and the spec',
  },
  ENILimit: {
    type: 'Warning',
    objects: [NEC, 'Node'],
    cause: "the VPC has as many ENIs as its quota allows; the message has the cloud's text and RequestId",
    cure: 'raise the quota; look for orphaned ENIs',
  },
  InstanceENILimit: {
    type: 'Warning',
    objects: [NEC, 'Node'],
    cause: 'the instance accepts no more ENIs: another client attached some, or some are still being detached',
    cure: 'wait, or look at the ENIs of the instance in the cloud',
  },
  NodeIPLimit: {
    type: 'Warning',
    objects: [NEC],
    cause: 'Pods request more addresses than the node can have: ENIs times addresses on each',
    cure: 'fewer Pods on the node (`max-pods`), a larger instance, or raise `spec.max…`',
  },
  DirectENILimit: {
    type: 'Warning',
    objects: [NEC],
    cause: 'Pods request more exclusive ENIs than the node may have; the message has the numbers',
    cure: 'fewer such Pods on the node, a larger instance, or raise `spec.maxDirectENI`; shared ENIs count too where the instance has no places of the extension type',
  },
  DirectENIElsewhere: {
    type: 'Warning',
    objects: [NEC],
    cause: "the exclusive ENI that a Pod's claim keeps is still on another node, or in another zone",
    cure: 'wait until the other node releases it; if it is in another zone, run the Pod in that zone, or delete its claim',
  },
  DirectENIStuck: {
    type: 'Warning',
    objects: ['VpcENI'],
    cause: 'an orphaned exclusive ENI cannot be deleted, or is on an instance that is no node of this cluster',
    cure: 'the message says what prevents it; detach the ENI in the cloud, or let its node join the cluster',
  },
  NoAddressOnSuperNode: {
    type: 'Warning',
    objects: ['Pod'],
    cause: 'a Pod on a super node names a network of ENIs and keeps no address; super nodes have no ENIs',
    cure: 'add the annotation `vpc-ip-claim-delete-policy: Never`, or leave the network to the super node',
  },
  ResourceNotServed: {
    type: 'Warning',
    objects: ['Pod'],
    cause:
      'a Pod requests `tke.cloud.tencent.com/sub-eni`, an interface on a trunk ENI, which no node offers: it stays Pending',
    cure: 'request `tke.cloud.tencent.com/eni-ip` or `tke.cloud.tencent.com/direct-eni` instead',
  },
  BesideProduct: {
    type: 'Warning',
    objects: ['ConfigMap'],
    cause:
      "a Pod of the product's own ipamd appeared while ipamd led; ipamd writes nothing and calls no cloud until it is gone",
    cure: 'scale the workload of the product to 0; the message names its Pods',
  },
  DefinitionsLost: {
    type: 'Warning',
    objects: ['ConfigMap'],
    cause:
      'definitions of our kinds were deleted while ipamd ran, and all their objects with them; ipamd installs the definitions again and releases nothing',
    cure: 'find out who deleted them; restore VpcIPClaims, VpcIPs, EIPClaims, VpcENIs, StaticIPConfigs from a backup (docs/operations.md)',
  },
  DefinitionsRestored: {
    type: 'Normal',
    objects: ['ConfigMap'],
    cause: 'lost definitions are served again; NodeENIConfigs are made again and filled from the cloud',
    cure: '',
  },
  NodeReleaseHeld: {
    type: 'Warning',
    objects: [NEC],
    cause:
      'the Node, or the instance, is missing, and that alone does not prove that the node is gone: the API server has no Node at all, its answers contradict each other, or more nodes went within an hour than `--node-release-percent` allows',
    cure: 'see runbook TkeEniNodeReleaseHeld; if the node is gone, `kubectl annotate nec NODE tke.cloud.tencent.com/allow-release=true`',
  },
  DeletionRequested: {
    type: 'Normal',
    objects: [NEC],
    cause:
      'the NodeENIConfig is deleted. That of a Node which is there is made again from the cloud, and Pods go on; with the annotation `disable-node-eni`, or without a Node, its ENIs are drained, and the message says which Pods they wait for',
    cure: 'to give ENIs back: `kubectl annotate node NODE tke.cloud.tencent.com/disable-node-eni=true`; end the Pods that the message names',
  },
  InstanceUnknown: {
    type: 'Warning',
    objects: [NEC, 'Node'],
    cause: 'neither `spec.providerID`, label nor Machine names an instance, or the cloud has none of that id',
    cure: 'correct `spec.providerID`; check `--region` and the account of the key',
  },
  InstanceNotRunning: {
    type: 'Warning',
    objects: [NEC],
    cause: 'the instance is stopped, or starting',
    cure: 'start it',
  },
  InstanceTaken: {
    type: 'Warning',
    objects: [NEC, 'Node'],
    cause: 'another Node names the same instance and already uses it',
    cure: 'delete the Node that is gone, or correct its `spec.providerID`',
  },
  RegisteredTooLong: {
    objects: ['NodeENIConfig'],
    type: 'Warning',
    cause:
      'addresses had no Pod for `--load-balancer-wait` and are still published as targets of load balancers (`loadBalancers.registeredIPs`): they are given back, and others may get requests that are meant for their former Pods',
    cure: 'see why tke-cloud-controller-manager does not deregister them (does it run? events of the Service); where none runs any more, take the list out: `kubectl patch nec NODE --type=merge -p \'{"loadBalancers":null}\'`',
  },
  InstanceTypeUnknown: {
    type: 'Warning',
    objects: [NEC],
    cause: 'the cloud does not report the limits of the instance type: a table by number of cores is used',
    cure: 'none needed; a wrong guess ends in `InstanceENILimit`',
  },
  CloudRefused: {
    type: 'Warning',
    objects: [NEC, 'Node'],
    cause: 'the cloud refused the request; the message has its code, its text and its RequestId',
    cure: '[cloud-calls.md](../cloud-calls.md) has the codes',
  },
  CloudUnreachable: {
    type: 'Warning',
    objects: ['ConfigMap', NEC],
    cause: 'no subnet was described yet, because the cloud does not answer',
    cure: 'check `--endpoint` and the network path to it',
  },
  ConfigInvalid: {
    type: 'Warning',
    objects: ['ConfigMap', NEC],
    cause: 'the ConfigMap with the subnets is absent or malformed, or the cloud has no such region',
    cure: 'correct what the message names; the ConfigMap takes effect within seconds',
  },
  SubnetUnknown: {
    type: 'Warning',
    objects: ['ConfigMap', NEC],
    cause: 'the cloud has no such subnet in the VPC, or one named for a node is in another VPC or zone',
    cure: 'correct the list, the label or the spec',
  },
  SubnetShared: {
    type: 'Warning',
    objects: ['ConfigMap'],
    cause:
      "in a cluster whose nodes have podCIDRs: a subnet of the ConfigMap has, for minutes, addresses that are not those of the cluster's ENIs; the message has the number",
    cure: 'give ENIs of Pods a subnet of their own; nothing is refused',
  },
  AnnotationInvalid: {
    type: 'Warning',
    objects: [NEC, 'Node', 'Pod', 'VpcIP'],
    cause: 'an annotation is malformed, lacks its pair, or is below what is in use; it is ignored, the others apply',
    cure: 'correct it; [annotations.md](annotations.md) has the forms',
  },
  ObjectInvalid: {
    type: 'Warning',
    objects: [NEC, 'VpcIP', 'StaticIPConfig'],
    cause:
      'an edit made the object invalid; in a NodeENIConfig a wrong field is ignored and a wrong status is rebuilt from the cloud, a VpcIP or StaticIPConfig is not changed; a StaticIPConfig with too short a claimExpiredDuration applies without it',
    cure: 'correct the spec; do not edit the status',
  },
  ObjectMended: {
    type: 'Warning',
    objects: [NEC, 'EIPClaim', 'VpcIPClaim'],
    cause: 'another client than ipamd and agent changed the object; it is repaired',
    cure: 'the message says what was changed: find the client that did it',
  },
  Forbidden: {
    type: 'Warning',
    objects: [NEC, 'Node', 'ConfigMap'],
    cause: 'the cloud or the API server denies ipamd a request; the message names the action or right',
    cure: 'grant it to the role of the key ([install.md](../install.md)), or to the ClusterRole',
  },
  LeaderElection: {
    type: 'Normal',
    objects: ['ConfigMap', 'Endpoints', 'Lease'],
    cause: 'a replica began or ended to lead; the message names it',
    cure: '',
  },
  CredentialsMissing: {
    type: 'Warning',
    objects: ['ConfigMap'],
    cause: 'there is no key to the cloud: the message names the sources that were asked',
    cure: 'do what the message says: mostly the Secret `tke-eni-ipamd-credentials` with the entries `secretId` and `secretKey`, and a restart',
  },
  CredentialsRefused: {
    type: 'Warning',
    objects: ['ConfigMap'],
    cause: 'the cloud does not accept the key, or does not let it assume the role',
    cure: 'look at `--credentials`, the Secret, and the clock of the machine; grant `sts:AssumeRole` where the message says so',
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
    cause: 'a warm target set by annotation took effect, or ended',
    cure: '',
  },
  OrphanENI: {
    type: 'Warning',
    objects: ['Namespace'],
    cause: 'an ENI with the tags of this cluster is an orphan and is not deleted; the message says why',
    cure: 'the message says what to do: detach it by hand, or let its node join the cluster',
  },
  OrphanENIDeleted: {
    type: 'Normal',
    objects: ['Namespace'],
    cause: 'an ENI that was an orphan for longer than `--orphan-grace` is deleted',
    cure: '',
  },
  TooManyOrphanENIs: {
    type: 'Warning',
    objects: ['Namespace'],
    cause: 'more than ten ENIs, and more than half of all, seem to be orphans: none is deleted',
    cure: 'check whether NodeENIConfigs were lost, and whether `--clusterid` is that of another cluster',
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
    cure: 'correct them; [annotations.md](annotations.md) has the forms',
  },
  EIPNotFree: {
    type: 'Warning',
    objects: ['Pod', 'EIPClaim'],
    cause: 'an EIP that the Pod names does not exist, or has another owner, whom the message names',
    cure: 'unbind it there, name another, or correct `eip-id-list`',
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
    cause: 'another client released the EIP in the cloud; the Pod gets another, a kept claim ends',
    cure: 'find the client that releases EIPs with the tag `tke-eip-claim`',
  },
  EIPLeft: {
    type: 'Warning',
    objects: ['EIPClaim'],
    cause:
      'the claim ends and its EIP is left as it is: another client bound it elsewhere, or it was not made for the Pod',
    cure: 'unbind and release it by hand if it is not needed',
  },
  OrphanEIP: {
    type: 'Warning',
    objects: ['Namespace'],
    cause: 'an EIP with the tags of this cluster belongs to no claim and is not released; the message says why',
    cure: 'the message says what to do: unbind it by hand, or release it',
  },
  OrphanEIPReleased: {
    type: 'Normal',
    objects: ['Namespace'],
    cause: 'an EIP that belonged to no claim for longer than `--orphan-grace` is released',
    cure: '',
  },
  OrphanReservation: {
    type: 'Warning',
    objects: ['Namespace'],
    cause:
      'an address that ipamd reserved in the VPC for this cluster belongs to no VpcIPClaim and is not released; the message says why',
    cure: 'the message says what it waits for; otherwise release it in the console of the VPC',
  },
  OrphanReservationReleased: {
    type: 'Normal',
    objects: ['Namespace'],
    cause: 'a reserved address that belonged to no VpcIPClaim for longer than `--orphan-grace` is released',
    cure: '',
  },
  ReservationForeign: {
    type: 'Warning',
    objects: ['VpcIPClaim'],
    cause:
      "`status.reservation` of a claim names a reserved address of the VPC whose name and tags are not this claim's: the record was edited, or name and tags were; it stays reserved",
    cure: 'find the client that edited the claim; if the reservation is of this cluster, release it in the console of the VPC',
  },
  StaticIPDisabled: {
    type: 'Warning',
    objects: ['Pod'],
    cause: 'a Pod whose address is to be kept is on a node whose NodeENIConfig does not set `spec.enableStaticIP`',
    cure: '`--enable-static-ip=true`, or label the Node `tke.cloud.tencent.com/static-ip=true`',
  },
  AddressTaken: {
    type: 'Warning',
    objects: ['Pod', 'VpcIPClaim'],
    cause: 'the address that is kept for the Pod, or that it asks for, has another owner, whom the message names',
    cure: 'release it there, it is tried again; or delete the VpcIPClaim, and the Pod gets another',
  },
  AddressElsewhere: {
    type: 'Warning',
    objects: ['Pod', 'VpcIPClaim'],
    cause: 'the address is in a subnet of another zone than the node, or in a subnet that ipamd does not know',
    cure: 'let the Pod run in that zone (the scheduler extender does), or delete the VpcIPClaim',
  },
  NodeFull: {
    type: 'Warning',
    objects: ['Pod', 'VpcIPClaim'],
    cause:
      'a Pod whose address or exclusive ENI is to be kept is on a node that has no place for it: Pods and kept addresses use every place of its ENIs, and the instance may have no more ENIs',
    cure: 'delete the Pod: the scheduler extender chooses a node with a place; or delete a Pod or a VpcIPClaim of the node that is not needed',
  },
  AddressPoolExhausted: {
    type: 'Warning',
    objects: ['Pod', 'VpcIPClaim'],
    cause: 'no address of the StaticIPConfig that selects the Pod is free in the zone of its node',
    cure: 'add addresses to `spec.ips`, or delete VpcIPClaims that are not needed',
  },
  ClaimInUse: {
    type: 'Warning',
    objects: ['VpcIPClaim'],
    cause: 'a VpcIPClaim or VpcIP is deleted while its Pod lives: it is removed when the Pod is gone',
    cure: 'delete the Pod',
  },
  ClaimEnded: {
    type: 'Normal',
    objects: ['VpcIPClaim'],
    cause: 'a kept address is released: it expired, its Pod or workload is gone, or its VpcIP was deleted',
    cure: '',
  },
  NominationIgnored: {
    type: 'Warning',
    objects: ['Pod'],
    cause: 'a Pod asks for an address by annotation, and its claim keeps another one, which stays',
    cure: 'delete the VpcIPClaim, then the Pod; or remove the annotation',
  },
  ClaimDiffers: {
    type: 'Warning',
    objects: ['VpcIPClaim'],
    cause:
      'consecutive audits found that a claim, its VpcIP, its Pod and the nodes do not agree; the message says in what',
    cure: 'check the claim’s condition Ready and the log of ipamd; delete the claim if its address is not needed',
  },
  ClaimInvalid: {
    type: 'Warning',
    objects: ['VpcIPClaim'],
    cause: 'an edit made the claim invalid; nothing is done to it or to its address',
    cure: 'correct the fields that the message names',
  },
  FieldContested: {
    type: 'Warning',
    objects: ['Node'],
    cause:
      'another client keeps changing back a taint or a condition of a Node that ipamd writes; it is written at most once a minute until that ends',
    cure: 'find the other client by `metadata.managedFields`, and stop it or let it leave the taint or condition alone',
  },
  FailedToCreateRoute: {
    type: 'Warning',
    objects: ['Node'],
    cause:
      'the VPC has no route to the podCIDR of a Node, with `--gr-routes=ipamd`; the message has the reason. Its Pods of the bridge network are not reached from other nodes',
    cure: 'do what the message says: raise the quota of routes, correct `--cluster-cidr`, or delete the Node that has the same podCIDR; it is tried again',
  },
  RouteNotKept: {
    type: 'Warning',
    objects: ['Node'],
    cause:
      'the Node is in service by a route that nothing keeps, as `--cluster-cidr` or `--clusterid` is wrong; the route and the condition of the Node stay as they are',
    cure: 'correct the setting that the message names',
  },
  RoutesKeptByOther: {
    type: 'Warning',
    objects: ['ConfigMap'],
    cause:
      'another program keeps the routes of podCIDRs, as the Endpoints `tke-eni-pod-routes` says: a cloud controller manager with `--routes`. ipamd writes none, whatever `--gr-routes` says',
    cure: 'set `--gr-routes=ccm` of ipamd, or `--routes=none` of the cloud controller manager; the other one begins within half a minute',
  },
  CIDRNotAvailable: {
    type: 'Warning',
    objects: ['Node'],
    cause:
      'a Node waits for a podCIDR, and no block of `--cluster-cidr` is free; the message counts those that are held',
    cure: 'wait until held blocks are free, delete Nodes that are not needed, or add a network to `--cluster-cidr`',
  },
  CIDRAssignmentFailed: {
    type: 'Warning',
    objects: ['Node'],
    cause: 'three writes of the podCIDR of a Node failed; the message has the last error',
    cure: 'it is tried again; look at the API server, and at the right to patch Nodes',
  },
  CIDRAllocatorConflict: {
    type: 'Warning',
    objects: ['Node', 'ConfigMap'],
    cause:
      'a new Node got a podCIDR from another allocator while `--allocate-node-cidrs` is set: ipamd gives no more blocks, as two allocators give one block to two nodes',
    cure: 'run kube-controller-manager with `--allocate-node-cidrs=false`, then restart all replicas of ipamd; or unset `--allocate-node-cidrs` of ipamd',
  },
  CIDROutOfRange: {
    type: 'Warning',
    objects: ['Node'],
    cause: 'a Node has a podCIDR that is not within `--cluster-cidr`; it stays, and no other node gets its addresses',
    cure: 'add its network to `--cluster-cidr`, or drain the node and let it register again',
  },
  CIDROverlap: {
    type: 'Warning',
    objects: ['Node', 'ConfigMap'],
    cause:
      'the podCIDR of a Node overlaps that of another Node, or the range of Services; on the ConfigMap: `--cluster-cidr` overlaps subnets of the VPC, whose blocks no node gets',
    cure: 'drain the node, delete its Node, and let it register again; choose networks of Pods outside of the VPC',
  },
  CiliumNodeMissing: {
    type: 'Warning',
    objects: ['Node'],
    cause:
      'a Node has the label `tke.cloud.tencent.com/cilium-ipam=crd`, and for two minutes there is no CiliumNode of its name: the definition is missing, or Cilium’s agent does not run there',
    cure: 'install Cilium with `ipam.mode=crd`, or take the label off',
  },
  CiliumPoolExhausted: {
    type: 'Warning',
    objects: ['Node'],
    cause:
      'no address in the pool of a CiliumNode is free, and the node gets no more; the message has the reason of its NodeENIConfig',
    cure: 'do what the reason says, as for SubnetExhausted or NodeIPLimit',
  },
  CiliumPoolContested: {
    type: 'Warning',
    objects: ['Node'],
    cause:
      'the pool of a CiliumNode has an address that is on none of the node’s ENIs, or an address of the node is in the pool of another node; the message names them. A pool was edited, or an ENI was taken off',
    cure: 'take entries that were added by hand out of the pool, if no Pod has the address; others go once Cilium gives them up',
  },
  CiliumDemandContested: {
    type: 'Warning',
    objects: ['Node'],
    cause:
      'a Node has the label `tke.cloud.tencent.com/cilium-ipam=crd`, and another client than ipamd writes what its NodeENIConfig asks for: mostly its agent, which does not run with `--role=uplinks`',
    cure: 'run the agent of that node with `--role=uplinks`, or take the label off',
  },
  CiliumReleaseRefused: {
    type: 'Warning',
    objects: ['Node'],
    cause:
      'Cilium keeps an address that it was asked to give up, or gave up one that a live Pod has; the address stays on the node',
    cure: 'none, if it is rare; else compare `status.ipam.used` of the CiliumNode with the Pods of the node',
  },
  CiliumReleaseUnanswered: {
    type: 'Warning',
    objects: ['Node'],
    cause:
      'Cilium’s agent did not answer for five minutes whether it gives an address up; the address stays on the node',
    cure: 'look at Cilium’s agent on the node',
  },
  CiliumNodeInvalid: {
    type: 'Warning',
    objects: ['Node'],
    cause:
      'entries of a CiliumNode cannot be read: a CIDR in the pool, an unknown state, a wrong number; the message names the fields. They are ignored, the others serve',
    cure: 'correct the fields that the message names; see who wrote them',
  },
} as const satisfies Readonly<Record<string, EventReason>>;

/** The reason of an event of ipamd. */
export type IpamdEventReason = keyof typeof IPAMD_EVENTS;
