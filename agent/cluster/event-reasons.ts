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
    cause: 'annotations of the NodeENIConfig are malformed, half given, or below what is in use; the others hold',
    cure: 'mend it; [annotations.md](annotations.md) has the forms',
  },
  ObjectInvalid: {
    type: 'Warning',
    cause: 'fields of the NodeENIConfig cannot be read; what is in force stays',
    cure: 'correct the spec; ipamd repairs the status',
  },
  SupplyDistrusted: {
    type: 'Warning',
    cause: 'the supply epoch is lower than one seen before (a restored etcd, a stale cache)',
    cure: 'none: ipamd describes the cloud anew and raises the epoch; look at ipamd if it stays',
  },
  RuleMode: {
    type: 'Normal',
    cause: 'policy rules are laid out in another mode than before; the message says why',
    cure: 'if per-pod was not asked for: install nftables, or see that cilium-cni is chained',
  },
  RepairFight: {
    type: 'Warning',
    cause: 'somebody keeps undoing a change of the agent, which leaves it alone for a minute',
    cure: 'find who: the message has the change as its `ip`, `nft` or `sysctl` line',
  },
  OfferForeign: {
    type: 'Warning',
    cause: '`spec.releasableIPs` names addresses that this agent did not offer: a person, or a restore',
    cure: "none: they are out of use until the agent's write took them out",
  },
  AddressTakenOver: {
    type: 'Warning',
    cause:
      'a kept address went to the next Pod of its name on another node while a sandbox here still had it; its routes here are taken away',
    cure: 'none: the old sandbox has no network any more; delete its Pod if it does not go by itself',
  },
  Forbidden: {
    type: 'Warning',
    cause: 'the API server denies the agent a request; the message names the right',
    cure: 'grant it to the ClusterRole `tke-eni-agent`',
  },
  ExecutablesDoNotRun: {
    type: 'Warning',
    cause:
      'the host lacks a library that the CNI executables need; the message names it. No network configuration is put there',
    cure: 'install it ([images.md](../images.md#what-the-node-needs-for-the-cni-executables) has the versions); it is tried again every 5 s',
  },
  DevicePlugin: {
    type: 'Warning',
    cause: 'the resource could not be registered with kubelet; Pods that ask for it stay Pending',
    cure: 'look at kubelet and at the mount of `/var/lib/kubelet/device-plugins`; it is tried again',
  },
} as const satisfies Readonly<Record<string, EventReason>>;

/** The reason of an event of the agent. */
export type NodeEventReason = keyof typeof NODE_EVENTS;
