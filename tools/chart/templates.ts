import { parseDocument } from 'yaml';

/** A part of another manifest: the map at `path` of a file. */
type Part = { readonly file: string; readonly path: readonly (string | number)[] };

/** One change that makes a manifest a template: a text that stands in it, and what comes instead; PART in that is the part, as it is indented there. */
type Change = readonly [text: string, instead: string, part?: Part];

/** A template of the chart, made of a manifest. */
type Template = {
  readonly from: string;
  readonly to: string;
  readonly changes: readonly Change[];
  /** Value that switches all of it on. */
  readonly when?: string;
};

const NAMESPACE: Change = ['kube-system', '{{ .Release.Namespace }}'];

const LEAST_PRIVILEGE = 'conf/kubernetes/components/agent-least-privilege/daemonset.yaml';
const PART = /^( *)PART\n/m;

/** Components by their values, and how their images are called. */
const IMAGE_OF = {
  agent: 'tke-eni-agent',
  ipamd: 'tke-eni-ipamd',
  scheduler: 'tke-eni-ip-scheduler',
  webhook: 'tke-eni-ip-webhook',
  cloudControllerManager: 'tke-cloud-controller-manager',
} as const;
type Component = keyof typeof IMAGE_OF;

/** What every workload gets from values. */
function workload(component: Component, settings: string, resources: string): readonly Change[] {
  const name = IMAGE_OF[component];
  return [
    [
      `                name: ${name}-settings\n`,
      `                name: {{ include "tke-eni.settings-name" (list "${name}" (${settings})) }}\n`,
    ],
    [
      `      serviceAccountName: ${name}\n`,
      `      serviceAccountName: ${name}\n      {{- with .Values.image.pullSecrets }}\n      imagePullSecrets:\n        {{- range . }}\n        - name: {{ . }}\n        {{- end }}\n      {{- end }}\n`,
    ],
    [`image: ${name}\n`, `image: {{ include "tke-eni.image" (list . "${name}") }}\n`],
    ['imagePullPolicy: IfNotPresent', 'imagePullPolicy: {{ .Values.image.pullPolicy }}'],
    [resources, `            {{- toYaml .Values.${component}.resources | nindent 12 }}\n`],
  ];
}

/** What every DaemonSet of agents gets from values. */
const OF_AGENTS: readonly Change[] = [
  ['maxUnavailable: 10%', 'maxUnavailable: {{ .Values.agent.maxUnavailable }}'],
  [
    '            - --metrics-address=127.0.0.1:61680\n',
    '            - --metrics-address={{ include "tke-eni.agent-metrics-address" . }}\n',
  ],
  [
    '          securityContext:\n',
    '          {{- if .Values.monitoring.enabled }}\n          ports:\n            - name: metrics\n              containerPort: 61680\n              protocol: TCP\n          {{- end }}\n          securityContext:\n',
  ],
  ...workload(
    'agent',
    'include "tke-eni.agent-settings" .',
    '            requests:\n              cpu: 50m\n              memory: 128Mi\n            limits:\n              memory: 320Mi\n',
  ),
];

/** The text of the settings of a component, whose hash is in the name of their ConfigMap. */
const SETTINGS_OF: Readonly<Record<'scheduler' | 'webhook', string>> = {
  scheduler: 'include "tke-eni.scheduler-settings" .',
  webhook: 'include "tke-eni.webhook-settings" .',
};

type Resources = {
  readonly requests: { readonly cpu: string; readonly memory: string };
  readonly limits: { readonly memory: string };
};

/** A Deployment that values switch on, and what belongs to it. */
function optionalComponent(
  component: 'scheduler' | 'webhook',
  parts: readonly string[],
  { requests, limits }: Resources,
  changes: readonly Change[] = [],
): readonly Template[] {
  const from = (part: string): string => `conf/kubernetes/${component}/${part}.yaml`;
  const when = `.Values.${component}.enabled`;
  const quantities = `            requests:\n              cpu: ${requests.cpu}\n              memory: ${requests.memory}\n            limits:\n              memory: ${limits.memory}\n`;
  return [
    ...parts.map((part) => ({ from: from(part), to: `${component}-${part}.yaml`, changes: [NAMESPACE], when })),
    {
      from: from('deployment'),
      to: `${component}-deployment.yaml`,
      changes: [
        NAMESPACE,
        [`secretName: ${IMAGE_OF[component]}-tls`, `secretName: {{ .Values.${component}.tlsSecret }}`],
        ...workload(component, SETTINGS_OF[component], quantities),
        ...changes,
      ],
      when,
    },
  ];
}

