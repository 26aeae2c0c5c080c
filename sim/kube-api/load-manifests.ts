import { parseAllDocuments } from 'yaml';
import { isObject, type JsonObject } from './object.ts';

/** Applies every object of a YAML file to an API server by server-side apply. @throws Error naming what was refused */
export async function loadManifests(url: string, token: string, yaml: string): Promise<void> {
  for (const document of parseAllDocuments(yaml)) {
    const object: unknown = document.toJS();
    if (isObject(object)) await applyOne(url, token, object);
  }
}

async function applyOne(url: string, token: string, object: JsonObject): Promise<void> {
  const path = await pathOf(url, token, object);
  const answer = await fetch(`${url}${path}?fieldManager=load&force=true`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/apply-patch+yaml', authorization: `Bearer ${token}` },
    body: JSON.stringify(object),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
}

async function pathOf(url: string, token: string, object: JsonObject): Promise<string> {
  const apiVersion = String(object['apiVersion']);
  const folder = `${apiVersion.includes('/') ? '/apis' : '/api'}/${apiVersion}`;
  const answer = await fetch(`${url}${folder}`, { headers: { authorization: `Bearer ${token}` } });
  const list: unknown = answer.ok ? await answer.json() : {};
  const resources: readonly unknown[] = isObject(list) && Array.isArray(list['resources']) ? list['resources'] : [];
  const found = resources.find(
    (one) => isObject(one) && one['kind'] === object['kind'] && !String(one['name']).includes('/'),
  );
  if (!isObject(found)) throw new Error(`${apiVersion} ${String(object['kind'])}: the server has no such kind`);
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  const namespace = found['namespaced'] === true ? `/namespaces/${String(metadata['namespace'] ?? 'default')}` : '';
  return `${folder}${namespace}/${String(found['name'])}/${String(metadata['name'])}`;
}
