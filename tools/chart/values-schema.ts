import { AGENT_PROGRAM } from '../../agent/config/options.ts';
import { IPAMD_PROGRAM } from '../../ipamd/config/options.ts';
import type { Option, SettingsProgram } from '../../runtime/settings/option.ts';
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
    // It wants another address than that of the manifest.
    'allow-anonymous-loopback',
  ],
  webhook: ['ipamd-namespace', 'listen-address', 'tls-cert-file', 'tls-private-key-file', 'metrics-address'],
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
  clusterId: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$' },
  region: { type: 'string', pattern: '^([a-z]{2,}(-[a-z0-9]+)+)?$' },
  endpoint: { type: 'string', pattern: '^([a-z]+=)?[*A-Za-z0-9.-]*(:[0-9]{1,5})?$' },
  subnets: { type: 'array', minItems: 1, uniqueItems: true, items: { type: 'string', pattern: '^subnet-[a-z0-9]+$' } },
  vpcId: { type: 'string', pattern: '^(vpc-[a-z0-9]+)?$' },
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
  'ipamd.replicas': { type: 'integer', minimum: 1, maximum: 9 },
  'ipamd.settings': settingsSchema(IPAMD_PROGRAM, TAKEN.ipamd),
  'ipamd.resources': RESOURCES,
  'scheduler.enabled': { type: 'boolean' },
  'scheduler.tlsSecret': { type: 'string', pattern: NAME },
  'scheduler.settings': settingsSchema(SCHEDULER_PROGRAM, TAKEN.scheduler),
  'scheduler.resources': RESOURCES,
  'webhook.enabled': { type: 'boolean' },
  'webhook.tlsSecret': { type: 'string', pattern: NAME },
  'webhook.caBundle': { type: 'string', pattern: '^(-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\\s-]*)?$' },
  'webhook.annotations': { type: 'object', additionalProperties: { type: 'string' } },
  'webhook.failurePolicy': { type: 'string', enum: ['Fail', 'Ignore'] },
  'webhook.settings': settingsSchema(WEBHOOK_PROGRAM, TAKEN.webhook),
  'webhook.resources': RESOURCES,
  viewer: { type: 'boolean' },
  'monitoring.enabled': { type: 'boolean' },
  'monitoring.labels': { type: 'object', additionalProperties: { type: 'string' } },
};

const REQUIRED = ['clusterId', 'subnets'];

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

/** Words and switches are known here; what else a text has to be is checked by the program, which names all faults at once. */
function typeOf({ value }: Option<unknown>): Schema {
  if (value.isList === true) return { type: ['string', 'array'], items: { type: 'string' } };
  if (value.metavar === '') return { type: 'boolean' };
  if (/^[a-z-]+(\|[a-z-]+)+$/.test(value.metavar)) return wordsType(value.metavar.split('|'));
  return value.metavar === 'NUMBER' ? { type: 'number', minimum: 0 } : { type: 'string' };
}