/** Whether a component makes its certificates: a call of a helper. */
const MAKES_CERTIFICATES = {
  webhook: 'include "tke-eni.webhook-makes-certificates" .',
  scheduler: 'include "tke-eni.scheduler-makes-certificates" .',
} as const;
const CA_BUNDLE = '      {{- with .Values.webhook.caBundle }}\n      caBundle: {{ . | b64enc }}\n      {{- end }}\n';
/** The first and last lines of what a Deployment has for certificates in files. */
const FILES = [
  ['      volumes:\n', '            defaultMode: 288\n'],
  ['          volumeMounts:\n', '              readOnly: true\n'],
] as const;

/** What a component has only with certificates in files, and the text that it has only with its own, after `after`. */
function ofCertificates(component: 'scheduler' | 'webhook', after: string, own: string): readonly Change[] {
  const makes = MAKES_CERTIFICATES[component];
  const indent = '            ';
  return [
    ...FILES.flatMap(([first, last]): readonly Change[] => {
      const depth = first.slice(0, first.search(/\S/));
      return [
        [first, `${depth}{{- if not (${makes}) }}\n${first}`],
        [last, `${last}${depth}{{- end }}\n`],
      ];
    }),
    [after, `${after}${indent}{{- if ${makes} }}\n${own}${indent}{{- end }}\n`],
  ];
}

/** The objects of a component that makes its certificates. */
function certificateObjects(component: 'scheduler' | 'webhook'): readonly Template[] {
  return ['secret', 'rbac'].map((part) => ({
    from: `conf/kubernetes/components/${component}-certificates/${part}.yaml`,
    to: `${component}-certificates-${part}.yaml`,
    changes: [NAMESPACE],
    when: MAKES_CERTIFICATES[component],
  }));
}

const GATE = 'conf/kubernetes/components/load-balancer-gate';
const GATE_ON = 'include "tke-eni.load-balancer-gate" .';
/** The end of the webhook's configuration, after which the chart has the entry of load balancers. */
const END_OF_RULES = '        scope: Namespaced\n';

const CCM = 'conf/kubernetes/cloud-controller-manager';
const CCM_ENABLED = '.Values.cloudControllerManager.enabled';

