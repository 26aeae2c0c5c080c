import {
  AGENT_LIFE_ANNOTATION,
  AGENT_REFUSED_CONDITION,
  ALLOW_RELEASE_ANNOTATION,
  API_GROUP,
  APPLIED_POLICY_ANNOTATION,
  BACKEND_GATE_LABEL,
  BACKEND_READY_GATE,
  CLOUD_FINALIZER,
  CLUSTER_VPC_ANNOTATION,
  DIRECT_ENI_CONDITION,
  DIRECT_ENI_TAINT,
  EIP_SRC_CIDRS_ANNOTATION,
  ENI_IP_CONDITION,
  ENI_IP_TAINT,
  ENI_ZONE_LABEL,
  EXTENDED_RESOURCES,
  NODE_ANNOTATION,
  NODE_CILIUM_IPAM_LABEL,
  NODE_DIRECT_ENI_LABEL,
  NODE_ENI_CONFIG_ANNOTATION,
  NODE_INSTANCE_LABEL,
  NODE_NAME_LABEL,
  NODE_SEEN_INSTANCE_ANNOTATION,
  NODE_STATIC_IP_LABEL,
  NODE_SUBNETS_LABEL,
  POD_ANNOTATION,
  RELEASE_BEGUN_ANNOTATION,
  RELEASES_ANNOTATION,
  SERVICE_ANNOTATION,
} from '../crd/names.ts';

/** What people must know of one name. */
type Described = {
  readonly form: string;
  readonly readBy: string;
  readonly effect: string;
  readonly otherwise: string;
};

const WARM_MIN = 'a whole number in quotes, at most the maximum; both of the pair or neither';
const WARM_MAX = 'a whole number in quotes, at least the minimum; both of the pair or neither';

/** A name of `crd/names.ts` without an entry does not compile. */
const OF_NEC: Readonly<Record<keyof typeof NODE_ENI_CONFIG_ANNOTATION, Described>> = {
  routeMinWarm: {
    form: WARM_MIN,
    readBy: 'agent, ipamd',
    effect: 'spare addresses of the node below which more are asked for',
    otherwise: '`spec.routeENIIPMinWarmTarget`, made of `--ip-min-warm-target`',
  },
  routeMaxWarm: {
    form: WARM_MAX,
    readBy: 'agent, ipamd',
    effect: 'spare addresses of the node above which some are given back',
    otherwise: '`spec.routeENIIPMaxWarmTarget`, made of `--ip-max-warm-target`',
  },
  directMinWarm: {
    form: WARM_MIN,
    readBy: 'agent, ipamd',
    effect: 'spare exclusive ENIs of the node below which more are asked for',
    otherwise: '`spec.directENIMinWarmTarget`, made of `--eni-min-warm-target`',
  },
  directMaxWarm: {
    form: WARM_MAX,
    readBy: 'agent, ipamd',
    effect: 'spare exclusive ENIs of the node above which some are given back',
    otherwise: '`spec.directENIMaxWarmTarget`, made of `--eni-max-warm-target`',
  },
  routeMaxAttach: {
    form: '0 to 64 in quotes, not below the shared ENIs in use',
    readBy: 'ipamd',
    effect: 'most shared ENIs on the node; a lower one drains the emptiest',
    otherwise: 'what the instance may have, `spec.maxRouteENI`',
  },
  maxIpPerEni: {
    form: '0 to 4096 in quotes, not below the fullest ENI in use',
    readBy: 'ipamd',
    effect: 'most Pod addresses on one shared ENI',
    otherwise: 'what the instance may have, `spec.maxIPPerENI`',
  },
  directMaxAttach: {
    form: '0 to 64 in quotes, not below the exclusive ENIs in use',
    readBy: 'agent, ipamd',
    effect: 'most exclusive ENIs on the node, kept ones included',
    otherwise: 'what the instance may have, `spec.maxDirectENI`; without one the node serves none',
  },
};

