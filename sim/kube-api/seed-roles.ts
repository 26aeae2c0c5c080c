import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { isObject, type JsonObject } from './object.ts';

/** A component that has a ClusterRole. */
export type SeedRole = 'tke-eni-agent' | 'tke-eni-ipamd' | 'tke-eni-ip-scheduler' | 'tke-cloud-controller-manager';

/** Where the one copy of the published roles is: what clusters get is what tests enforce. */
const FILES: Readonly<Record<SeedRole, string>> = {
  'tke-eni-agent': 'rbac/tke-eni-agent.yaml',
  'tke-eni-ipamd': 'rbac/tke-eni-ipamd.yaml',
  'tke-eni-ip-scheduler': 'scheduler/rbac.yaml',
  'tke-cloud-controller-manager': 'cloud-controller-manager/rbac.yaml',
};
const FOLDER = new URL('../../conf/kubernetes/', import.meta.url);

/** Returns the ClusterRoles that a component runs with: the published one, then its own. */
export function clusterRolesOf(role: SeedRole): readonly JsonObject[] {
  const file = new URL(FILES[role], FOLDER);
  const documents = parseAllDocuments(readFileSync(file, 'utf8')).map((document): unknown => document.toJS());
  return documents.filter((one) => isObject(one)).filter((one) => one['kind'] === 'ClusterRole');
}

/** Returns the published ClusterRole of a component. @throws Error when the file has none */
export function seedClusterRole(role: SeedRole): JsonObject {
  const [found] = clusterRolesOf(role);
  if (found === undefined) throw new Error(`${FILES[role]}: no ClusterRole`);
  return found;
}

/** A rule of a role. */
type RoleRule = {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: string[];
};

/** Returns the rules that the cloud controller manager has beside the published ones, with the component load-balancers. */
export function rulesOfLoadBalancers(): readonly RoleRule[] {
  return rulesOfComponent('load-balancers');
}

/** Returns the rules that it has beside those, with the component ingresses. */
export function rulesOfIngresses(): readonly RoleRule[] {
  return rulesOfComponent('ingresses');
}

function rulesOfComponent(name: string): readonly RoleRule[] {
  const file = new URL(`components/${name}/rbac.yaml`, FOLDER);
  const documents = parseAllDocuments(readFileSync(file, 'utf8')).map((document): unknown => document.toJS());
  const role = documents.filter((one) => isObject(one)).find((one) => one['kind'] === 'ClusterRole');
  return (role as { readonly rules: readonly RoleRule[] }).rules;
}
