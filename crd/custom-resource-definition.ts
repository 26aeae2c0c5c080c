import { API_GROUP } from './names.ts';
import { groupVersionOf, type ResourceKind } from './resource-kind.ts';
import type { OpenApiSchema } from './schema.ts';

/** Annotation of a definition: the number of the schema that it was generated from. */
export const SCHEMA_ANNOTATION = `${API_GROUP}/schema`;

/**
 * Number of the schemas of this release. Raise it in a release that changes one: an older replica, still running or
 * started again, then leaves the definitions unchanged.
 */
export const SCHEMA_NUMBER = 3;

/** A `CustomResourceDefinition` of `apiextensions.k8s.io/v1`, with the fields that this project sets. */
export type CustomResourceDefinition = ReturnType<typeof customResourceDefinition>;

/**
 * Builds the definition of a kind. Equal kinds yield equal definitions, so ipamd can tell whether one must be upgraded.
 *
 * There is one version and no status subresource. Within the version the schema may only become less strict: objects
 * that an older release wrote must stay valid, or every later write to them would fail.
 */
export function customResourceDefinition(kind: ResourceKind) {
  const { group, version } = groupVersionOf(kind);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${kind.plural}.${group}`,
      annotations: { [SCHEMA_ANNOTATION]: String(SCHEMA_NUMBER) },
    },
    spec: {
      group,
      scope: kind.scope,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        shortNames: kind.shortNames,
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: rootSchema(kind) },
          additionalPrinterColumns: kind.columns.map(({ name, type, jsonPath, wide }) => ({
            name,
            type,
            jsonPath,
            ...(wide === true ? { priority: 1 } : {}),
          })),
        },
      ],
    },
  } as const;
}

function rootSchema(kind: ResourceKind): OpenApiSchema {
  const fieldSchemas = Object.entries(kind.fields).map(
    ([name, field]) => [name, { ...field.value.schema, description: field.about }] as const,
  );
  const required = Object.keys(kind.fields).filter((name) => kind.fields[name]?.optional === false);
  return {
    type: 'object',
    description: kind.about,
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      ...Object.fromEntries(fieldSchemas),
    },
    ...(required.length > 0 ? { required } : {}),
    ...(kind.rules.length > 0 ? { 'x-kubernetes-validations': kind.rules } : {}),
  };
}