const OF_NODE: Readonly<Record<keyof typeof NODE_ANNOTATION, Described>> = {
  desiredPodNum: {
    form: 'a whole number in quotes',
    readBy: 'ipamd',
    effect: 'never fewer addresses than this are kept bound',
    otherwise: '0',
  },
  disableEni: {
    form: '`"true"` or `"false"`',
    readBy: 'ipamd',
    effect: '`"true"`: its ENIs are drained and taken off, it gets no new ones',
    otherwise: '`"false"`: it gets them',
  },
  disableSecurityGroups: {
    form: '`"yes"` or `"no"`',
    readBy: 'ipamd',
    effect: '`"yes"`: its ENIs lose all security groups, those that are there and new ones',
    otherwise:
      '`"no"`: as `spec.securityGroups` and `--enable-security-groups` say; where neither says anything, each ENI gets back what it lost',
  },
  syncSecurityGroups: {
    form: '`"true"`',
    readBy: 'ipamd, which takes it off when it is done',
    effect: 'its ENIs get their security groups again, once',
    otherwise: 'groups are set when they differ',
  },
  podCidrBy: {
    form: '`"tke-eni-ipamd"`',
    readBy: 'ipamd, which writes it together with `spec.podCIDR`',
    effect: 'the podCIDR is of ipamd',
    otherwise:
      'the podCIDR is of another writer: its block is in use, and on a new Node it is the sign of a second allocator',
  },
};

const OF_POD: Readonly<Record<keyof typeof POD_ANNOTATION, Described>> = {
  preStopSleep: {
    form: 'whole seconds as a Go duration, from `1s` to `5m`',
    readBy: 'webhook, with `--pre-stop-sleep`',
    effect:
      'each container without a preStop hook serves on for so long before it gets SIGTERM, and the grace period is as much longer',
    otherwise: 'no hook is added',
  },
  networks: {
    form: '`tke-route-eni`, `tke-direct-eni` or `tke-bridge`, alone, as `namespace/name@eth0`, or as a JSON list with one entry',
    readBy: 'webhook, agent, ipamd',
    effect: 'an address of a shared ENI, an ENI of its own, or neither; a list of several is refused',
    otherwise: "the webhook's `--default-network`; where tke-eni is the only network, an address of a shared ENI",
  },
  deletePolicy: {
    form: '`Never` or `Immediate`; another word counts as `Never`',
    readBy: 'agent, ipamd, scheduler',
    effect: '`Never`: the address, or the exclusive ENI, is kept for the next Pod of the same name',
    otherwise: 'what the webhook writes for a StaticIPConfig that selects the Pod; else `Immediate`',
  },
  claimExpiredDuration: {
    form: 'a Go duration of at least `5m`; `0s` is forever',
    readBy: 'ipamd',
    effect: 'how long the kept address, ENI or EIP waits for its Pod; on a VpcIP it goes before all others',
    otherwise: 'the StaticIPConfig that selects the Pod; `--claim-expired-duration`',
  },
  nominatedVpcIp: {
    form: 'an address',
    readBy: 'ipamd, scheduler',
    effect: 'the Pod gets this address and no other; with `Never`',
    otherwise: 'any that is free',
  },
  nominatedSubnets: {
    form: '`subnet-…`, several with commas',
    readBy: 'ipamd, scheduler',
    effect: 'the only subnets that its address, or its ENI, is of',
    otherwise: "the StaticIPConfig that selects the Pod; the node's",
  },
  eipAttributes: {
    form: 'JSON with `InternetMaxBandwidthOut`, `InternetServiceProvider`, `InternetChargeType`, `BandwidthPackageId` and nothing else; empty: the defaults',
    readBy: 'webhook, ipamd',
    effect: 'an EIP is made and bound to the address of the Pod',
    otherwise: 'none',
  },
  eipDeletePolicy: {
    form: '`Never` or `Immediate`',
    readBy: 'ipamd',
    effect: '`Never`: the EIP is kept for the next Pod of the same name',
    otherwise: '`Immediate`: unbound with the Pod, and released if ipamd made it',
  },
  eipIdList: {
    form: '`eip-…`, several with commas',
    readBy: 'webhook, ipamd',
    effect: "an EIP of yours is bound: the one at the place that the ordinal of the Pod's name names",
    otherwise: 'none',
  },
  eipPublicIp: { form: 'an address', readBy: 'people', effect: 'the bound EIP; ipamd writes it', otherwise: '' },
  securityGroups: {
    form: '`sg-…`, several with commas, the first has precedence',
    readBy: 'ipamd',
    effect: 'security groups of its exclusive ENI, set before the Pod has it',
    otherwise: "those of the node's ENIs",
  },
  vpcIpAllocation: {
    form: 'JSON with `ip`, `subnetID`, `claim` (`namespace/name`) and `uid`',
    readBy: 'a virtual kubelet',
    effect: 'the reserved address of a Pod on a super node, for the Pod with this uid alone; ipamd writes it',
    otherwise: 'the Pod has no kept address yet',
  },
};

