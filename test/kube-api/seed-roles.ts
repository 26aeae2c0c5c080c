import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { isObject, type JsonObject } from './object.ts';

/** A component that has a ClusterRole. */
export type SeedRole = 'tke-eni-agent' | 'tke-eni-ipamd' | 'tke-eni-ip-scheduler';

const FILE = new URL('./cluster-roles.yaml', import.meta.url);

/** Returns the ClusterRole that a component runs with. @throws Error when the file has none */
export function seedClusterRole(role: SeedRole): JsonObject {
  const documents = parseAllDocuments(readFileSync(FILE, 'utf8')).map((document): unknown => document.toJS());
  const found = documents.find((one) => isObject(one) && isObject(one['metadata']) && one['metadata']['name'] === role);
  if (!isObject(found)) throw new Error(`${FILE.pathname}: no ClusterRole ${role}`);
  return found;
}
