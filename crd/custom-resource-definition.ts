import { API_GROUP, VERSION } from './names.ts';
import type { ResourceKind } from './resource-kind.ts';
import type { OpenApiSchema } from './schema.ts';

/** A `CustomResourceDefinition` of `apiextensions.k8s.io/v1`, as far as ours fill it. */
export type CustomResourceDefinition = ReturnType<typeof customResourceDefinition>;

/**
 * Makes the definition of a kind. Equal kinds make equal definitions, so ipamd can tell whether one must be upgraded.
 * There is one version and no status subresource. Within it the schema may only grow looser: an object that an older
 * release wrote must pass, or nobody could write it any more.
 */
export function customResourceDefinition(kind: ResourceKind) {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${API_GROUP}` },
    spec: {
      group: API_GROUP,
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
          name: VERSION,
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
  const own = Object.entries(kind.fields).map(
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
      ...Object.fromEntries(own),
    },
    ...(required.length > 0 ? { required } : {}),
    ...(kind.rules.length > 0 ? { 'x-kubernetes-validations': kind.rules } : {}),
  };
}