type Row = readonly [name: string, described: Described];

const LABELS: readonly Row[] = [
  [
    NODE_SUBNETS_LABEL,
    {
      form: 'subnet ids joined by `_` or `.`',
      readBy: 'ipamd',
      effect: 'subnets of its shared ENIs',
      otherwise: 'those of the ConfigMap',
    },
  ],
  [
    NODE_STATIC_IP_LABEL,
    {
      form: '`true` or `false`',
      readBy: 'ipamd',
      effect: 'whether Pods of the node may keep their addresses',
      otherwise: '`--enable-static-ip`',
    },
  ],
  [
    NODE_CILIUM_IPAM_LABEL,
    {
      form: '`crd`',
      readBy: 'ipamd',
      effect: 'ipamd keeps the pool of the CiliumNode of the same name; its agent is to run with `--role=uplinks`',
      otherwise: 'no CiliumNode is written',
    },
  ],
  [
    NODE_DIRECT_ENI_LABEL,
    {
      form: '`true` or `false`',
      readBy: 'ipamd',
      effect: 'whether the node serves exclusive ENIs',
      otherwise: '`--enable-direct-eni`',
    },
  ],
  [
    NODE_INSTANCE_LABEL,
    {
      form: '`ins-…`',
      readBy: 'ipamd',
      effect: 'its instance, where `spec.providerID` names none',
      otherwise: '`spec.providerID`; a Machine of the node',
    },
  ],
  [
    'node.kubernetes.io/instance-type',
    { form: '`eklet`', readBy: 'ipamd', effect: 'a super node: it gets no ENI', otherwise: 'an instance' },
  ],
];

const OWN: readonly (readonly [name: string, object: string, what: string])[] = [
  [
    APPLIED_POLICY_ANNOTATION,
    'annotation of a NodeENIConfig',
    'what ipamd last wrote into the policy fields of the spec',
  ],
  [
    RELEASE_BEGUN_ANNOTATION,
    'annotation of a NodeENIConfig',
    'since when ipamd releases what a missing node has; counted by `--node-release-percent`',
  ],
  [
    ALLOW_RELEASE_ANNOTATION,
    'annotation of a NodeENIConfig',
    '`true`, written by a person: the missing node is gone, release what it has. ipamd removes it from a node that is there',
  ],
  [
    AGENT_LIFE_ANNOTATION,
    'annotation of a NodeENIConfig',
    "names the agent's journal: what it wrote before a loss is over",
  ],
  [
    CLOUD_FINALIZER,
    'finalizer of a NodeENIConfig',
    'until the cloud has everything back; see [uninstall.md](../uninstall.md)',
  ],
  [
    EIP_SRC_CIDRS_ANNOTATION,
    'annotation of ConfigMap ip-masq-agent-config',
    "which entries of NonMasqueradeSrcCIDRs are ipamd's",
  ],
  [
    NODE_SEEN_INSTANCE_ANNOTATION,
    'annotation of a Node',
    'VPC/INSTANCE, once the cloud has described it; without it the cloud controller manager deletes no Node whose instance it has not described itself',
  ],
  [
    RELEASES_ANNOTATION,
    'annotation of the lock of ipamd or of the cloud controller manager',
    'how many releases or deletions of nodes began, by the end of slots of five minutes; counted by `--node-release-percent`. A person who removes it while the replicas are scaled to 0 lets them count again',
  ],
  [
    CLUSTER_VPC_ANNOTATION,
    'annotation of the lock of the cloud controller manager',
    'the VPC that was found without `--vpc-id`; it stays while an instance of a Node is in it, also for the next leader',
  ],
  [SERVICE_ANNOTATION.address, 'annotation of a Service', 'the address or the domain of its load balancer'],
  [
    SERVICE_ANNOTATION.record,
    'annotation of a Service',
    'which load balancer was made for it, as JSON; written before it is made',
  ],
  [NODE_NAME_LABEL, 'label of a VpcIP or VpcENI', 'the node that it is on'],
  [ENI_ZONE_LABEL, 'label of a VpcENI', 'the zone of its subnet'],
  [`${API_GROUP}/schema`, 'annotation of our definitions', 'number of the schema; ipamd leaves a higher one alone'],
  [
    `${API_GROUP}/installed-again`,
    'annotation of our definitions',
    'when a lost definition was installed again; for an hour a missing object ends nothing',
  ],
  [ENI_IP_CONDITION, 'condition of a Node', 'whether it has addresses to give; with `--enable-node-condition`'],
  [
    DIRECT_ENI_CONDITION,
    'condition of a Node',
    'whether a node that is to serve exclusive ENIs serves none; with `--enable-node-condition`. Other nodes do not have it',
  ],
  [
    AGENT_REFUSED_CONDITION,
    'condition of a Node',
    'whether the API server refuses its agent what Pods need, or has not answered that well for half a minute, and the sentence of the API server; reason: the call, with `Fails` where it is not refused; a node whose agent was never refused anything has none',
  ],
];

