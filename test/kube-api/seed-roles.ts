import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { isObject, type JsonObject } from './object.ts';

/** A component that has a ClusterRole. */
export type SeedRole = 'tke-eni-agent' | 'tke-eni-ipamd' | 'tke-eni-ip-scheduler';

/** Where the one copy of the published roles is: what clusters get is what tests enforce. */
const FILES: Readonly<Record<SeedRole, string>> = {
  'tke-eni-agent': 'rbac/tke-eni-agent.yaml',
  'tke-eni-ipamd': 'rbac/tke-eni-ipamd.yaml',
  'tke-eni-ip-scheduler': 'scheduler/rbac.yaml',
};
const FOLDER = new URL('../../conf/kubernetes/', import.meta.url);

/** Returns the ClusterRole that a component runs with. @throws Error when the file has none */
export function seedClusterRole(role: SeedRole): JsonObject {
  const file = new URL(FILES[role], FOLDER);
  const documents = parseAllDocuments(readFileSync(file, 'utf8')).map((document): unknown => document.toJS());
  const found = documents.find((one) => isObject(one) && one['kind'] === 'ClusterRole');
  if (!isObject(found)) throw new Error(`${file.pathname}: no ClusterRole`);
  return found;
}
