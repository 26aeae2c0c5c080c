import { AGENT_LIFE_ANNOTATION } from '../agent/supply/seen-nec.ts';
import {
  API_GROUP,
  APPLIED_POLICY_ANNOTATION,
  CLAIM_EXPIRED_DURATION_ANNOTATION,
  CLOUD_FINALIZER,
  ENI_IP_CONDITION,
  ENI_IP_TAINT,
  EXTENDED_RESOURCES,
  NODE_ANNOTATION,
  NODE_ENI_CONFIG_ANNOTATION,
  NODE_INSTANCE_LABEL,
  NODE_NAME_LABEL,
  NODE_SUBNETS_LABEL,
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
  directMinWarm: { form: WARM_MIN, readBy: 'ipamd', effect: 'checked; nothing acts on it yet', otherwise: '' },
  directMaxWarm: { form: WARM_MAX, readBy: 'ipamd', effect: 'checked; nothing acts on it yet', otherwise: '' },
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
    form: '0 to 64 in quotes',
    readBy: 'ipamd',
    effect: 'checked; nothing acts on it yet',
    otherwise: '',
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
    effect: '`"yes"`: its new ENIs are made without naming security groups, those of others are left alone',
    otherwise: '`"no"`: as `--enable-security-groups` says',
  },
  syncSecurityGroups: {
    form: '`"true"`',
    readBy: 'ipamd, which takes it off when it is done',
    effect: 'its ENIs get their security groups anew, once',
    otherwise: 'groups are set when they differ',
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
    AGENT_LIFE_ANNOTATION,
    'annotation of a NodeENIConfig',
    "names the agent's journal: what it wrote before a loss is over",
  ],
  [
    CLOUD_FINALIZER,
    'finalizer of a NodeENIConfig',
    'until the cloud has everything back; see [uninstall.md](../uninstall.md)',
  ],
  [NODE_NAME_LABEL, 'label of a VpcIP', 'the node that it is on'],
  [`${API_GROUP}/schema`, 'annotation of our definitions', 'number of the schema; ipamd leaves a higher one alone'],
  [ENI_IP_CONDITION, 'condition of a Node', 'whether it has addresses to give; with `--enable-node-condition`'],
];

/** Renders `docs/reference/annotations.md`. Pure. */
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
    '| name | form | effect |',
    '|---|---|---|',
    '| annotation `tke.cloud.tencent.com/networks` | `tke-route-eni` | says that the Pod is for shared ENIs; where tke-eni is the only network every Pod without host network is |',
    ...EXTENDED_RESOURCES.map((name) => `| resource \`${name}\` | ${resourceOf(name)} |`),
    `| annotation \`${CLAIM_EXPIRED_DURATION_ANNOTATION}\` | a Go duration, \`5m\` | of static addresses; nothing acts on it yet |`,
    '',
    '## Taint',
    '',
    `\`${ENI_IP_TAINT.key}=${ENI_IP_TAINT.value}:${ENI_IP_TAINT.effect}\` keeps Pods off a node until its agent serves. ipamd takes it off`,
    'when the agent says so; it puts one on with `--enable-node-taint`. A node group may be made with it.',
    '',
    '## Ours: do not edit',
    '',
    '| name | is | says |',
    '|---|---|---|',
    ...OWN.map(([name, object, what]) => `| \`${name}\` | ${object} | ${what} |`),
    '',
  ].join('\n');
}

function resourceOf(name: string): string {
  return name.endsWith('/eni-ip')
    ? '`1` in requests and limits | the Pod is only put on a node that has an address for it; `tke-eni-agent` tells kubelet how many'
    : '`1` | an exclusive ENI; nothing serves it yet';
}

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
