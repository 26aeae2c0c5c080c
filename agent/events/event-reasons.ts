/**
 * Type, cause and cure of one event reason. The table below stands beside the code that records the events, so that
 * every event is documented.
 */
type EventReason = {
  readonly type: 'Normal' | 'Warning';
  /** When the event is recorded. */
  readonly cause: string;
  /** What an operator does; '' for nothing. */
  readonly cure: string;
};

/**
 * All events of the agent; each is about its Node. Recording any other reason does not compile.
 * `docs/reference/events.md` is generated from this table.
 */
export const NODE_EVENTS = {
  AnnotationInvalid: {
    type: 'Warning',
    cause:
      'annotations of the NodeENIConfig are malformed, lack their pair, or are below what is in use; the others apply',
    cure: 'correct it; [annotations.md](annotations.md) has the forms',
  },
  ObjectInvalid: {
    type: 'Warning',
    cause: 'fields of the NodeENIConfig cannot be read; the last good state stays in force',
    cure: 'correct the spec; ipamd repairs the status',
  },
  SupplyDistrusted: {
    type: 'Warning',
    cause: 'the supply epoch is lower than one seen before (a restored etcd, a stale cache)',
    cure: 'none: ipamd describes the cloud again and raises the epoch; check ipamd if the event stays',
  },
  SupplyRefused: {
    type: 'Warning',
    cause:
      "an ENI, or an address, of the status would take the node's own traffic or is none that a Pod can have; the message has the reason. The rest of the supply is used",
    cure: 'see who wrote the status: ipamd repairs it from the cloud; correct the file of `--supply-file`. Where the VPC has the subnet and the message says otherwise: `--vpc-cidr`',
  },
  ServiceCidrsUnknown: {
    type: 'Warning',
    cause:
      'the node has exclusive ENIs, and no range of Services is known: their Pods reach no Service and no cluster DNS; the message has what was tried',
    cure: 'set `--service-cidrs` to the value of kube-apiserver’s `--service-cluster-ip-range`; or grant the ClusterRole `tke-eni-agent-service-cidrs`',
  },
  RuleMode: {
    type: 'Normal',
    cause: 'policy rules are laid out in another mode than before; the message says why',
    cure: 'if per-pod was not configured: install nftables, or check whether cilium-cni is chained',
  },
  RepairFight: {
    type: 'Warning',
    cause:
      'another program keeps undoing a change of the agent, or replacing a file that it installed; the agent repairs it again, at last every three seconds, and what needs it is not ready',
    cure: 'find the program: the message has the change as its `ip`, `nft` or `sysctl` line',
  },
  PodCIDRFull: {
    type: 'Warning',
    cause:
      'every address of the podCIDR is in use: the ADD of a GlobalRoute Pod failed. Reported once, until an ADD finds an address again',
    cure: "lower the kubelet's `maxPods`, or register the node again with a larger block",
  },
  PodCIDRRefused: {
    type: 'Warning',
    cause:
      'the podCIDR of the node overlaps a subnet of the VPC, `--vpc-cidr` or the range of Services: no new Pod gets an address of it, those that have one keep it',
    cure: 'keep podCIDRs outside of these networks (`--cluster-cidr`, `--service-cluster-ip-range` of ipamd), then drain the node, delete its Node and let it register again',
  },
  PodCIDRChanged: {
    type: 'Warning',
    cause: 'the Node object has another podCIDR than before: it was deleted and registered again',
    cure: 'replace the Pods that keep addresses of the former one: other nodes may not reach them',
  },
  OfferForeign: {
    type: 'Warning',
    cause: '`spec.releasableIPs` names addresses that this agent did not offer: it was edited by hand, or restored',
    cure: 'none: they are not used until the agent has removed them from the list',
  },
  AddressTakenOver: {
    type: 'Warning',
    cause:
      'a kept address went to the next Pod of its name on another node while a sandbox here still had it; its routes here are removed',
    cure: 'none: the old sandbox has no network any more; delete its Pod if it does not go by itself',
  },
  RegisteredTooLong: {
    type: 'Warning',
    cause:
      'an address had no Pod for `--load-balancer-wait` and is still published as a target of a load balancer (`loadBalancers.registeredIPs` of the NodeENIConfig): other Pods may get it from now on',
    cure: 'see why tke-cloud-controller-manager does not deregister it (does it run? events of the Service). Where none runs any more: `kubectl patch nec NODE --type=merge -p \'{"loadBalancers":null}\'`, after the load balancers have no such targets',
  },
  Forbidden: {
    type: 'Warning',
    cause: 'the API server denies the agent a request; the message names the right',
    cure: 'grant it to the ClusterRole `tke-eni-agent`',
  },
  ExecutablesDoNotRun: {
    type: 'Warning',
    cause:
      'the host lacks a library that the CNI executables need; the message names it. No network configuration is installed',
    cure: 'install it ([images.md](../images.md#what-the-node-needs-for-the-cni-executables) has the versions); it is tried again every 5 s',
  },
  FastPathOff: {
    type: 'Warning',
    cause: '`--fast-path` cannot be met on this node; the message has the reason. Packets take the way of the kernel',
    cure: 'load the module, or update the kernel, that the message names; or set `--fast-path=off`. It is tried at the next start of the agent',
  },
  FastPathChanged: {
    type: 'Normal',
    cause:
      'the fast path is another one than before this start of the agent, by `--fast-path` or by what the kernel can do',
    cure: 'none',
  },
  ChainedPluginMissing: {
    type: 'Warning',
    cause:
      'a plugin of `--chained-plugins` is not in `--cni-bin-dir`; no network configuration is written before it is, and one of before stays',
    cure: 'install it: cilium-cni comes with the Pod of Cilium, whose log says why it does not; or take it out of the flag. The agent looks each second',
  },
  DevicePlugin: {
    type: 'Warning',
    cause: 'the resource could not be registered with kubelet; Pods that ask for it stay Pending',
    cure: 'look at kubelet and at the mount of `/var/lib/kubelet/device-plugins`; it is tried again',
  },
} as const satisfies Readonly<Record<string, EventReason>>;

/** The reason of an event of the agent. */
export type NodeEventReason = keyof typeof NODE_EVENTS;
