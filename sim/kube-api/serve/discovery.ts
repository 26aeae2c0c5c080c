import type { Api } from '../api.ts';
import { type ApiResource, groupVersion } from '../resources/api-resource.ts';

/** What this server says of itself; clients choose their ways by the minor version. */
export const VERSION_INFO = {
  major: '1',
  minor: '32',
  gitVersion: 'v1.32.0-tke-eni-test',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: '',
  platform: 'linux/amd64',
};

/** Answers the discovery paths; undefined for any other path, and for groups and versions that are not served. */
export function discover(api: Api, path: string, accept: string): unknown {
  const parts = path.split('/').filter((part) => part !== '');
  const resources = api.registry.all();
  const asked = aggregatedVersion(accept);
  if (path === '/version') return VERSION_INFO;
  if (parts[0] === 'api' && parts.length === 1) {
    if (asked !== undefined)
      return aggregated(
        resources.filter((one) => one.group === ''),
        asked,
      );
    return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  }
  if (parts[0] === 'api' && parts.length === 2) return resourceList(resources, '', parts[1] ?? '');
  if (parts[0] !== 'apis') return undefined;
  const named = resources.filter((one) => one.group !== '');
  if (parts.length === 1) {
    if (asked !== undefined) return aggregated(named, asked);
    return {
      kind: 'APIGroupList',
      apiVersion: 'v1',
      groups: [...groupsOf(named).keys()].map((group) => apiGroup(named, group)),
    };
  }
  const [, group = '', version = ''] = parts;
  if (!groupsOf(named).has(group)) return undefined;
  if (parts.length === 2) return { kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(named, group) };
  return parts.length === 3 ? resourceList(named, group, version) : undefined;
}

/** Returns the version in which a client wants everything in one answer, if it does: v2, or v2beta1 before Kubernetes 1.30. */
export function aggregatedVersion(accept: string): string | undefined {
  const [first = ''] = accept.split(',');
  if (!first.includes('as=APIGroupDiscoveryList')) return undefined;
  return /\bv=(v2(?:beta1)?)\b/.exec(first)?.[1];
}

function groupsOf(resources: readonly ApiResource[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, readonly string[]>();
  for (const { group, version } of resources) groups.set(group, [...new Set([...(groups.get(group) ?? []), version])]);
  return groups;
}

function apiGroup(resources: readonly ApiResource[], name: string) {
  const versions = (groupsOf(resources).get(name) ?? []).map((version) => ({
    groupVersion: `${name}/${version}`,
    version,
  }));
  return { name, versions, preferredVersion: versions[0] };
}

function resourceList(all: readonly ApiResource[], group: string, version: string) {
  const resources = all.filter((one) => one.group === group && one.version === version);
  if (resources.length === 0) return undefined;
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: groupVersion({ group, version }),
    resources: resources.flatMap((one) => [
      {
        name: one.plural,
        singularName: one.singular,
        namespaced: one.namespaced,
        kind: one.kind,
        verbs: one.verbs,
        ...(one.shortNames.length > 0 ? { shortNames: one.shortNames } : {}),
        ...(one.categories.length > 0 ? { categories: one.categories } : {}),
      },
      ...one.subresources.map((subresource) => ({
        name: `${one.plural}/${subresource}`,
        singularName: '',
        namespaced: one.namespaced,
        ...subresourceKind(one, subresource),
        verbs: subresourceVerbs(subresource),
      })),
    ]),
  };
}

function subresourceKind(resource: ApiResource, subresource: string) {
  if (subresource === 'scale') return { group: 'autoscaling', version: 'v1', kind: 'Scale' };
  if (subresource === 'binding') return { kind: 'Binding' };
  if (subresource === 'eviction') return { group: 'policy', version: 'v1', kind: 'Eviction' };
  if (subresource === 'token') return { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' };
  return { kind: resource.kind };
}

function subresourceVerbs(subresource: string): readonly string[] {
  if (['binding', 'eviction', 'token'].includes(subresource)) return ['create'];
  return subresource === 'finalize' ? ['update'] : ['get', 'patch', 'update'];
}

/** Everything in one answer. @see apidiscovery.k8s.io/v2 APIGroupDiscoveryList */
function aggregated(resources: readonly ApiResource[], version: string) {
  const items = [...groupsOf(resources)].map(([group, versions]) => ({
    metadata: { name: group, creationTimestamp: null },
    versions: versions.map((version) => ({
      version,
      freshness: 'Current',
      resources: resources
        .filter((one) => one.group === group && one.version === version)
        .map((one) => ({
          resource: one.plural,
          responseKind: { group: '', version: '', kind: one.kind },
          scope: one.namespaced ? 'Namespaced' : 'Cluster',
          singularResource: one.singular,
          verbs: one.verbs,
          ...(one.shortNames.length > 0 ? { shortNames: one.shortNames } : {}),
          ...(one.categories.length > 0 ? { categories: one.categories } : {}),
          subresources: one.subresources.map((subresource) => ({
            subresource,
            responseKind: { group: '', version: '', ...subresourceKind(one, subresource) },
            verbs: subresourceVerbs(subresource),
          })),
        })),
    })),
  }));
  return { kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${version}`, metadata: {}, items };
}
