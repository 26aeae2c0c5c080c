import {
  type CustomResourceDefinition,
  customResourceDefinition,
  SCHEMA_ANNOTATION,
  SCHEMA_NUMBER,
} from '../../crd/custom-resource-definition.ts';
import { API_GROUP } from '../../crd/names.ts';
import type { ResourceKind } from '../../crd/resource-kind.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';
import { listOf, recordOf } from '../../runtime/json.ts';
import { isSameData } from '../decide/same-data.ts';

/**
 * Annotation of a definition that was lost and installed again: when, RFC 3339. Objects that are made soon after replace
 * lost ones.
 */
export const INSTALLED_AGAIN_ANNOTATION = `${API_GROUP}/installed-again`;

/** What to do about one definition. */
type DefinitionStep =
  | { readonly kind: 'create'; readonly object: KubeObject }
  /** `from`: the number of its schema now. */
  | { readonly kind: 'update'; readonly object: KubeObject; readonly from: number }
  | { readonly kind: 'keep' }
  /** A newer release wrote it, with this number. */
  | { readonly kind: 'keep-newer'; readonly number: number }
  /** It cannot be changed into the required one, or is another program's: the reason, and what to do. */
  | { readonly kind: 'clash'; readonly why: string };

/** Compares a kind's definition with the installed one; undefined when none is installed. */
export function decideDefinition(kind: ResourceKind, installed: KubeObject | undefined): DefinitionStep {
  const required = customResourceDefinition(kind);
  if (installed === undefined) return { kind: 'create', object: required };
  const number = schemaNumberOf(installed);
  if (number > SCHEMA_NUMBER) return { kind: 'keep-newer', number };
  const why = whyClash(kind, installed);
  if (why !== undefined) return { kind: 'clash', why };
  const merged = mergeDefinition(required, installed);
  return isSameData(merged, installed) ? { kind: 'keep' } : { kind: 'update', object: merged, from: number };
}

/**
 * Returns why an installed definition cannot be changed into the required one, or is another program's, and what to do;
 * undefined: it is ours, of this release, an older or a newer one.
 */
export function whyClash(kind: ResourceKind, installed: KubeObject): string | undefined {
  const required = customResourceDefinition(kind);
  const number = schemaNumberOf(installed);
  if (number > SCHEMA_NUMBER) return undefined;
  const scope = recordOf(installed['spec'])['scope'];
  return scope === required.spec.scope
    ? whyForeign(required, installed, number)
    : `${required.metadata.name} is ${String(scope)} and has to be ${required.spec.scope}, which cannot be changed: delete it, with its objects`;
}

/**
 * Returns why a definition is that of another program, which has kinds of these names as well; undefined: it is ours, of this
 * release or an older one. The number alone proves nothing: what is applied over ours leaves the annotation.
 */
function whyForeign(required: CustomResourceDefinition, installed: KubeObject, number: number): string | undefined {
  const { name } = required.metadata;
  const [ours] = required.spec.versions;
  const versions = listOf(recordOf(installed['spec'])['versions']);
  const version = versions.find((one) => recordOf(one)['name'] === ours.name);
  if (version === undefined)
    return number > 0 ? undefined : `${name} is another program's: it has no version ${ours.name}; ${LEFT_ALONE}`;
  const { schema, subresources } = recordOf(version);
  const field = findPrunedField(recordOf(schema)['openAPIV3Schema'], ours.schema.openAPIV3Schema);
  if (field !== undefined)
    return `${name} is another program's: its objects may have ${field}, which the schema of this release would take from them; ${LEFT_ALONE}`;
  // No release of ours had one, and with it the other program writes what is not seen here.
  const hasStatus = isRecord(recordOf(subresources)['status']);
  return number === 0 && hasStatus
    ? `${name} is another program's: it has a status subresource; ${LEFT_ALONE}`
    : undefined;
}

const LEFT_ALONE =
  'nothing is written. Remove the other program and its definitions (a backup of its objects first); if somebody edited ours, apply conf/crd/';

function schemaNumberOf(installed: KubeObject): number {
  const text = installed.metadata.annotations?.[SCHEMA_ANNOTATION] ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

/**
 * Merges ipamd's definition into the installed one: names, ipamd's version and annotation. Other labels, annotations,
 * categories and versions stay. Only a status subresource is removed, because with it no write of ipamd would change
 * the status.
 */
function mergeDefinition(required: CustomResourceDefinition, installed: KubeObject): KubeObject {
  const spec = recordOf(installed['spec']);
  const { annotations } = installed.metadata;
  return {
    ...installed,
    metadata: {
      ...installed.metadata,
      annotations: { ...annotations, ...required.metadata.annotations },
    },
    spec: {
      ...spec,
      names: { ...recordOf(spec['names']), ...required.spec.names },
      versions: mergeVersions(required.spec.versions[0], spec['versions']),
    },
  };
}

type Version = CustomResourceDefinition['spec']['versions'][0];

function mergeVersions(ours: Version, present: unknown): readonly unknown[] {
  const versions = listOf(present);
  const isOurs = (version: unknown): boolean => isRecord(version) && version['name'] === ours.name;
  const merged = { ...withoutStatus(versions.find(isOurs)), ...ours };
  if (!versions.some(isOurs)) return [...versions.map(notStored), merged];
  return versions.map((version) => (isOurs(version) ? merged : notStored(version)));
}

/** Turns storage off for other versions: objects are stored in one version, which is ipamd's. */
function notStored(version: unknown): unknown {
  return isRecord(version) && version['storage'] === true ? { ...version, storage: false } : version;
}

function withoutStatus(version: unknown): Readonly<Record<string, unknown>> {
  if (!isRecord(version) || !isRecord(version['subresources'])) return recordOf(version);
  const { subresources, ...rest } = version;
  const { status: _, ...others } = recordOf(subresources);
  return Object.keys(others).length === 0 ? rest : { ...rest, subresources: others };
}

const PRESERVES = 'x-kubernetes-preserve-unknown-fields';

/**
 * Finds a field that objects may have by one schema of a definition and not by another: the API server prunes it from every
 * object that is written after the change. Within a version our schemas only grow, so an older one of ours has none.
 * @param before the schema that is installed, as the API server answered
 * @returns its path, `.*` at the end stands for all unknown fields; undefined: none
 */
function findPrunedField(before: unknown, after: unknown, path = ''): string | undefined {
  const [old, next] = [recordOf(before), recordOf(after)];
  if (next[PRESERVES] === true) return undefined;
  if (old[PRESERVES] === true) return `${path}.*`;
  const fields = recordOf(next['properties']);
  const others = next['additionalProperties'];
  const takesOthers = isRecord(others) || others === true;
  for (const [name, schema] of Object.entries(recordOf(old['properties']))) {
    const at = path === '' ? name : `${path}.${name}`;
    // Of each object, whatever a schema says of it.
    if (at === 'metadata' || at === 'apiVersion' || at === 'kind') continue;
    if (!Object.hasOwn(fields, name) && !takesOthers) return at;
    const found = findPrunedField(schema, fields[name] ?? others, at);
    if (found !== undefined) return found;
  }
  const unnamed = old['additionalProperties'];
  if (isRecord(unnamed) || unnamed === true) {
    if (!takesOthers) return `${path}.*`;
    const found = findPrunedField(unnamed, others, `${path}.*`);
    if (found !== undefined) return found;
  }
  return isRecord(old['items']) ? findPrunedField(old['items'], next['items'], `${path}[]`) : undefined;
}