/** Renders `docs/reference/annotations.md`. */
export function renderNameDocs(): string {
  return [
    '<!-- Written by `make gen` from tools/name-docs.ts, whose names are those of crd/names.ts. -->',
    '# Annotations, labels, taints, resources',
    '',
    'All take effect at once, without a restart. One that is malformed is ignored and named in an event',
    '(`AnnotationInvalid`); the others hold.',
    '',
    '## Of a NodeENIConfig, for one node',
    '',
    `\`kubectl annotate nec NODE ${NODE_ENI_CONFIG_ANNOTATION.routeMinWarm}=3 ${NODE_ENI_CONFIG_ANNOTATION.routeMaxWarm}=6\``,
    '',
    ...table(entriesOf(NODE_ENI_CONFIG_ANNOTATION, OF_NEC)),
    '',
    '## Of a Node: annotations',
    '',
    ...table(entriesOf(NODE_ANNOTATION, OF_NODE)),
    '',
    '## Of a Node: labels',
    '',
    ...table(LABELS),
    '',
    '## Of a Pod',
    '',
    'Annotations; [static-ip.md](../static-ip.md) says what to do with them. The client that creates a Pod gets a warning about a malformed one,',
    'where the webhook runs.',
    '',
    ...table(entriesOf(POD_ANNOTATION, OF_POD)),
    '',
    '| resource | form | effect |',
    '|---|---|---|',
    ...EXTENDED_RESOURCES.map((name) => `| \`${name}\` | ${resourceOf(name)} |`),
    '',
    '## Of a Service, and of a Node as its backend',
    '',
    '[service-annotations.md](service-annotations.md).',
    '',
    '## Of a namespace',
    '',
    'Label `not-add-pod-eni-ip-limit`, whatever its value: the webhook requests no addresses for its Pods.',
    '',
    `Label \`${BACKEND_GATE_LABEL}: disabled\`, of a namespace or a Pod: no readiness gate \`${BACKEND_READY_GATE}\` and no preStop sleep.`,
    '',
    '## Taints',
    '',
    `\`${ENI_IP_TAINT.key}=${ENI_IP_TAINT.value}:${ENI_IP_TAINT.effect}\` keeps Pods off a node until its agent serves. ipamd takes it off`,
    'when the agent says so; it puts one on with `--enable-node-taint`. A node group may be made with it.',
    '',
    `\`${DIRECT_ENI_TAINT.key}=${DIRECT_ENI_TAINT.value}:${DIRECT_ENI_TAINT.effect}\` does the same on a node that serves exclusive ENIs.`,
    '',
    '## Ours: do not edit',
    '',
    '| name | is | says |',
    '|---|---|---|',
    ...OWN.map(([name, object, what]) => `| \`${name}\` | ${object} | ${what} |`),
    '',
  ].join('\n');
}

function resourceOf(name: (typeof EXTENDED_RESOURCES)[number]): string {
  const what = RESOURCES[name.split('/')[1] ?? ''] ?? '';
  return `\`1\` in requests and limits | the Pod is only put on a node that has ${what} for it; \`tke-eni-agent\` reports the number to kubelet`;
}

const RESOURCES: Readonly<Record<string, string>> = {
  'eni-ip': 'an address of a shared ENI',
  'direct-eni': 'an ENI',
  eip: 'a free place for an EIP',
};

function entriesOf(
  names: Readonly<Record<string, string>>,
  described: Readonly<Record<string, Described>>,
): readonly Row[] {
  return Object.entries(described).map(([key, about]) => [names[key] ?? key, about]);
}

function table(rows: readonly Row[]): readonly string[] {
  return [
    '| name | form | read by | effect | without it |',
    '|---|---|---|---|---|',
    ...rows.map(
      ([name, { form, readBy, effect, otherwise }]) =>
        `| \`${name}\` | ${form} | ${readBy} | ${effect} | ${otherwise} |`,
    ),
  ];
}
