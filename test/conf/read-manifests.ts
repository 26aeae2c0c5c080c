import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { isObject, type JsonObject } from '../../sim/kube-api/object.ts';

/** Where the manifests are. */
export const KUBERNETES_FOLDER = fileURLToPath(new URL('../../conf/kubernetes/', import.meta.url));

const NAMES = ['kustomization.yaml', 'Kustomization'];

/**
 * Returns the objects of all files that a kustomization lists, also by way of folders, as they stand there: nothing is
 * patched or generated. @throws Error naming what is no YAML or is not there
 */
export function readResources(folder: string): readonly JsonObject[] {
  const kustomization = readKustomization(folder);
  return strings(kustomization['resources']).flatMap((entry) => {
    const path = join(folder, entry);
    return statSync(path).isDirectory() ? readResources(path) : objectsOf(readFileSync(path, 'utf8'));
  });
}

/** Returns the files that a kustomization lists, also by way of folders. */
export function listFiles(folder: string): readonly string[] {
  return strings(readKustomization(folder)['resources']).flatMap((entry) => {
    const path = join(folder, entry);
    return statSync(path).isDirectory() ? listFiles(path) : [path];
  });
}

/** Returns the kustomization of a folder. @throws Error when there is none */
export function readKustomization(folder: string): JsonObject {
  const file = NAMES.map((name) => join(folder, name)).find((path) => existsSync(path));
  if (file === undefined) throw new Error(`${folder}: no kustomization`);
  const [object] = objectsOf(readFileSync(file, 'utf8'));
  if (object === undefined) throw new Error(`${dirname(file)}: an empty kustomization`);
  return object;
}

/** Returns the objects of a YAML text. @throws Error naming the first line that is no YAML, or a document that is no object */
export function objectsOf(text: string): readonly JsonObject[] {
  return parseAllDocuments(text).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    const object: unknown = document.toJS();
    if (!isObject(object)) throw new Error(`no object: ${text.slice(0, 80)}`);
    return object;
  });
}

/** Returns a list of texts as one. @throws Error when it is none */
export function strings(value: unknown): readonly string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || !value.every((one) => typeof one === 'string'))
    throw new Error(`no list of texts: ${JSON.stringify(value)}`);
  return value;
}
