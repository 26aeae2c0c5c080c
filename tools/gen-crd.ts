import { stringify } from 'yaml';
import { customResourceDefinition } from '../crd/custom-resource-definition.ts';
import type { FieldOwner, FieldTable, ResourceField } from '../crd/field.ts';
import { RESOURCE_KINDS } from '../crd/kinds.ts';
import { API_GROUP, API_VERSION } from '../crd/names.ts';
import type { ResourceKind } from '../crd/resource-kind.ts';
import type { OpenApiSchema } from '../crd/schema.ts';
import { TKE_SERVICE_CONFIG_KIND } from '../crd/tke-service-config.ts';

/** The files that are made from the field tables in `crd/`: path and how to render it. */
export const CRD_FILES: Readonly<Record<string, () => string>> = {
  'docs/reference/crd.md': renderCrdDocs,
  // The product's, for clusters that have it not: ipamd does not keep it.
  'conf/kubernetes/components/load-balancers/tkeserviceconfigs.yaml': () =>
    renderCrdYaml(TKE_SERVICE_CONFIG_KIND, KEEP),
  ...Object.fromEntries(RESOURCE_KINDS.map((kind) => [`conf/crd/${kind.plural}.yaml`, () => renderCrdYaml(kind)])),
};

/** Helm leaves the definition when the chart goes: its objects are of people. */
const KEEP = { 'helm.sh/resource-policy': 'keep' };

function renderCrdYaml(kind: ResourceKind, annotations: Readonly<Record<string, string>> = {}): string {
  const made = customResourceDefinition(kind);
  const metadata = { ...made.metadata, annotations: { ...made.metadata.annotations, ...annotations } };
  const definition = stringify({ ...made, metadata }, { lineWidth: 120, aliasDuplicateObjects: false });
  return `# Made from crd/ by tools/gen-crd.ts; run: make gen\n${definition}`;
}

const INTRODUCTION = `# Custom resources

Made from the field tables in \`crd/\` by \`make gen\`; the same tables make the types, the decoders and \`conf/crd/*.yaml\`.
ipamd creates and upgrades the definitions at start. All are \`${API_VERSION}\`.

**Owners.** Each field has one writer; everyone else writes it back as it was read, unknown fields too. A write is a whole
\`update\` that carries the \`resourceVersion\` of the read: a 409 means read again and decide again.

| owner | who |
|---|---|
| agent | \`tke-eni-agent\` of the node |
| ipamd | \`tke-eni-ipamd\`, the leader |
| scheduler | \`tke-eni-ip-scheduler\`, in static mode |
| people | users with the right, by hand or with tools |
| policy | ipamd, from flags, ConfigMaps and the instance type, where people have written nothing; people may change it |

**No status subresource.** The ClusterRoles grant no \`<resource>/status\`; \`status\` is an ordinary part of the object.
So the API server does not keep owners apart: that is a rule of ours, and \`spec\` and \`status\` move in one guarded write.

**Checks.** The schema refuses what has the wrong form, and \`x-kubernetes-validations\` what only a comparison can find
(Kubernetes 1.25 and newer). The decoders check more: addresses against their subnet, duplicates, host bits. Within v1
the schema may only grow looser, or objects of an older release could no longer be written; a test compares it with that of
the last release (\`test/crd/baseline/\`).

**Annotations** of a NodeENIConfig (\`tke.cloud.tencent.com/route-eni-ip-min-warm-target\` and the like) go before the spec. One
that is malformed, is half a pair, or asks for less than is in use is ignored and named by condition \`AnnotationInvalid\`.

**Intents** (\`intents\`, \`intent\`). Before ipamd calls the cloud to change something, it writes here what it is about to do,
guarded by the resourceVersion on which it decided. The intent goes in the very write that brings the result.

| ipamd dies | the next leader finds | and does |
|---|---|---|
| before the write | nothing | decides again; nothing had happened |
| after the write, before the call | \`Recorded\`, of an older \`leaderEpoch\` | waits lease + \`requestTimeoutSeconds\`, describes by \`resourceName\`, \`tags\` or address: no effect; sends it with the same \`clientToken\`, or drops the intent where the call takes none and decides again |
| after the call, before its answer was written | the same, or \`Unclear\` | the same, and finds the effect: writes the result, drops the intent |
| while the cloud's task runs | \`Accepted\` with a \`taskID\` | goes on polling; if the task is not known any more, describes |

\`resourceName\`, \`tags\` and \`clientToken\` are made of the object's uid and the intent's \`id\` alone, so that a repetition is the
same call. Addresses that are being given back are \`Releasing\` in the same write that records the intent.
`;

/** Renders docs/reference/crd.md. */
function renderCrdDocs(): string {
  return [INTRODUCTION, ...RESOURCE_KINDS.map(renderKind)].join('\n');
}

function renderKind(kind: ResourceKind): string {
  return [
    `## ${kind.kind} (${kind.shortNames.join(', ')})`,
    '',
    `${kind.about}`,
    '',
    `\`${kind.plural}.${API_GROUP}\`, ${kind.scope === 'Cluster' ? 'cluster-wide' : 'in a namespace'}, named ${kind.named}.`,
    '',
    '| field | value | owner | |',
    '|---|---|---|---|',
    ...renderFields(kind.fields, '', undefined),
    ...kind.rules.map((rule) => `\nRule: ${rule.message}.`),
    '',
  ].join('\n');
}

function renderFields(fields: FieldTable, prefix: string, around: FieldOwner | undefined): readonly string[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const owner = field.owner ?? around;
    const isList = field.value.schema.type === 'array';
    const path = `${prefix}${name}${isList ? '[]' : ''}`;
    const row = `| \`${path}\` | ${describeValue(field)} | ${owner ?? ''} | ${cell(field.about)} |`;
    const inner = field.value.fields;
    return [row, ...(inner === undefined ? [] : renderFields(inner, `${path}.`, owner))];
  });
}

function describeValue(field: ResourceField<unknown>): string {
  const schema = field.value.schema;
  const shown = schema.type === 'array' ? `≤ ${schema.maxItems} × ${describe(schema.items ?? {})}` : describe(schema);
  const rules = (schema['x-kubernetes-validations'] ?? []).map((rule) => `; ${rule.message}`);
  return cell(`${shown}${field.optional ? '' : ', required'}${rules.join('')}`);
}

function describe(schema: OpenApiSchema): string {
  if (schema.enum !== undefined) return schema.enum.map((word) => `\`${word}\``).join(' ');
  if (schema.anyOf !== undefined) return schema.anyOf.map((one) => one.format ?? '').join(' or ');
  if (schema.type === 'integer') return `${schema.minimum} … ${schema.maximum}`;
  if (schema.additionalProperties !== undefined) return `≤ ${schema.maxProperties} texts by name`;
  if (schema.type === 'string')
    return schema.format ?? (schema.pattern === undefined ? 'text' : `\`${schema.pattern}\``);
  return schema.type ?? '';
}

/** Escapes what would end a table cell. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