/** All templates that are made of manifests: the chart then cannot say something else than they do. */
export const TEMPLATES: readonly Template[] = [
  { from: 'conf/kubernetes/rbac/tke-eni-agent.yaml', to: 'agent-rbac.yaml', changes: [NAMESPACE] },
  { from: 'conf/kubernetes/rbac/tke-eni-ipamd.yaml', to: 'ipamd-rbac.yaml', changes: [NAMESPACE] },
  {
    from: 'conf/kubernetes/ipamd/pod-disruption-budget.yaml',
    to: 'ipamd-pod-disruption-budget.yaml',
    changes: [NAMESPACE],
  },
  { from: 'conf/kubernetes/ipamd/service.yaml', to: 'ipamd-service.yaml', changes: [NAMESPACE] },
  {
    from: 'conf/kubernetes/ipamd/configmap.yaml',
    to: 'ipamd-configmap.yaml',
    changes: [
      NAMESPACE,
      ['TKE_ENI_IPAMD_SUBNET_ID: ""', 'TKE_ENI_IPAMD_SUBNET_ID: {{ join ":" .Values.subnets | quote }}'],
      ['TKE_ENI_IPAMD_VPC_ID: ""', 'TKE_ENI_IPAMD_VPC_ID: {{ .Values.vpcId | quote }}'],
    ],
  },
  {
    from: 'conf/kubernetes/ipamd/deployment.yaml',
    to: 'ipamd-deployment.yaml',
    changes: [
      NAMESPACE,
      ['  replicas: 2\n', '  replicas: {{ .Values.ipamd.replicas }}\n'],
      ['name: tke-eni-ipamd-credentials', 'name: {{ .Values.credentialsSecret }}'],
      ...workload(
        'ipamd',
        'include "tke-eni.ipamd-settings" .',
        '            requests:\n              cpu: 100m\n              memory: 160Mi\n            limits:\n              memory: 512Mi\n',
      ),
    ],
  },
  {
    from: 'conf/kubernetes/agent/daemonset.yaml',
    to: 'agent-daemonset.yaml',
    changes: [
      NAMESPACE,
      ...OF_AGENTS,
      [
        '            - --supply-source=cluster\n',
        '            - --supply-source={{ if .Values.agent.ciliumNode }}cilium-node{{ else }}cluster{{ end }}\n',
      ],
      [
        '                    values: [eklet]\n',
        '                    values: [eklet]\n                  {{- if .Values.agent.uplinksOnCiliumNodes }}\n                  - key: tke.cloud.tencent.com/cilium-ipam\n                    operator: NotIn\n                    values: [crd]\n                  {{- end }}\n',
      ],
      [
        '      containers:\n',
        '      {{- if include "tke-eni.is-on" (list . .Values.agent.leastPrivilege) }}\n      securityContext:\n        PART\n      {{- end }}\n      containers:\n',
        { file: LEAST_PRIVILEGE, path: ['spec', 'template', 'spec', 'securityContext'] },
      ],
      [
        '            privileged: true\n',
        '            {{- if include "tke-eni.is-on" (list . .Values.agent.leastPrivilege) }}\n            PART\n            {{- else }}\n            privileged: true\n            {{- end }}\n',
        { file: LEAST_PRIVILEGE, path: ['spec', 'template', 'spec', 'containers', 0, 'securityContext'] },
      ],
    ],
  },
  {
    from: 'conf/kubernetes/components/agent-uplinks/daemonset.yaml',
    to: 'agent-uplinks-daemonset.yaml',
    changes: [NAMESPACE, ...OF_AGENTS],
    when: '.Values.agent.uplinksOnCiliumNodes',
  },
  {
    from: 'conf/kubernetes/components/agent-own-node-only/policy.yaml',
    to: 'agent-own-node-only.yaml',
    changes: [NAMESPACE],
    when: 'include "tke-eni.is-on" (list . .Values.agent.ownNodeOnly)',
  },
  {
    from: 'conf/kubernetes/components/only-ipamd-writes-status/policy.yaml',
    to: 'only-ipamd-writes-status.yaml',
    changes: [NAMESPACE],
    when: 'include "tke-eni.is-on" (list . .Values.ipamd.onlyWriterOfStatus)',
  },
  {
    from: 'conf/kubernetes/components/agent-cilium-node/rbac.yaml',
    to: 'agent-cilium-node.yaml',
    changes: [NAMESPACE],
    when: '.Values.agent.ciliumNode',
  },
  ...optionalComponent(
    'scheduler',
    ['rbac', 'pod-disruption-budget'],
    { requests: { cpu: '100m', memory: '160Mi' }, limits: { memory: '1Gi' } },
    ofCertificates(
      'scheduler',
      '                  fieldPath: metadata.name\n',
      '            - name: TKE_ENI_TLS_SECRET\n              value: tke-eni-ip-scheduler-certificates\n',
    ),
  ),
  ...certificateObjects('scheduler'),
  {
    from: 'conf/kubernetes/scheduler/service.yaml',
    to: 'scheduler-service.yaml',
    changes: [
      NAMESPACE,
      ['spec:\n', 'spec:\n  {{- with .Values.scheduler.clusterIP }}\n  clusterIP: {{ . | quote }}\n  {{- end }}\n'],
      ['apiVersion: v1\n', '{{- include "tke-eni.refuse-other-scheduler-certificates" . }}\napiVersion: v1\n'],
    ],
    when: '.Values.scheduler.enabled',
  },
  ...optionalComponent(
    'webhook',
    ['rbac', 'service', 'pod-disruption-budget'],
    { requests: { cpu: '20m', memory: '96Mi' }, limits: { memory: '256Mi' } },
    ofCertificates(
      'webhook',
      '            - --metrics-address=0.0.0.0:61693\n',
      '            - --tls-secret=tke-eni-ip-webhook-certificates\n',
    ),
  ),
  ...certificateObjects('webhook'),
  {
    from: 'conf/kubernetes/webhook/mutating-webhook-configuration.yaml',
    to: 'webhook-configuration.yaml',
    changes: [
      // Before the others, which hold for both entries.
      [
        END_OF_RULES,
        `${END_OF_RULES}  {{- if ${GATE_ON} }}\n  PART\n  {{- end }}\n`,
        { file: `${GATE}/mutating-webhook-configuration.yaml`, path: ['webhooks'] },
      ],
      ['    clientConfig:\n      service:\n', `    clientConfig:\n${CA_BUNDLE}      service:\n`],
      NAMESPACE,
      ['values: [{{ .Release.Namespace }}]', 'values: {{ include "tke-eni.system-namespaces" . }}'],
      ['failurePolicy: Fail', 'failurePolicy: {{ .Values.webhook.failurePolicy }}'],
      [
        '    app.kubernetes.io/component: ip-webhook\n',
        '    app.kubernetes.io/component: ip-webhook\n  {{- with .Values.webhook.annotations }}\n  annotations:\n    {{- toYaml . | nindent 4 }}\n  {{- end }}\n',
      ],
      [
        `      caBundle: "REPLACE: base64 of the authority of the webhook's certificate, docs/static-ip.md"\n`,
        CA_BUNDLE,
      ],
      // What the comment says of overlays; the chart refuses values instead.
      [
        `Without the right \`caBundle\` every Pod is refused, so API
# servers refuse this object until an overlay gives it one (docs/static-ip.md): the placeholder is no base64. With cert-manager the
# overlay removes the placeholder (\`caBundle: null\`) and sets the annotation.\n`,
        `Without the right \`caBundle\` every Pod is refused: with
# webhook.caBundle the value is it, with the annotation of another program that one sets it, else the webhook itself.\n`,
      ],
      ['apiVersion: admission', '{{- include "tke-eni.refuse-webhook-without-authority" . }}\napiVersion: admission'],
    ],
    when: '.Values.webhook.enabled',
  },
  {
    from: `${GATE}/rbac.yaml`,
    to: 'webhook-gate-rbac.yaml',
    changes: [NAMESPACE],
    when: GATE_ON,
  },
  {
    from: `${CCM}/rbac.yaml`,
    to: 'cloud-controller-manager-rbac.yaml',
    changes: [
      NAMESPACE,
      // What the comment says of kubectl; the chart refuses by itself.
      [
        `apply this file
# with --server-side, which refuses to change it; the chart refuses to be installed.\n`,
        `the
# chart refuses to be installed then.\n`,
      ],
      ['apiVersion: v1\n', '{{- include "tke-eni.refuse-second-controller-manager" . }}\napiVersion: v1\n'],
    ],
    when: CCM_ENABLED,
  },
  {
    from: `${CCM}/pod-disruption-budget.yaml`,
    to: 'cloud-controller-manager-pod-disruption-budget.yaml',
    changes: [NAMESPACE],
    when: CCM_ENABLED,
  },
  {
    from: `${CCM}/deployment.yaml`,
    to: 'cloud-controller-manager-deployment.yaml',
    changes: [
      NAMESPACE,
      ['name: tke-eni-ipamd-credentials', 'name: {{ .Values.credentialsSecret }}'],
      ...workload(
        'cloudControllerManager',
        'include "tke-eni.cloud-controller-manager-settings" .',
        '            requests:\n              cpu: 50m\n              memory: 96Mi\n            limits:\n              memory: 512Mi\n',
      ),
    ],
    when: CCM_ENABLED,
  },
  {
    from: 'conf/kubernetes/components/load-balancers/rbac.yaml',
    to: 'load-balancers-rbac.yaml',
    changes: [NAMESPACE],
    when: 'include "tke-eni.load-balancers" .',
  },
  {
    from: 'conf/kubernetes/components/load-balancers/tkeserviceconfigs.yaml',
    to: 'tkeserviceconfigs.yaml',
    changes: [],
    when: 'and (include "tke-eni.load-balancers" .) .Values.cloudControllerManager.serviceConfigDefinition',
  },
  {
    from: 'conf/kubernetes/components/ingresses/rbac.yaml',
    to: 'ingresses-rbac.yaml',
    changes: [NAMESPACE],
    when: 'include "tke-eni.ingress" .',
  },
  {
    from: 'conf/kubernetes/components/ingresses/ingress-class.yaml',
    to: 'ingress-class.yaml',
    changes: [],
    when: 'and (include "tke-eni.ingress" .) .Values.cloudControllerManager.ingress.class',
  },
  {
    from: 'conf/kubernetes/components/viewer/cluster-role.yaml',
    to: 'viewer.yaml',
    changes: [],
    when: '.Values.viewer',
  },
];

