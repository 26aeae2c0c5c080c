import { AGENT_PROGRAM } from '../../agent/config/agent-config.ts';
import { CCM_PROGRAM } from '../../cloud-controller-manager/config/options.ts';
import { IPAMD_OPTIONS, IPAMD_PROGRAM } from '../../ipamd/config/options.ts';
import { MAX_SUBNETS, SUBNET, VPC } from '../../ipamd/subnets/decide-subnet-config.ts';
import type { Option, SettingsProgram } from '../../runtime/settings/option.ts';
import type { ValueForm } from '../../runtime/settings/value-form.ts';
import { SCHEDULER_PROGRAM } from '../../scheduler/config/options.ts';
import { WEBHOOK_PROGRAM } from '../../webhook/options.ts';
import { listValues } from './values.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Flags that the manifests give themselves, which go before variables, or that are values of their own. */
const TAKEN = {
  agent: ['supply-source', 'supply-file', 'plugin-dir', 'metrics-address', 'node-name'],
  ipamd: ['namespace', 'config-map', 'shutdown-grace', 'metrics-address', 'clusterid', 'region', 'endpoint'],
  scheduler: [
    ...['namespace', 'listen-address', 'tls-cert-file', 'tls-private-key-file', 'metrics-address'],
    ...['tls-secret', 'print-kube-scheduler-config'],
    // It wants another address than that of the manifest.
    'allow-anonymous-loopback',
  ],
  cloudControllerManager: ['leader-elect-resource-namespace', 'metrics-address', 'region', 'endpoint'],
  webhook: [
    ...['ipamd-namespace', 'listen-address', 'tls-cert-file', 'tls-private-key-file', 'metrics-address'],
    ...['tls-secret', 'readiness-gates', 'pre-stop-sleep', 'load-balancer-class'],
  ],
} as const;

const NAME = '^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$';
const QUANTITY = { type: ['string', 'number'], pattern: '^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$' };
const QUANTITIES = { type: 'object', additionalProperties: QUANTITY };
const RESOURCES = {
  type: 'object',
  additionalProperties: false,
  properties: { requests: QUANTITIES, limits: QUANTITIES },
};

