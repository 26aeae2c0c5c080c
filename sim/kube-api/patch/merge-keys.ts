import type { JsonSchema } from '../schema/json-schema.ts';

/** How the items of a list are told apart when two versions of it merge. Undefined: the list is one value. */
type ListMerge = { readonly keys: readonly string[] } | 'set' | undefined;

/** Returns how the list at a path merges; the path has field names only, `[]` for items of lists, `{}` for keys of maps. */
export type MergeKeys = (path: readonly string[]) => ListMerge;

/** Lists of built-in types, by the end of their path: patch merge keys of k8s.io/api, first the more particular. */
const BUILT_IN: readonly (readonly [string, readonly string[] | 'set'])[] = [
  ['metadata.ownerReferences', ['uid']],
  ['metadata.finalizers', 'set'],
  ['status.addresses', ['type']],
  ['status.conditions', ['type']],
  ['status.podIPs', ['ip']],
  ['status.hostIPs', ['ip']],
  ['podCIDRs', 'set'],
  ['containers', ['name']],
  ['initContainers', ['name']],
  ['ephemeralContainers', ['name']],
  ['env', ['name']],
  ['volumeMounts', ['mountPath']],
  ['volumeDevices', ['devicePath']],
  ['volumes', ['name']],
  ['imagePullSecrets', ['name']],
  ['hostAliases', ['ip']],
  ['topologySpreadConstraints', ['topologyKey']],
  ['containers.[].ports', ['containerPort']],
  ['initContainers.[].ports', ['containerPort']],
  ['spec.ports', ['port']],
  ['secrets', ['name']],
];

/** Returns how lists of built-in types merge. */
export const builtInMergeKeys: MergeKeys = (path) => {
  const joined = path.join('.');
  const found = BUILT_IN.find(([end]) => joined === end || joined.endsWith(`.${end}`));
  if (found === undefined) return undefined;
  return found[1] === 'set' ? 'set' : { keys: found[1] };
};

/** Returns how lists of a custom resource merge, from its schema. */
export function mergeKeysOf(schema: JsonSchema): MergeKeys {
  return (path) => {
    if (path[0] === 'metadata') return builtInMergeKeys(path);
    const at = path.reduce<JsonSchema | undefined>((inner, key) => {
      if (key === '[]') return inner?.items;
      const more = typeof inner?.additionalProperties === 'object' ? inner.additionalProperties : undefined;
      return inner?.properties?.[key] ?? more;
    }, schema);
    if (at?.['x-kubernetes-list-type'] === 'set') return 'set';
    if (at?.['x-kubernetes-list-type'] === 'map') return { keys: at['x-kubernetes-list-map-keys'] ?? [] };
    return undefined;
  };
}