/**
 * Makes one template of its manifest; `read` gives the text of a file. Pure but for that.
 * @throws Error naming the manifest and the text or part that is no longer in it
 */
export function renderTemplate({ from, changes, when }: Template, read: (path: string) => string): string {
  const changed = changes.reduce((text, [wanted, instead, part]) => {
    if (!text.includes(wanted)) throw new Error(`${from} has no ${JSON.stringify(wanted)} any more: ${MEND}`);
    return text.replaceAll(wanted, part === undefined ? instead : withPart(instead, part, read(part.file)));
  }, read(from));
  const head = `{{- /* Made of ${from} by make chart. */ -}}\n`;
  return when === undefined ? `${head}${changed}` : `${head}{{- if ${when} }}\n${changed}{{- end }}\n`;
}

const MEND = 'change tools/chart/templates.ts';

function withPart(text: string, { file, path }: Part, manifest: string): string {
  const document = parseDocument(manifest);
  const found = document.getIn(path, true);
  if (found === undefined) throw new Error(`${file} has no ${path.join('.')} any more: ${MEND}`);
  document.contents = found as typeof document.contents;
  const lines = document.toString({ lineWidth: 0, flowCollectionPadding: false }).trimEnd().split('\n');
  return text.replace(PART, (_, indent: string) => lines.map((line) => `${indent}${line}\n`).join(''));
}
