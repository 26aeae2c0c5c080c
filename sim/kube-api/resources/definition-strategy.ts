import { isEqual, isObject, type JsonObject, type KubeObject } from '../object.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import type { Strategy } from './api-resource.ts';
import { type Cause, forbiddenValue, invalidValue, requiredValue, unsupportedValue } from './causes.ts';

/** What the API server does with CustomResourceDefinitions: defaults, and the rules of structural schemas. */
export const DEFINITION_STRATEGY: Strategy = {
  prepareCreate: (object) => ({ ...withDefaults(object), status: {} }),
  prepareUpdate: withDefaults,
  validate: (object, old) => [...definitionFaults(object), ...(old === undefined ? [] : changeFaults(object, old))],
};

function specOf(object: KubeObject): JsonObject {
  return isObject(object['spec']) ? object['spec'] : {};
}

function namesOf(object: KubeObject): JsonObject {
  const { names } = specOf(object) as { names?: unknown };
  return isObject(names) ? names : {};
}

function withDefaults(object: KubeObject): KubeObject {
  const names = namesOf(object);
  const kind = String(names['kind'] ?? '');
  return {
    ...object,
    spec: {
      conversion: { strategy: 'None' },
      ...specOf(object),
      names: { singular: kind.toLowerCase(), listKind: `${kind}List`, ...names },
    },
  };
}

function definitionFaults(object: KubeObject): readonly Cause[] {
  const spec = specOf(object);
  const names = namesOf(object);
  const wanted = `${String(names['plural'])}.${String(spec['group'])}`;
  const versions = Array.isArray(spec['versions']) ? spec['versions'].filter(isObject) : [];
  const scopes = ['Cluster', 'Namespaced'];
  return [
    ...(object.metadata.name === wanted
      ? []
      : [invalidValue('metadata.name', object.metadata.name, 'must be spec.names.plural+"."+spec.group')]),
    ...(scopes.includes(String(spec['scope'])) ? [] : [unsupportedValue('spec.scope', spec['scope'] ?? '', scopes)]),
    ...(['plural', 'kind'] as const).filter((key) => !names[key]).map((key) => requiredValue(`spec.names.${key}`)),
    ...(versions.filter((version) => version['storage'] === true).length === 1
      ? []
      : [
          invalidValue(
            'spec.versions',
            versions.map((one) => one['name']),
            'must have exactly one version marked as storage version',
          ),
        ]),
    // The schema of an only version is the schema of all, and named so.
    ...versions.flatMap((version, index) =>
      versionFaults(version, versions.length === 1 ? 'spec.validation' : `spec.versions[${index}].schema`),
    ),
  ];
}

function versionFaults(version: JsonObject, path: string): readonly Cause[] {
  const { schema } = version as { schema?: unknown };
  const root = isObject(schema) ? schema['openAPIV3Schema'] : undefined;
  if (!isObject(root)) return [requiredValue(`${path}.openAPIV3Schema`, 'schemas are required')];
  return structuralFaults(root, `${path}.openAPIV3Schema`);
}

function structuralFaults(schema: JsonSchema, path: string): readonly Cause[] {
  const isUntyped =
    schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true;
  const isList = schema.type === 'array';
  return [
    ...(schema.type === undefined && !isUntyped
      ? [requiredValue(`${path}.type`, 'must not be empty for specified object fields')]
      : []),
    ...(isList && schema.items === undefined ? [requiredValue(`${path}.items`, 'must be specified')] : []),
    ...(schema.properties !== undefined && schema.additionalProperties !== undefined
      ? [forbiddenValue(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive')]
      : []),
    ...(schema['x-kubernetes-list-type'] === 'map' && (schema['x-kubernetes-list-map-keys'] ?? []).length === 0
      ? [requiredValue(`${path}.x-kubernetes-list-map-keys`)]
      : []),
    ...(schema.items === undefined ? [] : structuralFaults(schema.items, `${path}.items`)),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, inner]) =>
      name === 'metadata' && path.endsWith('openAPIV3Schema')
        ? []
        : structuralFaults(inner, `${path}.properties[${name}]`),
    ),
  ];
}

function changeFaults(object: KubeObject, old: KubeObject): readonly Cause[] {
  return ['group', 'scope']
    .filter((key) => !isEqual(specOf(object)[key], specOf(old)[key]))
    .map((key) => invalidValue(`spec.${key}`, specOf(object)[key], 'field is immutable'));
}
