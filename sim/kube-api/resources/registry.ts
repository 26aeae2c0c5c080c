import { isObject, type JsonObject, type KubeObject } from '../object.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import type { Store } from '../store.ts';
import { customColumns } from '../table/custom-columns.ts';
import type { ApiResource } from './api-resource.ts';
import { BUILT_IN_RESOURCES } from './built-in.ts';

/** Storage key of CustomResourceDefinitions. */
export const DEFINITIONS = 'apiextensions.k8s.io/customresourcedefinitions';

const VERBS = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'];

/** The resources that are served: built-in ones and those that definitions in the store add. */
export class Registry {
  readonly #store: Store;
  readonly #made = new WeakMap<KubeObject, readonly ApiResource[]>();

  constructor(store: Store) {
    this.#store = store;
  }

  all(): readonly ApiResource[] {
    return [...BUILT_IN_RESOURCES, ...this.#store.list(DEFINITIONS).flatMap((one) => this.#resourcesOf(one))];
  }

  find(group: string, version: string, plural: string): ApiResource | undefined {
    const isIt = (one: ApiResource) => one.group === group && one.version === version && one.plural === plural;
    const builtIn = BUILT_IN_RESOURCES.find(isIt);
    if (builtIn !== undefined) return builtIn;
    const definition = this.#store.get(DEFINITIONS, `/${plural}.${group}`);
    return definition === undefined ? undefined : this.#resourcesOf(definition).find(isIt);
  }

  #resourcesOf(definition: KubeObject): readonly ApiResource[] {
    const made = this.#made.get(definition) ?? resourcesOf(definition);
    this.#made.set(definition, made);
    return made;
  }
}

/** Makes the resources of a definition: one for each version that is served. */
export function resourcesOf(definition: KubeObject): readonly ApiResource[] {
  const spec = objectIn(definition, 'spec');
  const names = objectIn(spec, 'names');
  const versions = Array.isArray(spec['versions']) ? spec['versions'].filter(isObject) : [];
  return versions
    .filter((version) => version['served'] === true)
    .map((version): ApiResource => {
      const subresources = Object.keys(objectIn(version, 'subresources'));
      return {
        group: String(spec['group']),
        version: String(version['name']),
        plural: String(names['plural']),
        singular: String(names['singular']),
        kind: String(names['kind']),
        shortNames: textsIn(names, 'shortNames'),
        categories: textsIn(names, 'categories'),
        namespaced: spec['scope'] === 'Namespaced',
        verbs: VERBS,
        subresources,
        createsOnUpdate: false,
        needsResourceVersion: true,
        generation: subresources.includes('status') ? 'spec' : 'all',
        returnsDeleted: false,
        strategy: {},
        columns: customColumns(version['additionalPrinterColumns']),
        schema: withHead(objectIn(objectIn(version, 'schema'), 'openAPIV3Schema')),
      };
    });
}

/** apiVersion, kind and metadata are there whatever the schema says. */
function withHead(schema: JsonSchema): JsonSchema {
  return {
    ...schema,
    properties: {
      ...schema.properties,
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  };
}

function objectIn(object: JsonObject, key: string): JsonObject {
  const value = object[key];
  return isObject(value) ? value : {};
}

function textsIn(object: JsonObject, key: string): readonly string[] {
  const value = object[key];
  return Array.isArray(value) ? value.map(String) : [];
}