/** What each value may be; a value of values.yaml that is not here, or the reverse, is a fault of the chart. */
const RULES: Readonly<Record<string, Schema>> = {
  clusterId: typeOf(IPAMD_OPTIONS.clusterId),
  region: typeOf(IPAMD_OPTIONS.region),
  // Empty: not given to ipamd.
  endpoint: { anyOf: [{ const: '' }, typeOf(IPAMD_OPTIONS.endpoints)] },
  subnets: {
    type: 'array',
    maxItems: MAX_SUBNETS,
    uniqueItems: true,
    items: { type: 'string', pattern: SUBNET.source },
  },
  vpcId: { anyOf: [{ const: '' }, { type: 'string', pattern: VPC.source }] },
  'network.mode': { type: 'string', enum: ['vpc-cni', 'gr', 'hybrid'] },
  'network.default': typeOf(AGENT_PROGRAM.options.defaultNetwork),
  'network.clusterCidrs': typeOf(IPAMD_OPTIONS.clusterCidrs),
  'network.serviceCidr': typeOf(IPAMD_OPTIONS.serviceCidr),
  'network.maxPodsPerNode': typeOf(IPAMD_OPTIONS.maxPodsPerNode),
  'network.nodeMaskSize': typeOf(IPAMD_OPTIONS.nodeCidrMaskSize),
  'network.allocateNodeCidrs': { type: 'boolean' },
  'network.routes': typeOf(IPAMD_OPTIONS.grRoutes),
  credentialsSecret: { type: 'string', pattern: NAME },
  'image.registry': { type: 'string', pattern: '^([A-Za-z0-9][A-Za-z0-9./:_-]*)?$' },
  'image.tag': { type: 'string', pattern: '^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$' },
  'image.pullPolicy': { type: 'string', enum: ['Always', 'IfNotPresent', 'Never'] },
  'image.pullSecrets': { type: 'array', items: { type: 'string', pattern: NAME } },
  'agent.settings': settingsSchema(AGENT_PROGRAM, TAKEN.agent),
  'agent.resources': RESOURCES,
  'agent.maxUnavailable': { type: ['integer', 'string'], minimum: 1, pattern: '^[1-9][0-9]*%?$' },
  'agent.leastPrivilege': { enum: ['auto', true, false] },
  'agent.ownNodeOnly': { enum: ['auto', true, false] },
  'agent.uplinksOnCiliumNodes': { type: 'boolean' },
  'agent.ciliumNode': { type: 'boolean' },
  'cloudControllerManager.serviceConfigDefinition': { type: 'boolean' },
  'cloudControllerManager.ingress.class': { type: 'boolean' },
  'cloudControllerManager.ingress.secrets': {
    type: 'array',
    items: {
      type: 'object',
      additionalProperties: false,
      required: ['namespace', 'names'],
      properties: {
        namespace: { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$' },
        names: { type: 'array', minItems: 1, uniqueItems: true, items: { type: 'string', pattern: NAME } },
      },
    },
  },
  'ipamd.replicas': { type: 'integer', minimum: 1, maximum: 9 },
  'ipamd.settings': settingsSchema(IPAMD_PROGRAM, TAKEN.ipamd),
  'ipamd.onlyWriterOfStatus': { enum: ['auto', true, false] },
  'ipamd.resources': RESOURCES,
  'scheduler.enabled': { type: 'boolean' },
  'scheduler.tlsSecret': { type: 'string', pattern: NAME.replace(/^\^(.*)\$$/, '^($1)?$') },
  'scheduler.clusterIP': { type: 'string', pattern: '^([0-9a-fA-F:.]{2,45})?$' },
  'scheduler.settings': settingsSchema(SCHEDULER_PROGRAM, TAKEN.scheduler),
  'scheduler.resources': RESOURCES,
  'webhook.enabled': { type: 'boolean' },
  'webhook.tlsSecret': { type: 'string', pattern: NAME },
  'webhook.caBundle': { type: 'string', pattern: '^(-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\\s-]*)?$' },
  'webhook.annotations': { type: 'object', additionalProperties: { type: 'string' } },
  'webhook.failurePolicy': { type: 'string', enum: ['Fail', 'Ignore'] },
  'webhook.loadBalancers.enabled': { enum: ['auto', true, false] },
  'webhook.loadBalancers.preStopSleep': { enum: ['auto', true, false] },
  'webhook.settings': settingsSchema(WEBHOOK_PROGRAM, TAKEN.webhook),
  'webhook.resources': RESOURCES,
  'cloudControllerManager.enabled': { type: 'boolean' },
  'cloudControllerManager.settings': settingsSchema(CCM_PROGRAM, TAKEN.cloudControllerManager),
  'cloudControllerManager.resources': RESOURCES,
  viewer: { type: 'boolean' },
  'monitoring.enabled': { type: 'boolean' },
  'monitoring.labels': { type: 'object', additionalProperties: { type: 'string' } },
};

const REQUIRED = ['clusterId', 'subnets'];

/** Only a cluster without ENIs has no subnets; other rules of several values are the template's (refuse-network), with a sentence for each. */
const SUBNETS_BY_MODE: Schema = {
  if: {
    required: ['network'],
    properties: { network: { type: 'object', required: ['mode'], properties: { mode: { const: 'gr' } } } },
  },
  else: { properties: { subnets: { type: 'array', minItems: 1 } } },
};

/**
 * Writes the schema of the chart's values: descriptions are the comments of values.yaml, settings the flags of the source.
 * @throws Error naming values without a rule, or rules without a value
 */
export function renderValuesSchema(values: string): string {
  const listed = listValues(values);
  const paths = listed.filter(({ isGroup }) => !isGroup).map(({ path }) => path);
  const odd = [
    ...paths.filter((path) => RULES[path] === undefined),
    ...Object.keys(RULES).filter((path) => !paths.includes(path)),
  ];
  if (odd.length > 0) throw new Error(`values.yaml and tools/chart/values-schema.ts differ in ${odd.join(', ')}`);
  const under = (prefix: string): Schema =>
    Object.fromEntries(
      listed
        .filter(({ path }) => path.startsWith(prefix) && !path.slice(prefix.length).includes('.'))
        .map(({ path, help, isGroup }) => [
          path.slice(prefix.length),
          isGroup
            ? { type: 'object', additionalProperties: false, properties: under(`${path}.`) }
            : { description: help, ...RULES[path] },
        ]),
    );
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the chart tke-eni',
    type: 'object',
    additionalProperties: false,
    required: REQUIRED,
    ...SUBNETS_BY_MODE,
    // Helm adds `global` when the chart is a part of another.
    properties: { ...under(''), global: { type: 'object' } },
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

function settingsSchema({ options }: SettingsProgram, taken: readonly string[]): Schema {
  const free = Object.values(options).filter(({ flag }) => !taken.includes(flag));
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(
      free.map((option) => [option.flag, { description: option.help, ...typeOf(option) }]),
    ),
  };
}

/** YAML reads some words as switches. */
function wordsType(words: readonly string[]): Schema {
  const switches = words.flatMap((word) => (word === 'true' || word === 'false' ? [word === 'true'] : []));
  return switches.length === 0 ? { type: 'string', enum: words } : { enum: [...words, ...switches] };
}

/** Bounds of a setting; a rule of several settings together is for the program, which names all faults at once. */
function typeOf({ value }: Option<unknown>): Schema {
  const { form } = value;
  switch (form.kind) {
    case 'switch':
      return { type: 'boolean' };
    case 'words':
      return wordsType(form.words);
    case 'number':
      return numberType(form);
    case 'text': {
      const text = { pattern: `^(${form.body})$` };
      return value.isList === true
        ? { type: ['string', 'array'], ...text, items: { type: 'string', ...text } }
        : { type: 'string', ...text };
    }
  }
}

function numberType({ min, max, other }: Extract<ValueForm, { readonly kind: 'number' }>): Schema {
  const range = { type: 'integer', minimum: min, maximum: max };
  return other === undefined ? range : { anyOf: [{ const: other }, range] };
}
